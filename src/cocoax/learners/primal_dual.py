"""Any primal with any dual, round by round."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import _tree as tree
from ..dual.base import AbstractDual
from ..errors import LearnerError
from ..primal.base import AbstractPrimal, Scale
from .base import AbstractLearner, Moved, Outcome, Reveal, first_decision, outcome, planned, point_played


class RoundsState(eqx.Module):
    """State of a primal and a dual that both move every round."""

    primal: Any
    dual: Any
    rule: AbstractDual  # the dual's rule, tuned for this game
    horizon: Int[Array, ""]
    capacity: int = eqx.field(static=True)
    round: Int[Array, ""]  # t
    key: Any

    def rounds_left(self):
        return self.horizon - self.round + 1


def begin_rounds(problem, primal, rule, scale_for, horizon, start, key) -> RoundsState:
    """`scale_for(weights, horizon, capacity)` bounds the next round's weighted loss."""
    start = first_decision(problem, start)
    dual = rule.init(problem.constraints, tree.dtype(start))
    scale = scale_for(rule.forecast(dual), horizon.rounds, horizon.capacity)
    state = primal.init(problem.domain, scale, start=start, key=jax.random.fold_in(key, 0))
    one = jnp.ones((), jnp.int32)
    return RoundsState(state, dual, rule, horizon.rounds, horizon.capacity, one, key)


def observe_round(problem, primal, scale_for, state: RoundsState, round, played) -> tuple[RoundsState, Outcome]:
    """Values, weigh, step, settle."""
    rule = state.rule
    played = point_played(played, primal.decision(state.primal))
    loss, values, pull = problem.linearize(played, round)
    weights, dual = rule.weigh(state.dual, values, None)
    revealed = Reveal(problem, round, weights, played, pull)
    scale = scale_for(rule.forecast(dual), state.horizon, state.capacity)
    key = jax.random.fold_in(state.key, state.round)
    next_primal, cost = primal.step(problem.domain, state.primal, revealed, scale, key=key)
    dual = rule.settle(dual, Moved(revealed, values, primal.decision(next_primal)))
    state = RoundsState(next_primal, dual, rule, state.horizon, state.capacity, state.round + 1, state.key)
    return state, outcome(loss, values, weights, cost)


class PrimalDual(AbstractLearner):
    """A primal and a dual that both move every round.

    The primal sees h_t = a f_t + <b, g_t> with the dual's weights (a, b), and is told the bounds D(a + sum b)
    and L(a + sum b) before each round. Carries no theorem of its own.

    >>> import cocoax as cx
    >>> learner = cx.learners.PrimalDual(cx.primal.OCG(), cx.dual.RegularizedAscent(theta=1.0, mu=0.1))
    """

    primal: AbstractPrimal
    dual: AbstractDual

    def __init__(self, primal, dual):
        if not dual.predictable and not primal.deterministic:
            raise LearnerError(
                f"{type(dual).__name__} weighs with the current round, which only a deterministic primal allows; "
                f"{type(primal).__name__} draws coins"
            )
        self.primal = primal
        self.dual = dual

    def _scale_for(self, problem):
        known = problem.constants(self.primal.norm, self.primal.needs, type(self.primal).__name__)
        return scaled_by_weights(known)

    def init(self, problem, *, key, horizon=None, start=None):
        horizon = planned(horizon, type(self.primal).__name__)
        return begin_rounds(problem, self.primal, self.dual, self._scale_for(problem), horizon, start, key)

    def decision(self, state):
        return self.primal.decision(state.primal)

    def observe(self, problem, state, round, *, played=None):
        return observe_round(problem, self.primal, self._scale_for(problem), state, round, played)

    def rounds_left(self, state):
        return state.rounds_left()


def scaled_by_weights(known):
    """D and L of a weighted sum: the sum of the weights times those of its parts."""

    def bound(value, total):
        return jnp.full((), jnp.inf, total.dtype) if value is None else value.astype(total.dtype) * total

    def scale_for(weights, horizon, capacity):
        total = weights.total()
        return Scale(bound(known.lipschitz, total), bound(known.smoothness, total), horizon, capacity)

    return scale_for
