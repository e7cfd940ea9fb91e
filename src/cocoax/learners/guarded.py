"""A theorem around any learner: one that is proven takes over when the candidate's certificate fails."""

from fractions import Fraction
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..core import check, tree
from ..core.facts import Facts
from ..core.parameters import parameter, positive_parameter
from ..errors import LearnerError
from ..problem.minorants import Minorants
from ..theory.guard import LARGEST_MULTIPLIER
from .auto import Auto
from .base import AbstractLearner, Horizon, Outcome, as_point, first_decision
from .lyapunov import LyapStoch


class _State(eqx.Module):
    candidate: Any
    fallback: Any
    switched: Bool[Array, ""]
    round: Int[Array, ""]  # how many were played
    minorants: Minorants  # of the candidate's rounds
    gradients: Float[Array, ""]  # sum of |grad f_s|^(1/p)
    values: Float[Array, " m"]  # sum of |g_s|^(1/q)
    horizon: Horizon | None
    key: Any


class Guarded(AbstractLearner):
    r"""Plays `candidate` while its regret and violation are known to be small, and `fallback` from then on.

    At rounds $t=1,4,9,\dots$ it asks two questions, R being the diameter and p, q the exponents of the fallback's
    bounds:

    * is the regret so far at most $B_t = cR\left(\sum_{s\le t}\|\nabla f_s\|^{1/p}\right)^p$, by the certificate of
      tangents (`Certificate`) at the best multiple of the mean multiplier?
    * is each violation at most $A_{t,i} = c\left(\sum_{s\le t}|g_{s,i}(x_s)|^{1/q}\right)^q$?

    At the first no the fallback begins afresh, from the first decision and for the rounds that are left, and plays to
    the end. Neither B nor A needs constants of the problem.

    *Proven* (`theory.guarded` has the numbers; docs/certificates.md the proof). If the fallback has regret Reg(n) and
    violation Viol(n) in any n rounds, $\|\nabla f_t\|\le D$ and $|g_t|\le G$, then against every x that is feasible in
    every round, for every sequence:

    regret $\le cRDT^p + (2\sqrt T+1)RD + \mathrm{Reg}(T)$,
    violation $\le cGT^q + (2\sqrt T+1)G + \mathrm{Viol}(T)$.

    So it has the rates of its fallback, whatever the candidate plays in X; and it plays the candidate's decisions,
    where those are good. For constraints that x meets only in expectation, the problem must state D and G
    (`Regularity`): multipliers of the certificate are then limited to $\Lambda_t=10\frac{RD}Gt^{p-1/2}$ in total, which
    adds $2mG\Lambda_T\sqrt T=20mRDT^p$ to the expected regret.

    **Arguments:**

    - `candidate`: the learner to play; by default `Auto()`.
    - `fallback`: a learner with a theorem; by default `LyapStoch()`, which needs `Regularity` and a horizon.
    - `factor`: c; by default 4, with which a guard around Auto never switched in the arena (docs/certificates.md).
    - `regret`, `violation`: p and q; by default the exponents that the fallback states.

    >>> import cocoax as cx
    >>> learner = cx.learners.Guarded(cx.learners.Auto(), cx.learners.LyapHard(cx.primal.AdaGrad()))
    """

    facts = Facts(
        cost="its candidate's, or its fallback's; a gradient of f and of each g; up to 7 LMOs at rounds 1, 4, 9, ...",
        guarantee="its fallback's, with larger constants, proven",
        cites=("cocoax",),
        regret=Fraction(3, 4),
        violation=Fraction(3, 4),
    )

    candidate: AbstractLearner
    fallback: AbstractLearner
    factor: Float[Array, ""]
    regret: Float[Array, ""]
    violation: Float[Array, ""]

    def __init__(
        self,
        candidate: Any = None,
        fallback: Any = None,
        *,
        factor: Any = 4.0,
        regret: Any = None,
        violation: Any = None,
    ):
        candidate, fallback = Auto() if candidate is None else candidate, LyapStoch() if fallback is None else fallback
        self.candidate = check.instance(candidate, AbstractLearner, LearnerError, "Guarded needs a learner first")
        self.fallback = check.instance(fallback, AbstractLearner, LearnerError, "Guarded needs a learner second")
        self.factor = positive_parameter(factor, "factor")
        self.regret = _exponent(regret, "regret", fallback)
        self.violation = _exponent(violation, "violation", fallback)

    def check(self, problem):
        self.candidate.check(problem)
        self.fallback.check(problem)

    def init(self, problem, *, key, horizon=None, start=None):
        first = first_decision(problem, start)
        plan = horizon if horizon is None or isinstance(horizon, Horizon) else Horizon(horizon)
        own, other = jax.random.split(key)
        return _State(
            self.candidate.init(problem, key=own, horizon=plan, start=start),
            self.fallback.init(problem, key=other, horizon=plan, start=first),
            jnp.asarray(False),
            jnp.zeros((), jnp.int32),
            Minorants.none(problem, first),
            jnp.zeros((), tree.dtype(first)),
            jnp.zeros(problem.constraints, tree.dtype(first)),
            plan,
            other,
        )

    def decision(self, state):
        mine, others = self.candidate.decision(state.candidate), self.fallback.decision(state.fallback)
        return tree.where(state.switched, others, mine)

    def decide(self, problem, state, request):
        mine = self.candidate.decide(problem, state.candidate, request)
        return tree.where(state.switched, self.fallback.decide(problem, state.fallback, request), mine)

    def observe(self, problem, state, round, *, played=None):
        like = state.minorants.like
        point = self.decision(state) if played is None else as_point(played, like, tree.dtype(like), "played")
        before = state, _no_outcome(problem, state.gradients.dtype)
        observed = _once_if(
            ~state.switched, lambda old: self._observe_candidate(problem, old, round, played, point), before
        )
        return _once_if(state.switched, lambda old: self._observe_fallback(problem, old, round, played), observed)

    def _observe_fallback(self, problem, state, round, played):
        fallback, outcome = self.fallback.observe(problem, state.fallback, round, played=played)
        state = eqx.tree_at(lambda s: (s.fallback, s.round), state, (fallback, state.round + 1))
        return state, _uniform(outcome, state.gradients.dtype)

    def _observe_candidate(self, problem, state, round, played, point):
        candidate, outcome = self.candidate.observe(problem, state.candidate, round, played=played)
        minorants = state.minorants.with_round(problem, point, round, outcome)
        kind = state.gradients.dtype
        slope = problem.domain.tangent(problem.gradients(point, round)[0])
        state = _State(
            candidate,
            state.fallback,
            state.switched,
            state.round + 1,
            minorants,
            state.gradients + tree.norm(slope) ** (1 / self.regret.astype(kind)),
            state.values + jnp.abs(outcome.constraint) ** (1 / self.violation.astype(kind)),
            state.horizon,
            state.key,
        )
        root = jnp.round(jnp.sqrt(minorants.rounds.astype(float))).astype(minorants.rounds.dtype)
        failed = jax.lax.cond(
            root * root == minorants.rounds, lambda: ~self._passes(problem, state), lambda: jnp.asarray(False)
        )

        def switch():
            fallback = self._afresh(problem, state)
            return eqx.tree_at(lambda s: (s.fallback, s.switched), state, (fallback, jnp.asarray(True)))

        return jax.lax.cond(failed, switch, lambda: state), _uniform(outcome, kind)

    def _passes(self, problem, state):
        """Whether the candidate's regret and violation are as small as they must be."""
        domain, minorants, kind = problem.domain, state.minorants, state.gradients.dtype
        p, q, c = (one.astype(kind) for one in (self.regret, self.violation, self.factor))
        most = c * jnp.asarray(domain.diameter(2), kind) * state.gradients**p
        bound = minorants.good_regret_bound(domain, lambda multiplier: self._limited(problem, minorants, multiplier, p))
        is_good = jnp.isfinite(bound) & (bound <= most)
        return is_good & jnp.all(minorants.violation <= c * state.values**q)

    def _limited(self, problem, minorants, multiplier, p):
        """The multiplier, no larger than where constraints hold in expectation only the proof allows."""
        stated = [one for one in problem.regularity if one.norm == 2 and one.constraint_bound is not None]
        if not stated:
            return multiplier
        kind = multiplier.dtype
        width = jnp.asarray(problem.domain.diameter(2), kind)
        unit = width * (stated[0].lipschitz / stated[0].constraint_bound).astype(kind)
        largest = LARGEST_MULTIPLIER * unit * minorants.rounds.astype(kind) ** (p - 0.5)
        return multiplier * jnp.minimum(1, tree.ratio(largest, multiplier.sum()))

    def _afresh(self, problem, state):
        """For the rounds that are left, from where the game began: the candidate may have left the set."""
        horizon, start = state.horizon, self.fallback.decision(state.fallback)
        if horizon is not None:
            horizon = Horizon(jnp.maximum(horizon.rounds - state.minorants.rounds, 1), horizon.capacity)
        fallback = self.fallback.init(problem, key=state.key, horizon=horizon, start=start)
        return jax.tree.map(
            lambda new, old: new if new.dtype == old.dtype else new.astype(old.dtype), fallback, state.fallback
        )

    def rounds_left(self, state):
        if state.horizon is None:
            return None
        plans = self.candidate.rounds_left(state.candidate), self.fallback.rounds_left(state.fallback)
        return None if all(plan is None for plan in plans) else state.horizon.rounds - state.round


