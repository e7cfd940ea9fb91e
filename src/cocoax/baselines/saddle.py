"""Saddle-point methods of the related work: a primal that descends against a dual that ascends."""

from fractions import Fraction
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check
from ..core.facts import Facts
from ..dual.base import Weights
from ..dual.bounded_ascent import BoundedAscent
from ..dual.regularized_ascent import RegularizedAscent
from ..errors import LearnerError
from ..learners.base import parameter, positive_parameter
from ..learners.primal_dual import AbstractPrimalDual, bounds_by_weights
from ..learners.projected import AbstractRetuned, lipschitz, with_steps
from ..primal.base import AbstractPrimal, RoundBounds
from ..primal.meta_ogd import MetaOGD
from ..primal.ogd import OGD


class Valls(AbstractRetuned):
    r"""Primal-dual proximal gradient (Valls, Iosifidis, Leith, Tassiulas, AISTATS 2020), for any horizon.

    $x_{t+1} = \Pi_X\left(x_t - \frac{R}{Dt^\epsilon}(\nabla f_t + \lambda_t\nabla g_t)\right),\qquad
    \lambda_{t+1} = \left[\lambda_t + \frac{1}{RDt^\epsilon}g_t(x_t)\right]_+$

    For constraints $g(x)+b_t$ with perturbations $b_t$, under Slater's condition and against a benchmark that varies
    with them: regret $O(T^{\max(\epsilon,1-\epsilon)})$ and violation $O(T^\epsilon)$, confirmed in print for steps
    that fall like $t^{-\epsilon}$. The form above, and its units, are from memory.

    >>> import cocoax as cx
    >>> learner = cx.baselines.Valls(epsilon=0.5)  # plays a Problem(regularity=cx.Regularity(lipschitz=...))
    >>> str(learner.facts.regret), str(learner.facts.violation)  # of T
    ('1/2', '1/2')
    """

    facts = Facts(
        cost="one projection",
        guarantee="perturbed constraints, Slater, in print",
        cites=("valls2020",),
        regret=Fraction(1, 2),
        violation=Fraction(1, 2),
    )

    primal: OGD
    epsilon: Float[Array, ""]

    def __init__(self, *, epsilon: Any = 0.5):
        self.primal = OGD()
        self.epsilon = parameter(epsilon, "epsilon", 0, 1)

    def rule(self, problem, horizon):
        width = problem.domain.diameter(2) * lipschitz(problem, "Valls")
        return BoundedAscent(jnp.inf, horizon.astype(float) ** -self.epsilon / width)

    def bounds(self, problem):
        step = problem.domain.diameter(2) / lipschitz(problem, "Valls")
        return with_steps(problem, lambda t: step * t**-self.epsilon)


class Castiglioni(AbstractPrimalDual):
    r"""Any primal against multipliers that stay below 1/slater (Castiglioni, Celli, Marchesi, Romano, Gatti, 2022).

    The primal sees $f_t+\langle\lambda_t, g_t\rangle$ with bounds for the largest multipliers, and

    $\lambda_{t+1} = \min\left\{\left[\lambda_t + \frac{1}{\rho G\sqrt T}g_t(x_t)\right]_+,\ \frac1\rho\right\}$

    Proven for every x and $\lambda\in[0,\frac1\rho]^m$, with P the primal's regret at $D(1+\frac m\rho)$:

    $\mathrm{Reg}(x) + \langle\lambda,\sum_tg_t(x_t)\rangle - \sum_t\langle\lambda_t, g_t(x)\rangle \le
    P + \frac{mG}{\rho}\sqrt T$

    so for i.i.d. constraints expected regret is at most the right-hand side. Against adversarial constraints a share
    $\frac{\rho}{1+\rho}$ of the best reward is confirmed in print. From memory: violation $\tilde O(\sqrt T/\rho)$, and
    that the multipliers share one bound there, $\sum_i\lambda^i\le\frac1\rho$.

    **Arguments:**

    - `slater`: rho, by how much some decision meets all constraints, for losses that differ by at most 1 over the
      domain; for others divide it by the difference.
    - `primal`: by default `OGD`.

    >>> import cocoax as cx
    >>> learner = cx.baselines.Castiglioni(slater=0.2, primal=cx.primal.OCG())
    """

    facts = Facts(
        cost="its primal's",
        guarantee="with OGD, i.i.d. constraints, proven; violation from memory",
        cites=("castiglioni2022",),
        regret=Fraction(1, 2),
    )

    primal: AbstractPrimal
    slater: Float[Array, ""]

    def __init__(self, slater: Any, primal: Any = None):
        primal = OGD() if primal is None else primal
        self.primal = check.instance(primal, AbstractPrimal, LearnerError, "Castiglioni takes one of cocoax.primal")
        self.slater = positive_parameter(slater, "slater")

    def _regularity(self, problem):
        needs = (*self.primal.needs, "constraint_bound")
        return problem.constants(self.primal.norm, needs, f"Castiglioni with {type(self.primal).__name__}")

    def rule(self, problem, horizon):
        bound = jnp.asarray(self._regularity(problem).constraint_bound)
        return BoundedAscent(1 / self.slater, 1 / (self.slater * bound * horizon.astype(float) ** 0.5))

    def bounds(self, problem):
        of_sum = bounds_by_weights(self._regularity(problem))

        def bounds(weights, horizon, capacity):
            most = jnp.full_like(weights.constraint, 1 / self.slater)
            return of_sum(Weights(weights.loss, most), horizon, capacity)

        return bounds


