r"""Guarantees of the two algorithms as numbers, for integers T, K, Q and any theta.

All follow from one inequality, for every $\lambda \ge 0$ and the comparator $x^\star$:
$\mathrm{Reg} + \langle\lambda, V\rangle - a\|\lambda\|^2 \le B$ with $V = E\sum_t g_t(x_t)$ and
$a = \tfrac12(1/\mu + P\theta)$, where P counts dual steps.
"""

import math
from typing import Any, NamedTuple

from .constants import Constants
from .exponents import check_beta, pdmfw_rates, rates
from .parameters import (
    block_length,
    blocks_mu,
    blocks_theta,
    dimension_factor,
    inner_steps,
    pdmfw_level,
    pdmfw_mu,
    pdmfw_size,
    pdmfw_theta,
)
from .regret import ftpl


class Bounds(NamedTuple):
    r"""Bounds in expectation, and the parameters behind them.

    `violation` bounds $\|[V]_+\|_2$, hence the violation of each constraint. So does `violation_strong_duality`, which
    is None unless `multiplier`, the Euclidean norm of the optimal one, was given.
    """

    regret: Any
    violation: Any
    violation_strong_duality: Any
    theta: Any
    mu: Any
    block: Any
    blocks: Any


def violation(bound: Any, weight: Any, deficit: Any) -> Any:
    r"""$\|[V]_+\| \le \sqrt{4a(B + S)}$, with B = `bound`, a = `weight` and S = `deficit`.

    Proof: $\lambda = [V]_+/2a$, and $\mathrm{Reg} \ge -S = -RDT$.

    >>> violation(bound=100.0, weight=4.0, deficit=800.0)
    120.0
    """
    return (4 * weight * (bound + deficit)) ** 0.5


def violation_strong_duality(bound: Any, weight: Any, multiplier: Any) -> Any:
    r"""$\|[V]_+\| \le 2a\Lambda + 2\sqrt{a(B + a\Lambda^2)}$, with B = `bound`, a = `weight`, $\Lambda$ = `multiplier`.

    $\Lambda = \|\lambda^\star\|$. Strong duality is $\mathrm{Reg} + \langle\lambda^\star, V\rangle \ge 0$; with u the
    direction of $[V]_+$, $\lambda = \lambda^\star + cu$ gives $\|[V]_+\| \le (B + a(\Lambda + c)^2)/c$. The bound uses
    the best c, not c = 1.
    """
    return 2 * weight * multiplier + 2 * (weight * (bound + weight * multiplier**2)) ** 0.5


def multiplier_cap(constraint_bound: Any, theta: Any, *, block: Any = 1, mu: Any = None, steps: Any = None) -> Any:
    r"""The largest possible value of a multiplier after n dual steps: $\frac{GK}{\theta}(1 - (1-\theta\mu)^n)$.

    Without mu and n: $(1 - 1/e)GK/\theta$, for every round of either algorithm (K = 1 for Algorithm 2). The algorithm
    cannot reach a larger optimal multiplier within the horizon.
    """
    decay = 1 / math.e if mu is None or steps is None else (1 - theta * mu) ** steps
    return constraint_bound * block / theta * (1 - decay)


