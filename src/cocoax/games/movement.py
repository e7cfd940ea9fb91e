"""Games with movement: the state of a learner also holds the decision that was played last."""

from typing import Any

import equinox as eqx

from ..core import tree
from ..domains.base import Point
from ..learners.base import AbstractLearner, as_point, first_decision
from ..learners.certified import Certified
from ..problem.problem import Problem
from .loop import observed


class _State(eqx.Module):
    learner: Any
    previous: Point  # before the first round: the start


class _Mover(AbstractLearner):
    """Plays any learner on a problem with movement, with the last played decision as part of the state.

    In each round the learner sees the problem `after` that decision, so the recorded values include the true movement,
    although the learner does not know of it.
    """

    learner: AbstractLearner

    @property
    def factored(self):
        return self.learner.factored

    def check(self, problem):
        self.learner.check(problem)

    def init(self, problem, *, key, horizon=None, start=None):
        state = self.learner.init(problem, key=key, horizon=horizon, start=start)
        return _State(state, first_decision(problem, start))

    def decision(self, state):
        return self.learner.decision(state.learner)

    def decide(self, problem, state, request):
        return self.learner.decide(problem.after(state.previous), state.learner, request)

    @property
    def reserves(self):
        return self.learner.reserves

    def reserve(self, problem, state, request, decision):
        problem = problem.after(state.previous)
        return _State(self.learner.reserve(problem, state.learner, request, decision), state.previous)

    @property
    def budgets(self):
        return self.learner.budgets

    def with_budget(self, state, near, beyond):
        return _State(self.learner.with_budget(state.learner, near, beyond), state.previous)

    def spending(self, state):
        return self.learner.spending(state.learner)

    def observe(self, problem, state, round, *, played=None):
        problem, kind = problem.after(state.previous), tree.dtype(state.previous)
        point = as_point(self.decision(state) if played is None else played, state.previous, kind, "played")
        learner, outcome = observed(problem, self.learner, state.learner, round, played)
        return _State(learner, point), outcome

    def rounds_left(self, state):
        return self.learner.rounds_left(state.learner)


def as_played(problem: Problem, learner: AbstractLearner, *, certify: bool = False) -> AbstractLearner:
    """The learner, wrapped as this problem needs it.

    Where movement counts it remembers the last decision; with `certify` it sums the tangents that certificates need.
    """
    if isinstance(learner, Certified):
        return Certified(as_played(problem, learner.learner))
    if problem.has_movement and not isinstance(learner, _Mover):
        learner = _Mover(learner)
    return Certified(learner) if certify else learner


def own(learner: AbstractLearner) -> AbstractLearner:
    """The learner that the user gave, without such wrappers."""
    return own(learner.learner) if isinstance(learner, _Mover | Certified) else learner
