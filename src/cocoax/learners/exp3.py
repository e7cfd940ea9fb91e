"""EXP3 with implicit exploration (Neu, 2015) against constraints with a price: bandit feedback without context."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import tree
from ..core.facts import Facts
from ..core.tree import ratio
from ..domains import ProbabilitySimplex
from ..domains.base import Point
from ..dual.base import Weights
from ..errors import LearnerError
from ..primal.base import cost
from .base import AbstractLearner, first_decision, outcome, point_played


class _State(eqx.Module):
    point: Point  # the vertex that is played
    chance: Float[Array, " k"]  # of each vertex to have been drawn
    losses: Float[Array, " k"]  # sums of importance-weighted losses
    prices: Float[Array, " m"]
    mean: Float[Array, ""]  # of f so far
    squares: Float[Array, " 1+m"]  # sums of (f - mean)^2 and of g^2
    low: Float[Array, ""]  # the range of f + <prices, g> so far
    high: Float[Array, ""]
    rounds: Int[Array, ""]
    key: Any


class EXP3(AbstractLearner):
    r"""Draws one vertex of a simplex a round, and learns from what that vertex came to alone.

    Vertex k has the chance $p_k\propto\exp(-\eta_t\hat L_k)$. With $\ell=f(x_t)+\langle\lambda_t,g(x_t)\rangle$,

    $\hat L_k \leftarrow \hat L_k + \frac{\ell-\ell_{\min}}{p_k+\eta_t/2}[k=k_t],\qquad
    \eta_t = \sqrt{\frac{2\ln K}{Kt}},\qquad \lambda_{t+1} = [\lambda_t + \mu_tg(x_t)]_+,\qquad
    \mu_t = \frac{\sigma_f}{\sigma_g^2\sqrt t},$

    where $\eta$ is divided by the range of $\ell$ so far and $\sigma$ are the spreads of f and g so far: no constants,
    no horizon. Of a round it uses `problem.values(played, round)` and nothing else. A round in which no vertex was
    played teaches the price alone.

    *In print*: regret $\sqrt{2KT\ln K}$ without constraints, with high probability. *Measured*: with constraints.
    For requests with features there is `BanditPrice`.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: jnp.vdot(r, x), integral=True)
    >>> losses = jax.random.uniform(jax.random.key(0), (3000, 3)) + jnp.array([[0.4, 0.0, 0.4]])
    >>> game = cx.play(problem, EXP3(), losses, key=jax.random.key(0))
    >>> bool(game.average[1] > 0.8)
    True
    """

    facts = Facts(
        cost="k numbers, one evaluation",
        guarantee="bandit feedback, no constants, no horizon: measured",
        cites=("neu2015",),
    )

    @property
    def integral(self):
        return True

    def check(self, problem):
        if not isinstance(problem.domain, ProbabilitySimplex):
            raise LearnerError("EXP3 plays on a ProbabilitySimplex only")

    def init(self, problem, *, key, horizon=None, start=None):
        self.check(problem)
        start = first_decision(problem, start)
        kind, count = start.dtype, len(start)
        zero, zeros = jnp.zeros((), kind), jnp.zeros(problem.constraints, kind)
        chance, own = jnp.full(count, 1 / count, kind), jax.random.fold_in(key, 0)
        squares = jnp.zeros(1 + problem.constraints, kind)
        first = _drawn(problem.domain, chance, own)
        none = jnp.zeros_like(chance)
        return _State(first, chance, none, zeros, zero, squares, zero, zero, jnp.zeros((), jnp.int32), key)

    def decision(self, state):
        return state.point

    def observe(self, problem, state, round, *, played=None):
        played = point_played(played, state.point)
        loss, values = problem.values(played, round)
        kind, rounds = loss.dtype, state.rounds + 1
        t, count = rounds.astype(kind), len(state.chance)
        came_to = loss + state.prices @ values
        low = jnp.where(state.rounds == 0, came_to, jnp.minimum(state.low, came_to))
        high = jnp.where(state.rounds == 0, came_to, jnp.maximum(state.high, came_to))
        rate = jnp.sqrt(2 * jnp.log(jnp.asarray(count, kind)) / (count * t))
        answer = jnp.argmax(played)
        whole = played[answer] >= played.sum() * (1 - 1e-6)
        estimate = jnp.where(whole, (came_to - low) / (state.chance[answer] + rate / 2), 0)
        losses = state.losses.at[answer].add(estimate)
        chance = jax.nn.softmax(-ratio(rate, high - low) * losses)

        mean = state.mean + (loss - state.mean) / t
        spread = (loss - state.mean) * (loss - mean)
        squares = state.squares + jnp.concatenate([spread[None], values**2])
        step = ratio(jnp.sqrt(squares[0] / t), squares[1:] / t) / jnp.sqrt(t)
        prices = jnp.maximum(state.prices + step * values, 0)
        point = _drawn(problem.domain, chance, jax.random.fold_in(state.key, rounds))
        new = _State(point, chance, losses, prices, mean, squares, low, high, rounds, state.key)
        weights = Weights(jnp.ones((), kind), state.prices)
        return new, outcome(loss, values, weights, cost(finite=tree.all_finite(chance)))


def _drawn(domain, chance, key):
    """A vertex, drawn with these chances."""
    answer = jax.random.categorical(key, jnp.log(chance))
    vertex = domain.vertex().dense()
    return jnp.where(jnp.arange(len(chance)) == answer, vertex.sum(), 0).astype(chance.dtype)