def algorithm1(
    horizon: int,
    constants: Constants,
    *,
    lipschitz: Any,
    smoothness: Any = None,
    constraint_bound: Any,
    diameter: Any,
    beta: Any = 0.0,
    constraints: int = 1,
    multiplier: Any = None,
    theta_scale: Any = 1.0,
) -> Bounds:
    r"""Algorithm 1 with m constraints:
    $B = \frac{mG^2K^2Q}{\theta(Q+1)} + Q(C_0+A)K^\alpha + \frac{m(Q+1)A^2K^{2\alpha}}{2\theta}$.

    The dual step moves $\lambda_q \in R^m$ by a vector of norm at most $\sqrt m\,GK$, so
    $\sum_q\langle\lambda-\lambda_q, g^q\rangle \le \|\lambda\|^2/2\mu + Q\theta\|\lambda\|^2/2 + mG^2K^2Q\mu
    + (\theta^2\mu - \theta/2)\sum_q\|\lambda_q\|^2$. A block's $h = f + \langle\lambda_q, g\rangle$ is
    $D(1+s_q)$-Lipschitz with $s_q = \sum_i\lambda_{q,i} \le \sqrt m\|\lambda_q\|$, so the primal pays
    $(C_0 + A(1+s_q))K^\alpha$. As $\theta/2 - \theta^2\mu = \theta\frac{Q-1}{2(Q+1)}$ and $\lambda_1 = 0$,
    maximising $AK^\alpha s - \frac{\theta}{m}\frac{Q-1}{2(Q+1)}s^2$ in $Q-1$ blocks gives B's last term.
    Nothing was asked of $\theta$: its scale acts as $T^{-\beta}$ does. At scale 1, m drops out of B.

    >>> from cocoax.theory import constants
    >>> sizes = dict(lipschitz=1.0, constraint_bound=1.0, diameter=1.0)
    >>> bounds = algorithm1(1000, constants.ofw(1.0), **sizes)
    >>> bounds.block, bounds.blocks, round(bounds.regret, 1)
    (100, 10, 711.2)
    """
    check_beta(beta, rates(constants.alpha).beta_max)
    block = block_length(horizon, constants.alpha)
    blocks = -(-horizon // block)
    theta = blocks_theta(
        constants,
        lipschitz,
        smoothness,
        block=block,
        horizon=horizon,
        beta=beta,
        constraints=constraints,
        scale=theta_scale,
    )
    mu = blocks_mu(theta, blocks)
    pull = constants.slope(lipschitz, smoothness) * block**constants.alpha
    dual = constraints * (constraint_bound * block) ** 2 * blocks * mu
    primal = blocks * (constants.c0 * block**constants.alpha + pull)
    coupling = constraints * (blocks + 1) * pull**2 / (2 * theta)
    weight = (1 / mu + blocks * theta) / 2
    deficit = diameter * lipschitz * horizon
    return _bounds(dual + primal + coupling, weight, deficit, multiplier, theta, mu, block, blocks)


def algorithm1_printed(
    horizon: Any,
    constants: Constants,
    *,
    lipschitz: Any,
    smoothness: Any = None,
    constraint_bound: Any,
    diameter: Any,
    beta: Any = 0.0,
    multiplier: Any = None,
) -> Bounds:
    r"""The paper's closed form (K and Q taken as real powers of T), with $e = \frac{2-\alpha}{3-2\alpha}$:

    regret $cT^{e+\beta}$, $c = \frac{G^2}{3A} + \frac32(C_0+A)$; violation
    $\sqrt{24AT^{e-\beta}(RDT + cT^{e+\beta})}$; under strong duality
    $cT^{e+\beta} + 6A(\lambda^\star+1)^2T^{e-\beta}$ (erratum E16; the paper has $\beta = 0$).
    """
    exponents = rates(constants.alpha)
    check_beta(beta, exponents.beta_max)
    slope = constants.slope(lipschitz, smoothness)
    block = horizon**exponents.block_exponent
    blocks = horizon / block
    theta = blocks_theta(constants, lipschitz, smoothness, block=block, horizon=horizon, beta=beta)
    factor = constraint_bound**2 / (3 * slope) + 1.5 * (constants.c0 + slope)
    regret = factor * horizon ** (exponents.strong_duality + beta)
    weight = 6 * slope * horizon ** (exponents.strong_duality - beta)
    strong = None if multiplier is None else regret + weight * (multiplier + 1) ** 2
    slack = violation(regret, weight, diameter * lipschitz * horizon)
    return Bounds(regret, slack, strong, theta, blocks_mu(theta, blocks), block, blocks)


def pdmfw(
    horizon: int,
    *,
    dimension: int,
    diameter: Any,
    lipschitz: Any,
    smoothness: Any,
    constraint_bound: Any,
    beta: Any = 0.0,
    perturbation: str = "cube",
    constraints: int = 1,
    multiplier: Any = None,
    theta_scale: Any = 1.0,
    inner: int | None = None,
) -> Bounds:
    r"""Algorithm 2 with m constraints and K inner steps (default $\lceil\sqrt T\rceil$).

    Norms are l1 and l-infinity for the cubes, l2 for the ball. With $c = \sqrt d$ or $\sqrt{2\kappa_d}$:

    $B = F + T(b+r) + \frac{T}{\tau}\bigl(b + r + \frac{r^2}{4b}\bigr) + \frac{mG^2T}{\theta(T+2)}$, where
    $b = \frac{RDc}{2N}$ is stability, $r = \frac{2R^2L}{K+1}$ curvature, $F = 2RDcN$ (cube) or $RDcN$.

    With $s_t = \sum_i\lambda_{t,i}$ the primal pays $F + \sum_t[b(1+s_t)^2 + r(1+s_t)]$, and the dual step
    gives back $\frac{\theta}{m}\frac{T}{2(T+2)}s_t^2 = b(1+\tau)s_t^2$ as in `algorithm1`, where $\tau$ is
    $\frac{12T}{T+2}$ times the scale, less one; maximise over $s_t$. Infinite where $\tau \le 0$, at scales
    below about 1/12.

    >>> sizes = dict(dimension=4, diameter=1.0, lipschitz=1.0, smoothness=1.0, constraint_bound=1.0)
    >>> round(pdmfw(10_000, **sizes).regret, 1)
    738.2
    """
    check_beta(beta, pdmfw_rates().beta_max)
    level = pdmfw_level(horizon, beta)
    theta = pdmfw_theta(level, lipschitz, diameter, dimension, perturbation, constraints=constraints, scale=theta_scale)
    mu = pdmfw_mu(theta, horizon)
    size = pdmfw_size(level, lipschitz, dimension, perturbation)
    reach = ftpl(size, 0.0, diameter=diameter, dimension=dimension, perturbation=perturbation)
    stability = diameter * lipschitz * dimension_factor(dimension, perturbation) / (2 * level)
    curvature = 2 * diameter**2 * smoothness / ((inner_steps(horizon) if inner is None else inner) + 1)
    spare = 12 * theta_scale * horizon / (horizon + 2) - 1
    coupling = (stability + curvature + curvature**2 / (4 * stability)) / spare if spare > 0 else math.inf
    dual = constraints * constraint_bound**2 * horizon * mu
    bound = reach + horizon * (stability + curvature + coupling) + dual
    weight = (1 / mu + horizon * theta) / 2
    deficit = diameter * lipschitz * horizon
    return _bounds(bound, weight, deficit, multiplier, theta, mu, 1, horizon)


class PrintedConstants(NamedTuple):
    """C_1, C_2, C_3 in the paper's theorem on Algorithm 2."""

    c1: Any
    c2: Any
    c3: Any


def pdmfw_constants(
    *, dimension: int, diameter: Any, lipschitz: Any, smoothness: Any, constraint_bound: Any
) -> PrintedConstants:
    r"""$C_3 = 4RD + 5R^2L + \frac{R(4D+5RL)^2}{4D\sqrt d} + 3RD\sqrt d$,
    $C_1 = C_3 + \frac{G^2}{12RD\sqrt d}$, $C_2 = \sqrt{96RD\sqrt d\,(RD + C_1)}$."""
    unit = diameter * lipschitz * dimension**0.5
    start = 4 * diameter * lipschitz + 5 * diameter**2 * smoothness
    c3 = start + start**2 / (4 * unit) + 3 * unit
    c1 = c3 + constraint_bound**2 / (12 * unit)
    return PrintedConstants(c1, (96 * unit * (diameter * lipschitz + c1)) ** 0.5, c3)


def pdmfw_printed(
    horizon: Any,
    *,
    dimension: int,
    diameter: Any,
    lipschitz: Any,
    smoothness: Any,
    constraint_bound: Any,
    beta: Any = 0.0,
    multiplier: Any = None,
) -> Bounds:
    r"""The paper's theorems: regret $C_1T^{1/2+\beta}$, violation $C_2T^{3/4-\beta/2}$, under strong duality
    $C_1T^{1/2+\beta} + 24RD\sqrt d(\lambda^\star+1)^2T^{1/2-\beta}$ (errata E16, E17; there $\beta = 0$)."""
    exponents = pdmfw_rates(beta)
    printed = pdmfw_constants(
        dimension=dimension,
        diameter=diameter,
        lipschitz=lipschitz,
        smoothness=smoothness,
        constraint_bound=constraint_bound,
    )
    level = pdmfw_level(horizon, beta)
    theta = pdmfw_theta(level, lipschitz, diameter, dimension)
    regret = printed.c1 * level
    strong = None if multiplier is None else regret + 2 * theta * horizon * (multiplier + 1) ** 2
    slack = printed.c2 * horizon ** float(exponents.violation)
    return Bounds(regret, slack, strong, theta, pdmfw_mu(theta, horizon), 1, horizon)


def _bounds(bound, weight, deficit, multiplier, theta, mu, block, blocks) -> Bounds:
    strong = None if multiplier is None else violation_strong_duality(bound, weight, multiplier)
    return Bounds(bound, violation(bound, weight, deficit), strong, theta, mu, block, blocks)
