"""Any learner that also keeps what its rounds prove about its regret."""

from typing import Any

import equinox as eqx

from ..core import check, tree
from ..core.facts import Facts
from ..errors import LearnerError
from ..problem.minorants import Minorants
from .base import AbstractLearner, as_point, first_decision


class CertifiedState(eqx.Module):
    learner: Any
    minorants: Minorants


class Certified(AbstractLearner):
    r"""Any learner, which also keeps tangents of its losses and constraints: they bound its regret at any time.

    Decisions are those of `learner`. It is what `play(..., certify=True)` and `Session(..., certify=True)` play;
    `game.certificate()` and `session.certificate()` then give the bound (`Certificate`). A round costs one gradient of
    f and one of each g, which compiled code shares with the learner, and four additions for each of their entries.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.ProbabilitySimplex(2), lambda x, cost: jnp.vdot(cost, x))
    >>> costs = jnp.tile(jnp.array([0.0, 1.0]), (100, 1))
    >>> game = cx.play(problem, Certified(cx.learners.Auto()), costs, key=jax.random.key(0))
    >>> bool(game.certificate().regret >= game.loss.sum())  # the best fixed decision costs nothing
    True
    """

    facts = Facts(
        cost="its learner's, and one gradient of f and of each g",
        guarantee="its learner's; and its regret so far is known, proven",
        cites=("cocoax",),
    )

    learner: AbstractLearner

    def __init__(self, learner: Any):
        needed = "Certified needs one of cocoax.learners"
        self.learner = check.instance(learner, AbstractLearner, LearnerError, needed)

    def check(self, problem):
        self.learner.check(problem)

    def init(self, problem, *, key, horizon=None, start=None):
        state = self.learner.init(problem, key=key, horizon=horizon, start=start)
        return CertifiedState(state, Minorants.none(problem, first_decision(problem, start)))

    def decision(self, state):
        return self.learner.decision(state.learner)

    def decide(self, problem, state, request):
        return self.learner.decide(problem, state.learner, request)

    def observe(self, problem, state, round, *, played=None):
        like = state.minorants.like
        point = self.decision(state) if played is None else as_point(played, like, tree.dtype(like), "played")
        learner, outcome = self.learner.observe(problem, state.learner, round, played=played)
        minorants = state.minorants.with_round(problem, point, round, outcome)
        return CertifiedState(learner, minorants), outcome

    def rounds_left(self, state):
        return self.learner.rounds_left(state.learner)
