"""Any primal with any dual, round by round."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ..core import check, tree
from ..core.facts import Facts
from ..dual.base import AbstractDual, Weights
from ..errors import LearnerError
from ..primal.base import AbstractPrimal, RoundBounds
from ..problem.problem import Problem, Regularity
from .base import AbstractLearner, first_decision, outcome, planned, point_played
from .reveal import Moved, Reveal, gradient_norms


class _State(eqx.Module):
    primal: Any
    dual: Any
    rule: AbstractDual  # the dual's rule, tuned for this game
    horizon: Int[Array, ""]
    capacity: int = eqx.field(static=True)
    round: Int[Array, ""]  # t
    key: Any


class AbstractPrimalDual(AbstractLearner):
    """A primal and a dual that both move every round. What differs is how they are tuned: `rule` and `bounds`."""

    primal: eqx.AbstractVar[Any]

    @abc.abstractmethod
    def rule(self, problem: Problem, horizon: Array) -> AbstractDual:
        """The dual's rule for a game of `horizon` rounds."""

    @abc.abstractmethod
    def bounds(self, problem: Problem) -> Callable[[Weights, Array, int], RoundBounds]:
        """(weights, horizon, capacity) -> bounds on the loss of a round with these weights."""

    @property
    def factored(self):
        return self.primal.factored

    def init(self, problem, *, key, horizon=None, start=None):
        plan = planned(horizon, type(self).__name__)
        start, rule = first_decision(problem, start), self.rule(problem, plan.rounds)
        dual = rule.init(problem.constraints, tree.dtype(start))
        bounds = self.bounds(problem)(rule.forecast(dual), plan.rounds, plan.capacity)
        primal = self.primal.init(problem.domain, bounds, start=start, key=jax.random.fold_in(key, 0))
        return _State(primal, dual, rule, plan.rounds, plan.capacity, jnp.ones((), jnp.int32), key)

    def decision(self, state):
        return self.primal.decision(state.primal)

    def observe(self, problem, state, round, *, played=None):
        rule, played = state.rule, point_played(played, self.decision(state))
        loss, values, pull = problem.linearize(played, round)
        weights, dual = rule.weigh(state.dual, values, lambda: gradient_norms(problem, round, played))
        revealed = Reveal(problem, round, weights, played, pull)
        bounds = self.bounds(problem)(rule.forecast(dual), state.horizon, state.capacity)
        key = jax.random.fold_in(state.key, state.round)
        primal, cost = self.primal.step(problem.domain, state.primal, revealed, bounds, key=key)
        dual = rule.settle(dual, Moved(revealed, values, self.primal.decision(primal)))
        left = self.rounds_left(state)
        state = _State(primal, dual, rule, state.horizon, state.capacity, state.round + 1, state.key)
        return state, outcome(loss, values, weights, cost, left)

    def rounds_left(self, state):
        return state.horizon - state.round + 1


class PrimalDual(AbstractPrimalDual):
    """Any primal with any dual, as they are.

    The primal sees h_t = a f_t + <b, g_t> with the dual's weights (a, b), and is told the bounds D(a + sum b)
    and L(a + sum b) before each round. Carries no theorem of its own.

    >>> import cocoax as cx
    >>> learner = cx.learners.PrimalDual(cx.primal.OCG(), cx.dual.RegularizedAscent(theta=1.0, mu=0.1))
    """

    facts = Facts(
        cost="its primal's and its dual's",
        guarantee="those of its parts, where they have a common proof",
        cites=("cocoax",),
    )

    primal: AbstractPrimal
    dual: AbstractDual

    def __init__(self, primal: Any, dual: Any):
        check.instance(primal, AbstractPrimal, LearnerError, "PrimalDual needs one of cocoax.primal first")
        check.instance(dual, AbstractDual, LearnerError, "PrimalDual needs one of cocoax.dual second")
        if not dual.predictable and not primal.deterministic:
            raise LearnerError(
                f"{type(dual).__name__} weighs with the current round, which only a deterministic primal allows; "
                f"{type(primal).__name__} draws coins"
            )
        if not dual.is_tuned:
            raise LearnerError(f"PrimalDual knows no theorem to tune {type(dual).__name__} by; give it its numbers")
        self.primal = primal
        self.dual = dual

    def rule(self, problem, horizon):
        return self.dual

    def bounds(self, problem):
        return bounds_by_weights(problem.constants(self.primal.norm, self.primal.needs, type(self.primal).__name__))


def bounds_by_weights(regularity: Regularity | None):
    """D and L of a weighted sum: the sum of the weights times those of its parts."""

    def bound(value, total):
        return jnp.full((), jnp.inf, total.dtype) if value is None else value.astype(total.dtype) * total

    def bounds(weights, horizon, capacity):
        total = weights.total()
        lipschitz, smoothness = (None, None) if regularity is None else (regularity.lipschitz, regularity.smoothness)
        return RoundBounds(bound(lipschitz, total), bound(smoothness, total), horizon, capacity)

    return bounds
