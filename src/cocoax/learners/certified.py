"""Any learner that also keeps what its rounds prove about its regret."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ..core import check, tree
from ..core.facts import Facts
from ..errors import LearnerError
from ..problem.minorants import Minorants
from ..problem.policy_sums import PolicySums
from ..problem.problem import Problem
from .base import AbstractLearner, AbstractRecorder, as_point, first_decision


class CertifiedState(eqx.Module):
    learner: Any
    minorants: Minorants
    policy: PolicySums | None  # where requests are seen first

    def regret_bound(self, problem: Problem, *, policy: bool = False) -> Float[Array, ""]:
        """A proven bound on the regret so far, in compiled code; with `policy`, against the best policy.

        Infinite where nothing is proven.
        """
        if policy and self.policy is not None:
            return self.minorants.total_loss - self.policy.best_lower_bound()
        return self.minorants.good_regret_bound(problem.domain)


class Certified(AbstractRecorder):
    r"""Any learner, which also keeps tangents of its losses and constraints: they bound its regret at any time.

    Decisions are those of `learner`. It is what `play(..., certify=True)` and `Session(..., certify=True)` play;
    `game.certificate()` and `session.certificate()` then give the bound (`Certificate`). A round costs one gradient of
    f and one of each g, which compiled code shares with the learner, and an addition for each of their entries.
    Where requests are seen first, a round takes 26 more LMOs, and the regret against the best policy is known too.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.ProbabilitySimplex(2), lambda x, cost: jnp.vdot(cost, x))
    >>> costs = jnp.tile(jnp.array([0.0, 1.0]), (100, 1))
    >>> game = cx.play(problem, Certified(cx.learners.Auto()), costs, key=jax.random.key(0))
    >>> bool(abs(game.certificate().regret - game.loss.sum()) < 1e-4)  # rounds are linear, and the best costs nothing
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

    def init(self, problem, *, key, horizon=None, start=None):
        state = self.learner.init(problem, key=key, horizon=horizon, start=start)
        first = first_decision(problem, start)
        policy = PolicySums.none(problem, first) if _has_policies(problem) else None
        return CertifiedState(state, Minorants.none(problem, first), policy)

    def observe(self, problem, state, round, *, played=None):
        like = state.minorants.like
        point = self.decision(state) if played is None else as_point(played, like, tree.dtype(like), "played")
        learner, outcome = self.learner.observe(problem, state.learner, round, played=played)
        minorants = state.minorants.with_round(problem, point, round, outcome)
        policy = None if state.policy is None else state.policy.with_round(problem, point, round, outcome.multiplier)
        return CertifiedState(learner, minorants, policy), outcome


def _has_policies(problem: Problem) -> bool:
    """Whether a policy, one decision for each round, is a comparator: with movement its rounds are no sum."""
    return problem.has_requests and not problem.has_movement
