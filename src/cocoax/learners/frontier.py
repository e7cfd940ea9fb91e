"""Primal-dual online Frank-Wolfe: the paper's guarantees and better, with one LMO a round and no blocks."""

from fractions import Fraction
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import theory
from ..core.facts import Facts
from ..dual.hard import Hard
from ..dual.penalty import Penalty
from ..dual.regularized_ascent import RegularizedAscent
from ..primal.base import RoundBounds
from ..primal.ofw import OFW
from .base import parameter, positive_parameter
from .primal_dual import AbstractPrimalDual


class _FrankWolfe(AbstractPrimalDual):
    r"""`primal.OFW` with $\eta = \frac{R}{D\varphi T^{3/4}}$ and $\sigma = T^{-1/2}$, where $\varphi = T^\beta$."""

    primal: OFW
    beta: Float[Array, ""]

    def _lipschitz(self, problem) -> Any:
        return problem.constants(2, ("lipschitz",), type(self).__name__).lipschitz

    def bounds(self, problem):
        lipschitz = self._lipschitz(problem)

        def bounds(weights, horizon, capacity):
            level = horizon.astype(float) ** self.beta
            return RoundBounds(lipschitz * level, jnp.asarray(jnp.inf), horizon, capacity)

        return bounds


class PDOFW(_FrankWolfe):
    r"""PD-OFW: one LMO and one gradient a round, any convex losses, stochastic constraints.

    `primal.OFW` on $h_t = f_t + \langle\lambda_t, g_t\rangle$ with $\eta = \frac{R}{DT^{3/4+\beta}}$,
    $\sigma = T^{-1/2}$, and every round

    $\lambda_{t+1} = [(1-\theta\mu)\lambda_t + \mu\,g_t(x_t)]_+,\qquad \theta = 15mRD\,T^{-1/4-\beta},\quad
    \mu = \frac1{\theta(T+2)}$

    Proven for $\beta\in[0,\frac14]$ and m constraints, derived: $E$ Regret $=O(T^{\frac34+\beta})$, $E$ violation
    $=O(T^{\frac78-\frac\beta2})$, and $O(T^{3/4})$ under strong duality with $\beta=0$; `theory.pdofw` gives the
    numbers. `theta_scale` other than 1 is for practice; `theory.pdofw(theta_scale=...)` tells what remains proven.

    >>> import cocoax as cx
    >>> learner = cx.learners.PDOFW(theta_scale=0.01)
    """

    facts = Facts(
        cost="1 LMO",
        guarantee="T^(3/4) under strong duality, expected, proven",
        cites=("cocoax",),
        regret=Fraction(3, 4),
        violation=Fraction(7, 8),
    )

    theta_scale: Float[Array, ""]

    def __init__(self, *, beta=0.0, theta_scale: Any = 1.0):
        self.primal = OFW(rate=1.0, mixing=1.0)
        self.beta = parameter(beta, "beta", 0, 0.25)
        self.theta_scale = positive_parameter(theta_scale, "theta_scale")

    def rule(self, problem, horizon):
        theta = theory.pdofw_theta(
            horizon.astype(float),
            diameter=problem.domain.diameter(2),
            lipschitz=self._lipschitz(problem),
            beta=self.beta,
            constraints=max(problem.constraints, 1),
            scale=self.theta_scale,
        )
        return RegularizedAscent(theta, 1 / (theta * (horizon + 2).astype(theta.dtype)))


class PENOFW(_FrankWolfe):
    r"""PEN-OFW: one LMO and one gradient a round, hard constraints, any adversary.

    As `PDOFW` with the weight $\lambda_t = [\max_i g_t^i(x_t)]_+/\zeta$ on the worst constraint,
    $\zeta = 5RD\,T^{-1/4-\beta}$. Proven for $\beta\in[0,\frac14]$, derived, against every x that meets all constraints
    in every round: Regret $=O(T^{\frac34+\beta})$ and hard violation $=O(T^{\frac78-\frac\beta2})$, surely;
    `theory.penofw` gives the numbers.

    >>> import cocoax as cx
    >>> learner = cx.learners.PENOFW(beta=0.25)  # plays a Problem(regularity=cx.Regularity(lipschitz=...))
    >>> learner.facts.hard  # rounds that underspend make up for nothing
    True
    """

    facts = Facts(
        cost="1 LMO", guarantee="proven", cites=("cocoax",), regret=Fraction(3, 4), violation=Fraction(7, 8), hard=True
    )

    def __init__(self, *, beta=0.0):
        self.primal = OFW(rate=1.0, mixing=1.0)
        self.beta = parameter(beta, "beta", 0, 0.25)

    def rule(self, problem, horizon):
        zeta = theory.penofw_zeta(
            horizon.astype(float),
            diameter=problem.domain.diameter(2),
            lipschitz=self._lipschitz(problem),
            beta=self.beta,
        )
        return Hard(Penalty(zeta))
