r"""Parameters and guarantees of the methods that are not in the paper: PD-OFW, PEN-OFW and the Lyapunov learners.

R is the l2 diameter, D the Lipschitz constant, L the smoothness, $|g_t| \le G$, T the horizon. All are derived in
this project. Parameters may also be arrays; the guarantees take numbers.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .bounds import Bounds, violation, violation_strong_duality
from .constants import Constants
from .exponents import check_beta


class Guaranteed(NamedTuple):
    """Bounds on the regret and on the violation of each constraint."""

    regret: Any
    violation: Any


def pdofw_theta(
    horizon: Any, *, diameter: Any, lipschitz: Any, beta: Any = 0.0, constraints: int = 1, scale: Any = 1.0
) -> Any:
    r"""$\theta = 15mRD\,T^{-1/4-\beta}$.

    >>> pdofw_theta(10_000, diameter=1.0, lipschitz=1.0)
    1.5
    """
    return 15 * constraints * diameter * lipschitz * horizon ** -(0.25 + beta) * scale


def pdofw(
    horizon: int,
    *,
    diameter: Any,
    lipschitz: Any,
    constraint_bound: Any,
    beta: Any = 0.0,
    constraints: int = 1,
    multiplier: Any = None,
    theta_scale: Any = 1.0,
) -> Bounds:
    r"""PD-OFW with m constraints, in expectation; with $\varphi = T^\beta$ and $s\,\theta$ for $\theta$:
    $B = RDT^{3/4}\bigl(\frac\varphi2 + \frac2\varphi + \frac x2 + \frac1{2x}\bigr) + \frac{mG^2T}{s\theta(T+2)}$, where
    $x = \max\bigl(1, \varphi/(\frac{15sT}{T+2} - 4)\bigr)$.

    `regret.ofw` with $\eta = R/(D\varphi T^{3/4})$, $\sigma = T^{-1/2}$ and $V \le 2D^2(T + mS)$,
    $S = \sum_t\|\lambda_t\|^2$, is
    $RDT^{3/4}(\frac\varphi2 + \frac2\varphi) + \frac{2mRD}{\varphi T^{1/4}}S + RDT^{1/4}\sqrt{T + mS}$, and the root is
    at most $\frac x2T^{1/2} + \frac1{2x}T^{-1/2}(T + mS)$. The dual step gives back $\frac{s\theta T}{2(T+2)}S$, which
    pays for S at this x. Infinite where $s \le \frac4{15}(1 + \frac2T)$.

    >>> bounds = pdofw(10_000, diameter=1.0, lipschitz=1.0, constraint_bound=1.0)
    >>> round(bounds.regret, 1), round(bounds.theta, 2)
    (3500.7, 1.5)
    """
    check_beta(beta, 0.25)
    phi, unit = horizon**beta, diameter * lipschitz
    theta = pdofw_theta(
        horizon, diameter=diameter, lipschitz=lipschitz, beta=beta, constraints=constraints, scale=theta_scale
    )
    mu = 1 / (theta * (horizon + 2))
    spare = 15 * theta_scale * horizon / (horizon + 2) - 4
    split = max(1.0, phi / spare) if spare > 0 else math.inf
    primal = unit * horizon**0.75 * (phi / 2 + 2 / phi + split / 2 + 1 / (2 * split))
    bound = primal + constraints * constraint_bound**2 * horizon * mu
    weight = theta * (horizon + 1)
    strong = None if multiplier is None else violation_strong_duality(bound, weight, multiplier)
    return Bounds(bound, violation(bound, weight, unit * horizon), strong, theta, mu, 1, horizon)


def penofw_zeta(horizon: Any, *, diameter: Any, lipschitz: Any, beta: Any = 0.0) -> Any:
    r"""$\zeta = 5RD\,T^{-1/4-\beta}$.

    >>> penofw_zeta(10_000, diameter=1.0, lipschitz=1.0)
    0.5
    """
    return 5 * diameter * lipschitz * horizon ** -(0.25 + beta)


def penofw(horizon: int, *, diameter: Any, lipschitz: Any, beta: Any = 0.0) -> Guaranteed:
    r"""PEN-OFW, surely: $\mathrm{Reg} + \frac1{2\zeta}\sum_t[g_t(x_t)]_+^2 \le B$ with
    $B = RD(\varphi + \frac{2.5}\varphi)T^{3/4}$.

    So the regret is at most B, and the hard violation $\sqrt{2\zeta T(RDT + B)}$. As in `pdofw`, with
    $S = \sum_t[g_t(x_t)]_+^2/\zeta^2$ and $x = \varphi$.

    >>> [round(bound) for bound in penofw(10_000, diameter=1.0, lipschitz=1.0)]
    [3500, 11619]
    """
    check_beta(beta, 0.25)
    phi, unit = horizon**beta, diameter * lipschitz
    bound = unit * (phi + 2.5 / phi) * horizon**0.75
    zeta = penofw_zeta(horizon, diameter=diameter, lipschitz=lipschitz, beta=beta)
    return Guaranteed(bound, (2 * zeta * horizon * (unit * horizon + bound)) ** 0.5)


def growth(constants: Constants, lipschitz: Any, smoothness: Any = None, *, horizon: Any) -> Any:
    r"""$C = (C_1 + C_2L/D)T^{\alpha-1/2}$: for an adaptive primal the regret after t rounds is at most
    $C\sqrt{\sum_{s\le t}H_s^2}$. For AdaOFW $3RT^{1/4}$, for AdaGrad $\sqrt2R$."""
    return constants.slope(lipschitz, smoothness) / lipschitz * horizon ** (constants.alpha - 0.5)


def lyap_hard_rate(horizon: Any, growth: Any, *, lipschitz: Any) -> Any:
    r"""$\lambda = 1/(2CD\sqrt T)$, of the potential $e^{\lambda Q} - 1$."""
    return 1 / (2 * growth * lipschitz * horizon**0.5)


def lyap_hard(horizon: int, constants: Constants, *, diameter: Any, lipschitz: Any) -> Guaranteed:
    r"""LYAP-HARD over a deterministic adaptive primal, surely; with $c = C/R$:
    $\mathrm{Reg} \le RD(c\sqrt T + \frac12)$, hard violation $\le 2cRD\sqrt T\ln(2 + 2c\sqrt T + 2T)$.

    >>> from cocoax.theory import constants
    >>> [round(bound) for bound in lyap_hard(10_000, constants.adaofw(1.0), diameter=1.0, lipschitz=1.0)]
    [3000, 60996]
    """
    c = growth(constants, lipschitz, horizon=horizon) / diameter
    start = c * horizon**0.5
    unit = diameter * lipschitz
    return Guaranteed(unit * (start + 0.5), 2 * unit * start * math.log(2 + 2 * start + 2 * horizon))


class Drift(NamedTuple):
    r"""Parameters of the drift potential: level $\ell$, rate $\lambda$, drain $\kappa_0$ and margin $\kappa_1$."""

    level: Any
    rate: Any
    drain: Any
    margin: Any


def lyap_drift(
    horizon: Any,
    growth: Any,
    *,
    diameter: Any,
    lipschitz: Any,
    constraint_bound: Any,
    constraints: int = 1,
    log: Callable = math.log,
    least: Callable = min,
) -> Drift:
    r"""The parameters of the drift potential, with $\bar G = G + 2CD$ and C = `growth`:
    $\ell = \min(\sqrt{\ln(2T + 8\frac CR\sqrt T + 4)}, 0.18\sqrt T)$, $\lambda = \frac{\ell}{\bar G\sqrt{mT}}$,
    $\kappa_0 = 0.864\lambda\bar G^2$ and $\kappa_1 = 2CD$.

    `log` and `least` may be functions of an array library.
    """
    reach = constraint_bound + 2 * growth * lipschitz
    level = least(log(2 * horizon + 8 * growth / diameter * horizon**0.5 + 4) ** 0.5, 0.18 * horizon**0.5)
    rate = level / (reach * (constraints * horizon) ** 0.5)
    return Drift(level, rate, 0.864 * rate * reach**2, 2 * growth * lipschitz)


def lyap_stoch(
    horizon: int,
    constants: Constants,
    *,
    diameter: Any,
    lipschitz: Any,
    smoothness: Any = None,
    constraint_bound: Any,
    constraints: int = 1,
) -> Guaranteed:
    r"""LYAP-STOCH over an adaptive primal, in expectation; with $c = C/R$, $b = T + 4c\sqrt T + 0.864\ell^2 + 1$:
    $\mathrm{Reg} \le RD(4c\sqrt T + 0.864\ell^2)$ and each violation is at most
    $\bar G\sqrt T\bigl(\sqrt m\frac{\ln2b}\ell + \frac{0.864\ell}{\sqrt m}\bigr)
    + 2CD\sqrt{T(1 + 2\ln(T(1 + 2mRD\lambda b)))}$.

    No Slater point and no strong duality. Each of the m potentials is at most $b - 1$ in expectation, so
    $E e^{\lambda Q_i} \le 2b$; the rest of a violation was drained.
    """
    factor = growth(constants, lipschitz, smoothness, horizon=horizon)
    drift = lyap_drift(
        horizon,
        factor,
        diameter=diameter,
        lipschitz=lipschitz,
        constraint_bound=constraint_bound,
        constraints=constraints,
    )
    unit, start = diameter * lipschitz, 4 * factor / diameter * horizon**0.5
    paid = start + 0.864 * drift.level**2
    most = horizon + paid + 1
    queue = math.log(2 * most) / drift.rate
    drained = drift.drain * horizon
    log = math.log(horizon * (1 + 2 * constraints * unit * drift.rate * most))
    return Guaranteed(unit * paid, queue + drained + drift.margin * (horizon * (1 + 2 * log)) ** 0.5)


def lyap_pred(
    horizon: int, constants: Constants, *, diameter: Any, lipschitz: Any, constraint_bound: Any
) -> Guaranteed:
    """LYAP-PRED over a deterministic adaptive primal, for every sequence of rounds.

    The bounds of `lyap_stoch` with one constraint; the violation is the hard violation.
    """
    return lyap_stoch(
        horizon, constants, diameter=diameter, lipschitz=lipschitz, constraint_bound=constraint_bound, constraints=1
    )
