r"""The guarantee of `learners.Guarded`: that of its fallback, with larger constants."""

from typing import Any

from .frontier import Guaranteed

LARGEST_MULTIPLIER = 10.0
r"""The largest $\frac{\Lambda_tG}{RD}t^{1/2-p}$ at which `Guarded` evaluates its certificate."""


def guarded(
    horizon: int,
    fallback: Guaranteed,
    *,
    diameter: Any,
    lipschitz: Any,
    constraint_bound: Any,
    factor: Any = 4.0,
    regret: Any = 0.75,
    violation: Any = 0.75,
    constraints: int = 1,
    expected: bool = False,
) -> Guaranteed:
    r"""$cRDT^p+(2\sqrt T+1)RD+\mathrm{Reg}(T)$ and $cGT^q+(2\sqrt T+1)G+\mathrm{Viol}(T)$; if the constraints hold in
    expectation only (`expected`), the expected regret has $20mRDT^p$ more.

    `fallback` has its bounds at T, which must not fall as T grows. Let $\tau$ be the last check that was passed. Up to
    $\tau$ the certificate bounds the regret by $B_\tau\le cRDT^p$. Checks are at squares, so at most $2\sqrt T+1$
    rounds lie between $\tau$ and the switch, or the end, each of which costs at most RD and G. The fallback plays the
    rest, begun afresh. Where $E\,g_t(x)\le0$ only, the certificate needs $\langle\lambda,\sum_{s\le\tau}g_s(x)\rangle$
    on its right side, for a random $\lambda$ and a random $\tau$: at most
    $\Lambda\sum_iE\sup_t[\sum_{s\le t}g_{s,i}(x)]_+\le 2\Lambda mG\sqrt T$ by Doob's inequality.

    >>> bounds = guarded(10_000, Guaranteed(100.0, 50.0), diameter=1.0, lipschitz=1.0, constraint_bound=1.0)
    >>> [round(bound) for bound in bounds]
    [4301, 4251]
    """
    unit, between = diameter * lipschitz, 2 * horizon**0.5 + 1
    doob = 2 * LARGEST_MULTIPLIER * constraints * unit * horizon**regret if expected else 0.0
    return Guaranteed(
        factor * unit * horizon**regret + between * unit + fallback.regret + doob,
        (factor * horizon**violation + between) * constraint_bound + fallback.violation,
    )
