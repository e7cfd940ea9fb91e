"""A hard promise on the violation, around any learner."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..core import check, tree
from ..core.facts import Facts
from ..core.sums import compensated_add
from ..domains.base import Point
from ..errors import DomainError, LearnerError, ProblemError
from .base import AbstractLearner, as_point, point_played


class _State(eqx.Module):
    learner: Any
    safe: Point
    violation: Float[Array, " m"]  # so far
    lost: Float[Array, " m"]  # what rounding has taken from it
    bound: Float[Array, " m"]


class Capped(AbstractLearner):
    r"""Any learner, mixed with a safe decision so that the running violation never exceeds a limit.

    In a round that begins with the violation $V_i = \sum_{s<t} g_{s,i}(x_s)$ the decision is $(1-a)\,s + a\,x$, where
    s is the safe decision, x the learner's own, and with limits $b_i$ and margins $m_i$

    $a = \min_i\ \mathrm{clip}\left(\frac{b_i - V_i + m_i}{G_i+m_i},\, 0,\, 1\right).$

    Proven, up to rounding, in every environment, however it answers: if $g_{t,i}(s)\le-m_i$ and $g_{t,i}\le G_i$ on
    the domain in every round, and the decisions are played, then $V_i\le b_i$ after every round, since $g_t$ is convex:
    $g_t((1-a)s+ax) \le aG-(1-a)m$. The learner is told what was played. Its own guarantees are not those of the
    mixture: a tight limit costs regret. With late feedback (`Session(pending=n)`) decisions that wait are not in V, so
    this is not proven: each of up to n may add $G_i$. `Budgeted` sets aside what waits.

    With `Problem(request=True)` the values of g are known before the decision, so no bound is needed: a is the largest
    with $V_i + (1-a)g_{t,i}(s) + ag_{t,i}(x) \le b_i$. Where decisions must be vertices (`integral`), a is 0 or 1.

    **Arguments:**

    - `learner`: one of `cocoax.learners`.
    - `safe`: a decision that keeps the constraints in every round.
    - `limit`: what the running sum of g may come to; one number, or one for each constraint.
    - `bound`: G, an upper bound on all values of g; by default the `constraint_bound` of the problem's regularity. With
      `request=True` it is not used.
    - `margin`: by how much the safe decision keeps the constraints. With a margin, room that was lost comes back.

    >>> import jax.numpy as jnp
    >>> import cocoax as cx
    >>> learner = Capped(cx.learners.Auto(), safe=jnp.zeros(10), limit=5.0, bound=2.0)
    """

    facts = Facts(
        cost="its learner's", guarantee="the running violation never exceeds a limit, proven", cites=("cocoax",)
    )

    learner: AbstractLearner
    safe: Point
    limit: Float[Array, "..."]
    bound: Float[Array, "..."] | None
    margin: Float[Array, "..."]

    def __init__(self, learner: Any, *, safe: Any, limit: Any, bound: Any = None, margin: Any = 0.0):
        self.learner = check.instance(
            learner, AbstractLearner, LearnerError, "Capped needs one of cocoax.learners first"
        )
        self.safe = jax.tree.map(entries, check.listed(safe))
        self.limit = amounts(limit, "limit")
        self.bound = None if bound is None else amounts(bound, "bound")
        self.margin = amounts(margin, "margin")

    @property
    def integral(self):
        return self.learner.integral

    def check(self, problem):
        if problem.integral and not problem.has_requests:
            raise LearnerError("Capped mixes vertices, but Problem(integral=True) needs one vertex; leave out Capped")
        start = problem.domain.start()
        safe = as_point(self.safe, start, tree.dtype(start), "safe")
        if not contains(problem.domain, safe):
            raise LearnerError("safe must lie in the domain; give a decision that keeps all constraints")
        self.learner.check(problem)

    def init(self, problem, *, key, horizon=None, start=None):
        inner = self.learner.init(problem, key=key, horizon=horizon, start=start)
        like = self.learner.decision(inner)
        safe = as_point(self.safe, like, tree.dtype(like), "safe")
        zeros = jnp.zeros(problem.constraints, tree.dtype(like))
        bound = jnp.zeros(()) if problem.request is True else self._bound(problem)
        for name, amounts in (("limit", self.limit), ("bound", bound), ("margin", self.margin)):
            if amounts.shape not in ((), zeros.shape):
                raise LearnerError(f"{name} must be one number or {zeros.size}, one for each constraint")
        return _State(inner, safe, zeros, zeros, zeros + bound.astype(zeros.dtype))

    def _bound(self, problem):
        if self.bound is not None:
            return self.bound
        bounds = [item.constraint_bound for item in problem.regularity if item.constraint_bound is not None]
        if not bounds:
            raise ProblemError(
                "Capped needs an upper bound on the constraint values; give Capped(bound=...), or "
                "Problem(regularity=Regularity(constraint_bound=...))"
            )
        return bounds[0]

    def decision(self, state):
        return self._mixed(state, self.learner.decision(state.learner))

    def decide(self, problem, state, request):
        decision = self.learner.decide(problem, state.learner, request)
        if problem.request is not True:
            return self._mixed(state, decision, whole=problem.integral)
        own, safe = (problem.values(x, request)[1] for x in (decision, state.safe))
        room = self.limit.astype(own.dtype) - state.violation + state.lost
        rounding = 1 - 16 * jnp.finfo(own.dtype).eps
        part = jnp.where(own > room, jnp.clip(rounding * tree.ratio(room - safe, own - safe), 0, 1), 1).min(initial=1)
        return _mixture(state.safe, decision, part, problem.integral)

    def _mixed(self, state, decision, whole=False):
        """As much of the learner's decision as there is room for; the rest is the safe one."""
        dtype = state.violation.dtype
        margin, limit = self.margin.astype(dtype), self.limit.astype(dtype)
        rounding = 1 - 16 * jnp.finfo(dtype).eps
        most = jnp.maximum(state.bound + margin, jnp.finfo(dtype).tiny)
        room = rounding * (limit - state.violation + margin) / most
        return _mixture(state.safe, decision, jnp.clip(room, 0, 1).min(initial=1), whole)

    def observe(self, problem, state, round, *, played=None):
        if played is None and problem.has_requests:
            played = self.decide(problem, state, problem.request_of(round))
        played = point_played(played, self.decision(state))
        inner, outcome = self.learner.observe(problem, state.learner, round, played=played)
        violation, lost = compensated_add(state.violation, state.lost, outcome.constraint)
        bound = jnp.maximum(state.bound, outcome.constraint)  # raised where it was too low
        return _State(inner, state.safe, violation, lost, bound), outcome

    def rounds_left(self, state):
        return self.learner.rounds_left(state.learner)


def _mixture(safe, decision, part, whole: bool):
    """(1 - part) safe + part decision; one of them, if it must be `whole`."""
    return tree.where(part >= 1, decision, safe) if whole else tree.mix(safe, decision, part)


def contains(domain, point) -> bool:
    """Whether the point lies in the domain; True where that cannot be told now."""
    try:
        inside = domain.contains(point)
    except DomainError:
        return True
    return tree.is_traced(inside) or bool(inside)


def entries(leaf):
    """A part of the safe decision."""
    if not (tree.is_traced(leaf) or np.isfinite(check.real(leaf, "safe", LearnerError)).all()):
        raise LearnerError(f"safe must be finite, got {check.described(leaf)}")
    return jnp.asarray(leaf)


def amounts(value, name):
    """One number, or one for each constraint; all are at least 0."""
    if not tree.is_traced(value):
        numbers = check.real(value, name, LearnerError)
        if numbers.ndim > 1 or not (np.isfinite(numbers).all() and (numbers >= 0).all()):
            raise LearnerError(
                f"{name} must be a number >= 0, or one for each constraint, got {check.described(value)}"
            )
    return jnp.asarray(value, float)
