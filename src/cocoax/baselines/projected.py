"""Primal-dual projected gradient for a known horizon. It needs `domain.project`."""

from fractions import Fraction
from typing import Any

from jaxtyping import Array, Float

from ..core.facts import Facts
from ..dual.regularized_ascent import RegularizedAscent
from ..learners.base import parameter, positive_parameter
from ..learners.primal_dual import AbstractPrimalDual
from ..learners.projected import lipschitz, with_steps
from ..primal.ogd import OGD


class PDOGD(AbstractPrimalDual):
    r"""Primal-dual projected gradient (Mahdavi, Jin, Yang, 2012; Jenatton, Huang, Archambeau, 2016, known horizon).

    $x_{t+1} = \Pi_X(x_t - \eta(\nabla f_t + \lambda_t\nabla g_t)),\qquad
    \lambda_{t+1} = [(1-\theta\mu)\lambda_t + \mu g_t(x_t)]_+$

    with $\eta=\frac{R}{D\varphi\sqrt T}$, $\theta=\frac{6RD}{\varphi\sqrt T}$, $\mu=\frac{1}{\theta(T+2)}$ and
    $\varphi=T^\beta$, $\beta\in[0,\frac12]$. Proven, in every round sequence, for all x in X and $\lambda\ge0$:

    $\mathrm{Reg}(x) + \lambda\sum_t g_t(x_t) - \sum_t\lambda_tg_t(x) \le B + \theta(T+1)\lambda^2,\qquad
    B = (\tfrac\varphi2+\tfrac1\varphi)RD\sqrt T + \tfrac{\varphi G^2\sqrt T}{6RD}$

    hence regret $\le B$ and violation $\le\sqrt{4\theta(T+1)(RDT+B)} = O(T^{3/4-\beta/2})$, in expectation if the
    constraints are i.i.d. With m constraints theta is m times larger.

    This is also the method of Mahdavi et al., which needs no name of its own: theirs has one step
    $\eta=\Theta(1/\sqrt T)$ for both parts and a regularisation $\delta\eta$ with $\delta=\Theta(D^2)$ (rates confirmed
    in print, constants not), and projects onto a ball around X only.

    >>> import cocoax as cx
    >>> learner = cx.baselines.PDOGD(beta=0.25)  # plays a Problem(regularity=cx.Regularity(lipschitz=...))
    """

    facts = Facts(
        cost="one projection",
        guarantee="proven",
        cites=("mahdavi2012",),
        regret=Fraction(1, 2),
        violation=Fraction(3, 4),
    )

    primal: OGD
    beta: Float[Array, ""]
    theta_scale: Float[Array, ""]

    def __init__(self, *, beta: Any = 0.0, theta_scale: Any = 1.0):
        self.primal = OGD()
        self.beta = parameter(beta, "beta", 0, 0.5)
        self.theta_scale = positive_parameter(theta_scale, "theta_scale")

    def rule(self, problem, horizon):
        step = problem.domain.diameter(2) * lipschitz(problem, "PDOGD") * horizon.astype(float) ** (-0.5 - self.beta)
        theta = 6 * max(problem.constraints, 1) * step * self.theta_scale
        return RegularizedAscent(theta, 1 / (theta * (horizon + 2).astype(theta.dtype)))

    def bounds(self, problem):
        step = problem.domain.diameter(2) / lipschitz(problem, "PDOGD")
        return with_steps(problem, lambda T: step * T ** (-0.5 - self.beta))
