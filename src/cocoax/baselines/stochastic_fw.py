"""Stochastic optimisation without projections and without violation, on average."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import theory
from ..core.facts import Facts
from ..dual.regularized_ascent import RegularizedAscent
from ..learners.base import positive_parameter
from ..learners.frontier import PDOFW


class _Tightened(RegularizedAscent):
    """A rule that takes every constraint to be larger by a margin."""

    margin: Float[Array, ""]

    def __init__(self, theta, mu, margin):
        super().__init__(theta, mu)
        self.margin = margin

    def weigh(self, state, values, norms: Any = None):
        return super().weigh(state, values + self.margin.astype(values.dtype), norms)


class FWCSOA(PDOFW):
    r"""PD-OFW with tightened constraints $g_t+\nu$: a substitute for FW-CSOA (Akhtar, Bedi, Rajawat), at its rates.

    For i.i.d. losses and constraints some decision of which has $E\,g_t\le-\rho$. The margin is PD-OFW's bound on the
    violation, a round:

    $\nu = \frac1T\left(2a\Lambda + 2\sqrt{a(B+a\Lambda^2)}\right),\qquad a=\theta(T+1),\quad
    B = \tfrac72RDT^{3/4}+\tfrac{m(3G/2)^2}{\theta},\quad \Lambda=\tfrac{2RD}{\rho}$

    Proven if $\nu\le\frac\rho2$, which constants like these reach at very long horizons only: the average decision,
    `Game.average`, has expected violation at most 0 and expected gap at most $\frac BT+\frac{\nu RD}{\rho} =
    O(T^{-1/4})$. (Then $|g_t+\nu|\le\frac32G$, the optimal multiplier of the tightened problem is at most
    $RD/(\rho-\nu)$, and moving from $x^\star$ to the safe decision by $\nu/\rho$ meets the tightened constraints.)

    The original, with gradient trackers and a dual of its own, has the same rates (confirmed in print); its parameters
    are not reproduced here.

    **Arguments:**

    - `slater`: $\rho$.
    - `theta_scale`, `margin_scale`: factors of theta and of the margin for practice; other than 1 nothing is proven.

    >>> import cocoax as cx
    >>> learner = cx.baselines.FWCSOA(slater=0.5, theta_scale=0.01, margin_scale=0.01)
    """

    facts = Facts(
        cost="1 LMO",
        guarantee="gap T^(-1/4) and no violation of the average, i.i.d., Slater, expected, proven",
        cites=("akhtar2020",),
    )

    slater: Float[Array, ""]
    margin_scale: Float[Array, ""]

    def __init__(self, slater: Any, *, theta_scale: Any = 1.0, margin_scale: Any = 1.0):
        super().__init__(theta_scale=theta_scale)
        self.slater = positive_parameter(slater, "slater")
        self.margin_scale = positive_parameter(margin_scale, "margin_scale")

    def rule(self, problem, horizon):
        rule = super().rule(problem, horizon)
        regularity = problem.constants(2, ("lipschitz", "constraint_bound"), "FWCSOA")
        unit, rounds = problem.domain.diameter(2) * regularity.lipschitz, horizon.astype(float)
        theta = jnp.asarray(rule.theta)
        bound = 3.5 * unit * rounds**0.75 + problem.constraints * (1.5 * regularity.constraint_bound) ** 2 / theta
        most = theory.violation_strong_duality(bound, theta * (rounds + 1), 2 * unit / self.slater)
        return _Tightened(theta, rule.mu, self.margin_scale * most / rounds)
