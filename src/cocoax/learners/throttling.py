"""Throttling: every request has its best answer, or none at all, by a coin."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import check, tree
from ..core.facts import Facts
from ..core.tree import ratio
from ..domains.base import Point
from ..errors import LearnerError
from ..problem.lagrangian import Answer, best_answer
from .base import Horizon, as_point
from .capped import contains, entries
from .pricing import AbstractPricing, prediction


class _Coin(eqx.Module):
    share: Float[Array, ""]  # of the requests that are answered
    answered: Float[Array, " m"]  # mean g of the best answers
    refused: Float[Array, " m"]  # mean g of the safe answer
    violation: Float[Array, " m"]
    rounds: Int[Array, ""]
    horizon: Int[Array, ""] | None
    key: Any


class Throttling(AbstractPricing):
    r"""With probability $p_t$ the best answer of a request, as if nothing had a price; else the safe answer.

    $p_t$ is the largest share at which the means of g so far, of the best and of the safe answers, use up what is left:
    $p\,\bar g(\text{best}) + (1-p)\,\bar g(\text{safe}) \le -v_t/n_t$, with $v_t$ the violation so far and $n_t$ the
    rounds left; without a horizon, those played. Plain throttling, a baseline: no steps, and no price of a request.

    **Arguments:**

    - `safe`: an answer that keeps the constraints.
    - `predict`: as in `AutoPrice`.

    >>> import cocoax as cx
    >>> import jax.numpy as jnp
    >>> nothing = jnp.array([1.0, 0.0, 0.0])  # the first of three answers costs nothing
    >>> learner = cx.learners.Throttling(safe=nothing)
    """

    facts = Facts(cost="1 LMO", guarantee="a baseline without prices", cites=("karande2013",))

    safe: Point
    predict: Callable | None

    def __init__(self, safe: Any, *, predict: Callable | None = None):
        self.safe, self.predict = jax.tree.map(entries, check.listed(safe)), prediction(predict)

    def check(self, problem):
        super().check(problem)
        start = problem.domain.start()
        if not contains(problem.domain, as_point(self.safe, start, tree.dtype(start), "safe")):
            raise LearnerError("safe must lie in the domain; give an answer that keeps the constraints")

    def begin(self, problem, start, *, horizon, key):
        zeros = jnp.zeros(problem.constraints, tree.dtype(start))
        left = None
        if horizon is not None:
            left = (horizon if isinstance(horizon, Horizon) else Horizon(horizon)).rounds
        return _Coin(jnp.ones((), zeros.dtype), zeros, zeros, zeros, jnp.zeros((), jnp.int32), left, key)

    def multiplier(self, prices):
        return jnp.zeros_like(prices.violation)

    def answer(self, problem, state, expected):
        coin = state.prices
        wanted = best_answer(problem, expected, self.multiplier(coin), start=state.start)
        drawn = jax.random.uniform(jax.random.fold_in(coin.key, coin.rounds), dtype=coin.share.dtype)
        x = tree.where(drawn < coin.share, wanted.x, self._safe(state))
        return Answer(x, *problem.values(x, expected), wanted.proof)

    def _safe(self, state):
        return as_point(self.safe, state.start, tree.dtype(state.start), "safe")

    def learn(self, problem, state, expected, played, loss, values):
        old, kind = state.prices, values.dtype
        rounds = old.rounds + 1
        wanted = best_answer(problem, expected, self.multiplier(old), start=state.start).constraint
        refused = problem.values(self._safe(state), expected)[1]
        answered = old.answered + (wanted - old.answered) / rounds.astype(kind)
        refused = old.refused + (refused - old.refused) / rounds.astype(kind)
        violation = old.violation + values
        left = rounds if old.horizon is None else jnp.maximum(old.horizon - rounds, 1)
        room = -violation / left.astype(kind) - refused
        share = jnp.where(answered > refused, ratio(room, answered - refused), 1).min(initial=1)
        return _Coin(jnp.clip(share, 0, 1), answered, refused, violation, rounds, old.horizon, old.key)
