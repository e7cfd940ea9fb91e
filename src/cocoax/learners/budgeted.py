"""Budgets that are never exceeded, around any learner that answers requests."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..core import check, tree
from ..core.facts import Facts
from ..core.sums import as_rounded, exact_add
from ..core.tree import ratio
from ..domains.base import Point
from ..errors import LearnerError, ProblemError
from ..problem.functions import function_of
from .base import AbstractLearner, as_point, point_played
from .budgets import AbstractBudgetedLearner, Spending
from .capped import amounts, contains, entries


class _State(eqx.Module):
    learner: Any
    safe: Point
    spent: Float[Array, " k"]
    rest: Float[Array, " k"]  # of the sum: spent + rest is exact
    limit: Float[Array, " k"]  # the budget is limit + beyond
    beyond: Float[Array, " k"]
    rounds: Int[Array, ""]  # played or waiting


class Budgeted(AbstractBudgetedLearner):
    r"""Any learner that answers requests, within budgets that are never exceeded.

    An answer x is played if $S + s(x) \le b_i$ for every budget $b_i$, where S is what was spent so far and what waits
    (below), and s(x) what the answer may spend at most. If not, $(1-a)\,x_0 + ax$ is played with the largest such a,
    $x_0$ being the safe answer; and $x_0$ itself where answers must be vertices (`Problem(integral=True)`).

    *Proven*, for every sequence: if the safe answer spends nothing, no answer spends more than `most` says, and the
    answers are played, then what was spent never exceeds a budget, nor its plan, up to rounding of `spend` and of the
    plan's part of the budget. In sessions with late feedback every ticket reserves what it may spend until its round
    is observed; one that expires or is skipped counts as played, at its worst. The learner is told what was played.
    Let this be the outermost wrapper.

    **Arguments:**

    - `learner`: one that answers requests, such as `AutoPrice()`.
    - `spend`: `(x, round) ->` what is spent, a number or one for each budget.
    - `budget`: the amount for the whole game; one for each budget if there are several. Campaigns of a `Fleet` may
      each have their own: `fleet.begin(names, budgets=...)`, `fleet.change(names, budgets=...)`.
    - `safe`: an answer that spends nothing.
    - `most`: `(x, request) ->` the most that may be spent, where the request does not show it; by default `spend`
      itself. It must be convex in x.
    - `plan`: what part of the budget may be spent by the end of each round: numbers that do not fall, from 0 to 1, such
      as a curve over the day. After the last one it stays as it is.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(2),
    ...     loss=lambda x, r: -r["value"] * x[1],
    ...     constraint=lambda x, r: r["cost"] * x[1] - 0.1,
    ...     request=True,
    ...     integral=True,
    ... )
    >>> learner = Budgeted(
    ...     cx.learners.AutoPrice(), spend=lambda x, r: r["cost"] * x[1], budget=20.0, safe=jnp.array([1.0, 0.0])
    ... )
    >>> keys = jax.random.split(jax.random.key(0))
    >>> rounds = {"value": jax.random.uniform(keys[0], (200,)), "cost": jax.random.uniform(keys[1], (200,))}
    >>> game = cx.play(problem, learner, rounds, key=jax.random.key(0))
    >>> spent = float(game.constraint.sum()) + 200 * 0.1
    >>> bool(19 < spent <= 20)
    True
    """

    facts = Facts(
        cost="its learner's, and what the answer would spend",
        guarantee="budgets and plans are never exceeded, with late feedback too, proven",
        cites=("cocoax",),
    )

    learner: AbstractLearner
    spend: Callable
    most: Callable | None
    budget: Float[Array, " k"]
    beyond: Float[Array, " k"]  # what rounding has taken from the budget
    plan: Float[Array, " T"] | None
    safe: Point

    def __init__(
        self, learner: Any, *, spend: Callable, budget: Any, safe: Any, most: Callable | None = None, plan: Any = None
    ):
        needed = "Budgeted needs one of cocoax.learners first"
        self.learner = check.instance(learner, AbstractLearner, LearnerError, needed)
        self.spend = _function(spend, "spend", "round")
        self.most = None if most is None else _function(most, "most", "request")
        self.budget = jnp.atleast_1d(amounts(budget, "budget"))
        self.beyond = _taken_by_rounding(budget, self.budget)
        self.plan = None if plan is None else _curve(plan)
        self.safe = jax.tree.map(entries, check.listed(safe))

    @property
    def integral(self):
        return self.learner.integral

    def check(self, problem):
        if not problem.has_requests:
            raise LearnerError("Budgeted must see what an answer may spend before it is played; give Problem(request=)")
        start = problem.domain.start()
        if not contains(problem.domain, as_point(self.safe, start, tree.dtype(start), "safe")):
            raise LearnerError("safe must lie in the domain; give an answer that spends nothing")
        self.learner.check(problem)

    def init(self, problem, *, key, horizon=None, start=None):
        self.check(problem)
        inner = self.learner.init(problem, key=key, horizon=horizon, start=start)
        like = self.learner.decision(inner)
        safe = as_point(self.safe, like, tree.dtype(like), "safe")
        zeros = jnp.zeros(self.budget.shape, tree.dtype(like))
        limits = _limits(self.budget, self.beyond, zeros.dtype)
        return _State(inner, safe, zeros, zeros, *limits, jnp.zeros((), jnp.int32))

    @property
    def budgets(self):
        return self.budget.size

    def with_budget(self, state, near, beyond):
        limit, beyond = _limits(near, beyond, state.spent.dtype)
        return _State(state.learner, state.safe, state.spent, state.rest, limit, beyond, state.rounds)

    def spending(self, state):
        """In NumPy."""
        limit, beyond, spent, rest = (
            np.asarray(part, float) for part in (state.limit, state.beyond, state.spent, state.rest)
        )
        part = 1.0
        if self.plan is not None:
            part = np.asarray(self.plan, float)[np.minimum(state.rounds, len(self.plan) - 1)][..., None]
        return Spending(limit + beyond, part * (limit + beyond), spent + rest)

    def decision(self, state):
        return state.safe

    def decide(self, problem, state, request):
        wanted = self.learner.decide(problem, state.learner, request)
        room = -self._excess(state, jnp.zeros_like(state.spent))
        need = self._most(wanted, request, state)
        rounding = 1 - 16 * jnp.finfo(room.dtype).eps
        share = jnp.where(need > room, jnp.clip(rounding * ratio(room, need), 0, 1), 1).min(initial=1)
        if problem.integral:
            share = jnp.floor(share)
        mixed = tree.where(share >= 1, wanted, tree.mix(state.safe, wanted, share))
        fits = self._excess(state, self._most(mixed, request, state)) <= 0
        return tree.where(fits.all(), mixed, state.safe)

    def reserve(self, state, request, decision):
        most = jnp.maximum(self._most(decision, request, state), 0)
        return self._charged(state, state.learner, most)

    def observe(self, problem, state, round, *, played=None):
        if played is None:
            played = self.decide(problem, state, problem.request_of(round))
        played = point_played(played, state.safe)
        inner, outcome = self.learner.observe(problem, state.learner, round, played=played)
        return self._charged(state, inner, _amount(self.spend, played, round, state)), outcome

    def rounds_left(self, state):
        return self.learner.rounds_left(state.learner)

    def _charged(self, state, inner, amount):
        spent, rest = exact_add(state.spent, state.rest, amount)
        return _State(inner, state.safe, spent, rest, state.limit, state.beyond, state.rounds + 1)

    def _excess(self, state, amount):
        """By how much the budgets of this round would be exceeded."""
        limit, beyond = state.limit, state.beyond
        if self.plan is not None:
            part = self.plan[jnp.minimum(state.rounds, len(self.plan) - 1)].astype(limit.dtype)
            limit, beyond = part * limit, part * beyond
        total, rest = exact_add(state.spent, state.rest, amount)
        return (total - limit) + (rest - beyond)

    def _most(self, x, request, state):
        """What an answer may spend."""
        if self.most is not None:
            return _amount(self.most, x, request, state)
        try:
            return _amount(self.spend, x, request, state)
        except (KeyError, ProblemError) as error:
            raise LearnerError(
                f"spend needs more than the request shows ({error}); give most=, a function of (x, request)"
            ) from None


def _amount(function, x, seen, state):
    amount = jnp.atleast_1d(jnp.asarray(function(x, seen), state.spent.dtype))
    if amount.shape != state.spent.shape:
        raise LearnerError(
            f"spend and most must return {state.spent.size} amounts, one for each budget, got shape {amount.shape}"
        )
    return as_rounded(amount, state.rounds)


def _taken_by_rounding(budget, rounded) -> Float[Array, " k"]:
    """Without 64-bit numbers, a budget such as 16,777,219 is not one that JAX can keep."""
    if tree.is_traced(budget):
        return jnp.zeros_like(rounded)
    return jnp.asarray(np.atleast_1d(np.asarray(budget, float)) - np.asarray(rounded, float), rounded.dtype)


def _limits(number, beyond, dtype):
    """number + beyond as two numbers of this type: one next to it, and what is left."""
    if number.dtype == dtype:
        return number, beyond.astype(dtype)
    kind = jnp.finfo(dtype)
    rounded = jax.lax.reduce_precision(number, kind.nexp, kind.nmant)  # XLA may leave out conversions there and back
    return rounded.astype(dtype), (number - rounded).astype(dtype)


def _function(function, name, seen):
    try:
        return function_of(function, name, "x", seen)
    except ProblemError as error:
        raise LearnerError(str(error)) from None


def _curve(plan) -> Float[Array, " T"]:
    if not tree.is_traced(plan):
        parts = check.real(plan, "plan", LearnerError)
        if parts.ndim != 1 or not parts.size or not (np.diff(parts) >= 0).all() or parts[0] < 0 or parts[-1] > 1:
            raise LearnerError("plan must be numbers from 0 to 1 that do not fall, one for the end of each round")
    return jnp.asarray(plan, float)
