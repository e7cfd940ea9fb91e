"""Prices learned from a sample of past requests: no step size, no units."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import check, tree
from ..core.facts import Facts
from ..core.parameters import rounds_remembered
from ..domains.base import Point
from ..errors import LearnerError
from ..problem.problem import Problem
from .base import Horizon
from .price_sample import Sample, one_price, place, several_prices, unravel_like
from .pricing import AbstractPricing, prediction

_SHORTEST = 32  # rounds in which a surplus or a debt is used up, if there are so many
_SURPLUS, _DEBT = 64.0, 1.5  # without a horizon, they are used up in this part of the rounds so far
_LEAST, _MOST = 0.2, 2.0  # times the slack: how far a debt or a surplus moves a constraint, without a horizon
_EAGER, _ALERT = 3.0, 32.0  # with one, a surplus is used up in this part of the rounds left; _ALERT with a memory
_PATIENT = 4.0  # with one, a debt is used up in the rounds left, and early in up to so many times more
_PLANNED = 16  # memories may be as long as so many times the rounds that are left
_OFTEN = 16  # the price is searched again after this part of the rounds so far, or left
_STEPS, _PART = 16, 64  # of the search for several prices, each with a part of the sample


class Prices(eqx.Module):
    """What the price is learned from."""

    prices: Float[Array, " m"]
    sample: Sample
    violation: Float[Array, " m"]  # the sum of g so far
    squares: Float[Array, " m"]  # of the steps of several prices
    rounds: Int[Array, ""]
    due: Int[Array, ""]  # the round after which the price is searched next
    horizon: Int[Array, ""] | None


class AutoPrice(AbstractPricing):
    r"""The price at which remembered requests would, on average, use up what is left of the budget.

    $\lambda_{t+1} = \arg\max_{\lambda\ge0} \sum_sw_sD_s(\lambda) + \langle\lambda, v_t/n_t\rangle$ with $D_s(\lambda) =
    \min_{x\in X} f_s(x) + \langle\lambda, g_s(x)\rangle$ for remembered requests s, $v_t = \sum_{s\le t}g_s(x_s)$ the
    violation so far, and $n_t$ the rounds in which it is used up. With $\ell$ of T rounds left: a debt in
    $\ell(1+4\ell/T)$ rounds, a surplus in $\ell/3$, or, with a memory, in $\ell/32$, since requests may become dearer.
    Without a horizon: a surplus in $t/64$ rounds and a debt in $t/1.5$, while the constraint is moved by at most 0.2
    times its slack down, and twice its slack up.

    One constraint: a search over a grid of prices, around the last one. Several: a few steps of AdaGrad, in units of
    each price. The search is repeated after a 16th part of the rounds played, or left, whichever is less.

    **Arguments:**

    - `horizon`: whether to plan for the horizon of the game; `False` if it may stop at any time.
    - `memory`: over how many rounds to look back; all by default. Give one where prices or budgets shift.
    - `sample`: how many requests to remember. Each search calls the LMO about 18 times for each.
    - `predict`: request -> the round that is expected, where the request does not show all that the loss and the
      constraint use. Decisions follow what is expected, prices what really happened.

    No constants and no units: scaling the loss or a constraint changes decisions by rounding alone. *Measured*,
    without a proof. Curved losses and constraints are remembered by their gradients at the decision.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(2),
    ...     loss=lambda x, r: -r * x[1],
    ...     constraint=lambda x, r: x[1] - 0.25,
    ...     request=True,
    ... )
    >>> values = jax.random.uniform(jax.random.key(0), (4000,))
    >>> game = cx.play(problem, AutoPrice(), values, key=jax.random.key(0))
    >>> best = cx.hindsight(problem, values, policy=True)
    >>> bool(game.score(best)[-1] < 0.01 * abs(best.value))
    True
    """

    facts = Facts(
        cost="1 LMO; rarely, 18 for each remembered request",
        guarantee="no constants, with or without a horizon: measured",
        cites=("li2022",),
    )

    memory: Float[Array, ""] | None
    plans: bool = eqx.field(static=True)
    size: int = eqx.field(static=True)
    predict: Callable | None

    def __init__(self, *, horizon: bool = True, memory: Any = None, sample: int = 512, predict: Callable | None = None):
        if not isinstance(horizon, bool):
            raise LearnerError(f"horizon must be True or False, got {check.described(horizon)}; play has the number")
        self.plans, self.memory = horizon, rounds_remembered(memory)
        self.size = check.whole(sample, "sample", LearnerError, low=1)
        self.predict = prediction(predict)

    def begin(self, problem, start, *, horizon, key):
        zeros = jnp.zeros(problem.constraints, tree.dtype(start))
        sample = Sample.empty(self.size, problem.constraints, start)
        left = None
        if self.plans and horizon is not None:
            left = (horizon if isinstance(horizon, Horizon) else Horizon(horizon)).rounds
        none = jnp.zeros((), jnp.int32)
        return Prices(zeros, sample, zeros, zeros, none, none, left)

    def multiplier(self, prices):
        return prices.prices

    def rounds_left(self, state):
        return None

    def learn(self, problem, state, expected, played, loss, values):
        old = state.prices
        if problem.constraints == 0:
            return eqx.tree_at(lambda p: p.rounds, old, old.rounds + 1)
        rounds, violation = old.rounds + 1, old.violation + values
        where = place(self.size, old.rounds, self.memory)
        is_due = rounds > old.due

        def work(_, carry):
            sample, prices, squares, due = carry
            sample = sample.store(problem, expected, played, old.rounds, where)
            state_now = Prices(prices, sample, violation, squares, rounds, due, old.horizon)
            found = prices, squares, due
            return sample, *jax.lax.cond(is_due, lambda: self.search(problem, state_now, state.start), lambda: found)

        # a loop of at most one step: most rounds have nothing to do, and a `cond` would copy the sample
        busy = (is_due | (where < self.size)).astype(jnp.int32)
        sample, prices, squares, due = jax.lax.fori_loop(0, busy, work, (old.sample, old.prices, old.squares, old.due))
        return Prices(prices, sample, violation, squares, rounds, due, old.horizon)

    def search(self, problem: Problem, state: Prices, start: Point, patience: float = _PATIENT) -> tuple[Any, Any, Any]:
        """(prices, squares, the round after which to search next)."""
        sample, domain, unravel = state.sample, problem.domain, unravel_like(start)
        played = state.rounds.astype(state.prices.dtype)
        ahead = played if state.horizon is None else jnp.maximum(state.horizon.astype(played.dtype) - played, 1)
        window = self.memory
        if state.horizon is not None:
            long = jnp.maximum(_PLANNED * ahead, 2 * _SHORTEST)
            window = long if window is None else jnp.minimum(window, long)
        window = None if window is None else window.astype(played.dtype)
        units = sample.units(sample.weights(state.rounds, window))
        several = problem.constraints > 1
        size = min(_PART, self.size) if several else self.size
        filled = jnp.clip(state.rounds - size + 1, 1, self.size - size + 1)

        def spending(prices, number=0, of_loss=1.0):
            part = sample.part((number * size) % filled, size) if several else sample
            return part.spending(domain, unravel, part.weights(state.rounds, window), prices, of_loss)

        slack = -spending(units, of_loss=0.0)  # of the answers that spend least
        if state.horizon is None:
            soon = jnp.maximum(played / _SURPLUS, _SHORTEST)
            tau = jnp.where(state.violation > 0, jnp.maximum(played / _DEBT, _SHORTEST), soon)
            target = jnp.clip(-state.violation / tau, -_LEAST * jnp.abs(slack), _MOST * jnp.abs(slack))
        else:
            eager = _EAGER if self.memory is None else _ALERT
            soon = jnp.maximum(ahead / eager, jnp.minimum(ahead, _SHORTEST))
            tau = jnp.where(state.violation > 0, ahead * (1 + patience * ahead / (played + ahead)), soon)
            target = jnp.maximum(-state.violation / tau, -(1 - 1e-6) * slack)
        if several:
            rate = 0.3 / jnp.sqrt(1 + jnp.minimum(played, ahead) / 20)
            prices, squares = several_prices(spending, target, state.prices, units, state.squares, rate, _STEPS)
        else:
            prices, squares = one_price(spending, target[0], state.prices[0], units[0])[None], state.squares
        prices = jnp.where(jnp.isfinite(prices), prices, state.prices)
        pause = jnp.minimum(jnp.minimum(played, ahead) / _OFTEN, soon / 2)
        if self.memory is not None:
            pause = jnp.minimum(pause, self.memory.astype(pause.dtype) / 32)
        due = state.rounds + jnp.maximum(pause, 1).astype(jnp.int32) - 1
        return prices, squares, due
