"""Games with movement: the state of a learner also holds the decision that was played last."""

from typing import Any

import equinox as eqx

from ..core import tree
from ..domains.base import Point
from ..learners.base import AbstractLearner, AbstractRecorder, as_point, first_decision
from ..learners.certified import Certified
from ..problem.problem import Problem
from .loop import observed


class _State(eqx.Module):
    learner: Any
    previous: Point  # before the first round: the start


class _Mover(AbstractRecorder):
    """Plays any learner on a problem with movement, with the last played decision as part of the state.

    In each round the learner sees the problem `after` that decision, so the recorded values include the true movement,
    although the learner does not know of it.
    """

    learner: AbstractLearner

    def init(self, problem, *, key, horizon=None, start=None):
        state = self.learner.init(problem, key=key, horizon=horizon, start=start)
        return _State(state, first_decision(problem, start))

    def decide(self, problem, state, request):
        return self.learner.decide(problem.after(state.previous), state.learner, request)

    def observe(self, problem, state, round, *, played=None):
        problem, kind = problem.after(state.previous), tree.dtype(state.previous)
        point = as_point(self.decision(state) if played is None else played, state.previous, kind, "played")
        learner, outcome = observed(problem, self.learner, state.learner, round, played)
        return _State(learner, point), outcome


def as_played(problem: Problem, learner: AbstractLearner, *, certify: bool = False) -> AbstractLearner:
    """The learner, wrapped as this problem needs it.

    Where movement counts it remembers the last decision; with `certify` it sums the tangents that certificates need.
    """
    if isinstance(learner, Certified):
        return Certified(as_played(problem, learner.learner))
    if problem.has_movement and not isinstance(learner, _Mover):
        learner = _Mover(learner)
    return Certified(learner) if certify else learner