def _once_if(condition, observe, pair):
    """`observe(state)` if the condition holds, else the pair of state and outcome.

    A loop of at most one step and no branch: XLA compiles a loop in the loop over rounds as it compiles that one, and
    branches otherwise. So the candidate's decisions keep their last bits.
    """
    return jax.lax.while_loop(
        lambda carry: carry[0], lambda carry: (jnp.asarray(False), observe(carry[1][0])), (condition, pair)
    )[1]


def _no_outcome(problem, kind):
    """One with the dtypes that `_uniform` gives."""
    of_constraints, none = jnp.zeros(problem.constraints, kind), jnp.zeros((), int)
    return Outcome(jnp.zeros((), kind), of_constraints, of_constraints, none, none, jnp.asarray(True))


def _uniform(outcome, kind):
    """The outcome with the same dtypes for the candidate and for the fallback."""
    whole = jax.tree.map(lambda leaf: leaf.astype(kind), (outcome.loss, outcome.constraint, outcome.multiplier))
    return type(outcome)(*whole, outcome.lmo_calls.astype(int), outcome.gradient_calls.astype(int), outcome.finite)


def _exponent(given, name, fallback) -> Float[Array, ""]:
    stated = getattr(getattr(fallback, "facts", None), name, None)
    if given is None and stated is None:
        raise LearnerError(
            f"Guarded must know how the fallback's {name} grows; give {name}=, the exponent of T in its bound"
        )
    return parameter(given if stated is None or given is not None else float(stated), name, 0.5, 1)
