"""Primal-dual projected gradient methods, which need `domain.project`, and the learner that does nothing."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.facts import Facts
from ..domains.base import Point
from ..dual.base import AbstractDual, Weights
from ..dual.regularized_ascent import RegularizedAscent
from ..primal.base import RoundBounds, cost
from ..primal.ogd import OGD
from ..problem.problem import Problem
from .base import (
    AbstractLearner,
    Horizon,
    first_decision,
    outcome,
    parameter,
    point_played,
    refuse_movement,
)
from .primal_dual import AbstractPrimalDual, bounds_by_weights


def lipschitz(problem: Problem, who: str) -> Array:
    """D in the l2 norm; where the problem does not state it, the error names `who`."""
    return problem.constants(2, ("lipschitz",), who).lipschitz  # pyright: ignore[reportReturnType]


def with_steps(problem: Problem, step: Callable[[Any], Any]):
    """Bounds with which the steps of OGD are `step(T)` in a game of T rounds."""
    width = problem.domain.diameter(2)
    width = jnp.where(width > 0, width, 1.0)

    def bounds(weights, horizon, capacity):
        rounds = horizon.astype(float)
        return RoundBounds(width / (step(rounds) * rounds**0.5), jnp.asarray(jnp.inf), horizon, capacity)

    return bounds


class AbstractRetuned(AbstractPrimalDual):
    """Tuned anew in every round t, as for a game of t rounds; needs no horizon."""

    def init(self, problem, *, key, horizon=None, start=None):
        return super().init(problem, key=key, horizon=Horizon(1), start=start)

    def observe(self, problem, state, round, *, played=None):
        now = eqx.tree_at(lambda s: (s.horizon, s.rule), state, (state.round, self.rule(problem, state.round)))
        return super().observe(problem, now, round, played=played)

    def rounds_left(self, state):
        return None


class AbstractUntuned(AbstractRetuned):
    """A primal and a dual that need neither constants nor a horizon, on the sets that `check` lets pass."""

    dual: eqx.AbstractVar[Any]

    def check(self, problem):
        refuse_movement(problem, self)

    def rule(self, problem, horizon) -> AbstractDual:
        return self.dual

    def bounds(self, problem):
        return bounds_by_weights(None)

    def init(self, problem, *, key, horizon=None, start=None):
        self.check(problem)
        return super().init(problem, key=key, horizon=horizon, start=start)


class AdaptivePDOGD(AbstractRetuned):
    r"""Primal-dual projected gradient for any horizon (Jenatton, Huang, Archambeau, 2016).

    As `baselines.PDOGD` with $\eta_t=\frac{R}{Dt^\beta}$, $\theta_t=\frac{6RD}{t^\beta}$,
    $\mu_t=\frac{1}{\theta_t(t+1)}$ and $\beta\in(0,1)$. For a fixed constraint, regret
    $O(T^{\max(\beta,1-\beta)})$ and violation $O(T^{1-\beta/2})$ (rates confirmed in print, this form for
    $\beta=\frac12$).

    >>> import cocoax as cx
    >>> learner = cx.learners.AdaptivePDOGD()  # plays a Problem(regularity=cx.Regularity(lipschitz=...))
    >>> str(learner.facts.regret), str(learner.facts.violation)  # of T
    ('1/2', '3/4')
    """

    facts = Facts(
        cost="one projection",
        guarantee="for one fixed constraint, proven",
        cites=("jenatton2016",),
        regret=Fraction(1, 2),
        violation=Fraction(3, 4),
    )

    primal: OGD
    beta: Float[Array, ""]

    def __init__(self, *, beta: Any = 0.5):
        self.primal = OGD()
        self.beta = parameter(beta, "beta", 0, 1)

    def rule(self, problem, horizon):
        width = problem.domain.diameter(2) * lipschitz(problem, "AdaptivePDOGD")
        theta = 6 * max(problem.constraints, 1) * width * horizon.astype(float) ** -self.beta
        return RegularizedAscent(theta, 1 / (theta * (horizon + 1).astype(theta.dtype)))

    def bounds(self, problem):
        step = problem.domain.diameter(2) / lipschitz(problem, "AdaptivePDOGD")
        return with_steps(problem, lambda t: step * t**-self.beta)


class _StayState(eqx.Module):
    point: Point


class Stay(AbstractLearner):
    """Plays its start for ever. A method that does not beat it has learnt nothing.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.ProbabilitySimplex(2), lambda x, cost: jnp.vdot(cost, x))
    >>> cx.play(problem, Stay(), jnp.eye(2), key=jax.random.key(0)).loss.tolist()
    [0.5, 0.5]
    """

    facts = Facts(cost="nothing", guarantee="none: what doing nothing would cost", cites=("cocoax",))

    @property
    def factored(self):
        return True

    def init(self, problem, *, key, horizon=None, start=None):
        return _StayState(first_decision(problem, start))

    def decision(self, state):
        return state.point

    def observe(self, problem, state, round, *, played=None):
        loss, values = problem.values(point_played(played, state.point), round)
        none = Weights(jnp.ones_like(loss), jnp.zeros_like(values))
        return state, outcome(loss, values, none, cost())
