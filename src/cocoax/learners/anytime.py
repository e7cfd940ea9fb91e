"""Any learner that plans for a horizon, without one: epochs that double."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ..core import check, tree
from ..core.facts import Facts
from ..errors import LearnerError
from .base import AbstractLearner, Horizon


class _State(eqx.Module):
    learner: Any
    epoch: Int[Array, ""]  # 0, 1, ...
    length: Int[Array, ""]  # rounds of this epoch
    played: Int[Array, ""]  # of them so far
    key: Any


class Anytime(AbstractLearner):
    r"""Plays `learner` in epochs of n, 2n, 4n, ... rounds, each begun anew from the current decision.

    A learner with regret at most $cT^e$ when told T, here without it, after T rounds: at most
    $\frac1{2^e-1}c(T+n)^e$ at the end of an epoch, since $\sum_{i\le k}(2^in)^e \le \frac{(2^kn)^e}{1-2^{-e}}$ and
    $2^kn = \frac{T+n}2$. That is a factor 1.47 for $e=\frac34$ and 2.41 for $e=\frac12$. Inside an epoch it is at most
    $\frac1{1-2^{-e}}c(T+n)^e$ if its bound holds after every round of a plan, as those of LyapHard and LyapStoch
    do. The same goes for the violation, with c nondecreasing in T.
    LMOs with which a learner begins, before its first round, are not counted.

    **Arguments:**

    - `learner`: one of `cocoax.learners`.
    - `first`: n, the rounds of the first epoch.
    - `capacity`: the longest epoch. Sizes of arrays that depend on the horizon are chosen for it, from the beginning.
      Together the epochs hold $2n2^k - n$ rounds, where $n2^k$ is the longest epoch within the capacity; longer games
      are refused.

    >>> import cocoax as cx
    >>> learner = cx.learners.Anytime(cx.learners.PDOFW())
    """

    facts = Facts(
        cost="its learner's",
        guarantee="its learner's without a horizon, times 1/(2^e - 1) for an exponent e, proven",
        cites=("cocoax",),
    )

    learner: AbstractLearner
    first: Int[Array, ""]
    capacity: int = eqx.field(static=True)

    def __init__(self, learner: Any, *, first: Any = 16, capacity: int = 2**16):
        needed = "Anytime needs one of cocoax.learners"
        self.learner = check.instance(learner, AbstractLearner, LearnerError, needed)
        self.capacity = check.whole(capacity, "capacity", LearnerError, low=1)
        if self.capacity > 2**29:
            raise LearnerError(f"capacity must be at most {2**29}, got {capacity}")
        if not tree.is_traced(first) and not 1 <= check.whole(first, "first", LearnerError) <= self.capacity:
            raise LearnerError(f"first must be at least 1 round and at most the capacity {capacity}, got {first}")
        self.first = jnp.asarray(first, jnp.int32)

    def check(self, problem):
        self.learner.check(problem)

    def init(self, problem, *, key, horizon=None, start=None):
        return self._begin(problem, jnp.zeros((), jnp.int32), self.first, start, key)

    def decision(self, state):
        return self.learner.decision(state.learner)

    def decide(self, problem, state, request):
        return self.learner.decide(problem, state.learner, request)

    def observe(self, problem, state, round, *, played=None):
        learner, outcome = self.learner.observe(problem, state.learner, round, played=played)
        within = self.rounds_left(state) > 0
        going_on = _State(learner, state.epoch, state.length, state.played + 1, state.key)

        def begin():
            start = self.learner.decision(learner)
            return self._begin(problem, state.epoch + 1, 2 * state.length, start, state.key)

        state = jax.lax.cond(going_on.played == state.length, begin, lambda: going_on)
        return state, eqx.tree_at(lambda o: o.finite, outcome, outcome.finite & within)

    def rounds_left(self, state):
        epochs = 31 - jax.lax.clz(self.capacity // self.first)  # that can still be added to the first
        return 2 * self.first * 2**epochs - state.length - state.played

    def _begin(self, problem, epoch, length, start, key):
        horizon = Horizon(jnp.minimum(length, self.capacity), self.capacity)
        learner = self.learner.init(problem, key=jax.random.fold_in(key, epoch), horizon=horizon, start=start)
        return _State(learner, epoch, length, jnp.zeros((), jnp.int32), key)