class OSPHG(AbstractPrimalDual):
    r"""The convex counterpart of online saddle-point hybrid gradient (Sadeghi, Fazel, 2020).

    `learners.PDMFW` with gradient learners inside: `primal.MetaOGD` with $K=\lceil\sqrt T\rceil$ and steps
    $\frac{R}{D\sqrt T}$ on $h_t=f_t+\langle\lambda_t,g_t\rangle$, and

    $\lambda_{t+1} = [(1-\theta\mu)\lambda_t + \mu\,g_t(x_t)]_+,\qquad \theta=\frac{12mRD}{\sqrt T},\quad
    \mu=\frac{1}{\theta(T+2)}$

    Proven, in every round sequence, for all x in X and $\lambda\ge0$, with $\rho=2R^2L$:

    $\mathrm{Reg}(x) + \langle\lambda,\sum_tg_t(x_t)\rangle - \sum_t\langle\lambda_t,g_t(x)\rangle \le
    \left(\tfrac32RD+\rho+\tfrac{\rho^2}{4RD}\right)\sqrt T + \tfrac{mG^2}{\theta} + \theta(T+1)\|\lambda\|^2$

    hence regret $O(\sqrt T)$ and violation $O(T^{3/4})$, in expectation if the constraints are i.i.d. The original
    maximises DR-submodular rewards, with steps $x^{k+1}=x^k+v^k/K$ (structure confirmed in published code); this
    analysis is for convex losses.

    >>> import cocoax as cx
    >>> learner = cx.baselines.OSPHG(theta_scale=0.1)  # plays a Problem(regularity=cx.Regularity(lipschitz=...))
    >>> str(learner.facts.regret), str(learner.facts.violation)  # of T
    ('1/2', '3/4')
    """

    facts = Facts(
        cost="ceil(sqrt T) projections and gradients",
        guarantee="smooth, proven",
        cites=("sadeghi2020",),
        regret=Fraction(1, 2),
        violation=Fraction(3, 4),
    )

    primal: MetaOGD
    theta_scale: Float[Array, ""]

    def __init__(self, *, theta_scale: Any = 1.0):
        self.primal = MetaOGD()
        self.theta_scale = positive_parameter(theta_scale, "theta_scale")

    def rule(self, problem, horizon):
        width = problem.domain.diameter(2) * lipschitz(problem, "OSPHG")
        theta = 12 * max(problem.constraints, 1) * width * self.theta_scale / horizon.astype(float) ** 0.5
        return RegularizedAscent(theta, 1 / (theta * (horizon + 2).astype(theta.dtype)))

    def bounds(self, problem):
        bound = lipschitz(problem, "OSPHG")
        return lambda weights, horizon, capacity: RoundBounds(bound, jnp.asarray(jnp.inf), horizon, capacity)
