r"""Constants of the primals: Regret <= (C0 + C1 D + C2 L) T^alpha.

R is the diameter of the domain, D bounds the gradients and L their Lipschitz constant, in the Euclidean norm;
FTPL and MFW with a cube perturbation use the l1 diameter and the l-infinity norm of gradients instead.
Random primals have their bound in expectation, against losses that ignore the coins of the round (OSPF: of
the block). Tags: *confirmed* was seen in a published source, *derived* is proved in the project's notes.
"""

import math
from typing import Any, NamedTuple


class Constants(NamedTuple):
    """An (alpha, c0, c1, c2)-oracle: Regret <= (c0 + c1 * lipschitz + c2 * smoothness) * horizon**alpha.

    >>> Constants(alpha=0.75, c0=0.0, c1=2.0, c2=0.0).regret(16, lipschitz=3.0)
    48.0
    """

    alpha: float
    c0: Any
    c1: Any
    c2: Any

    def slope(self, lipschitz: Any, smoothness: Any = None) -> Any:
        """$A = C_1 D + C_2 L$; if c2 is zero, smoothness may be infinite or missing."""
        if isinstance(self.c2, int | float) and self.c2 == 0:
            return self.c1 * lipschitz
        if smoothness is None:
            raise ValueError("this primal needs smooth losses: give the smoothness, got None")
        return self.c1 * lipschitz + self.c2 * smoothness

    def regret(self, horizon: Any, lipschitz: Any, smoothness: Any = None) -> Any:
        """The right-hand side."""
        return (self.c0 + self.slope(lipschitz, smoothness)) * horizon**self.alpha


def kappa(dimension: int) -> float:
    r"""$\kappa_d = \Gamma(d/2+1) / (\sqrt\pi\,\Gamma((d+1)/2)) \le \sqrt{(d+1)/2\pi}$.

    Two balls of radius r whose centres are w apart have total variation distance at most $\kappa_d w / r$.

    >>> round(kappa(1), 12), round(kappa(2) * math.pi, 12), round(kappa(3), 12)
    (0.5, 2.0, 0.75)
    """
    return math.exp(math.lgamma(dimension / 2 + 1) - math.lgamma((dimension + 1) / 2)) / math.pi**0.5


def ocg(diameter: Any) -> Constants:
    """(3/4, 0, 8 R, 0). Hazan, Introduction to OCO, Theorem 7.3; confirmed."""
    return Constants(3 / 4, 0.0, 8 * diameter, 0.0)


def ocg_sharp(diameter: Any) -> Constants:
    """(3/4, 0, 59 R / 12, 0): the same algorithm, a sharper proof; derived."""
    return Constants(3 / 4, 0.0, 59 / 12 * diameter, 0.0)


def ofw(diameter: Any) -> Constants:
    """(3/4, 0, 4 * 3^(-3/4) R, 0), about 1.755 R.

    Weibel, Gaillard, Koolen, Taylor (2025), Theorem 2.1; confirmed.
    """
    return Constants(3 / 4, 0.0, 4 * 3**-0.75 * diameter, 0.0)


def adaofw(diameter: Any) -> Constants:
    """(3/4, 0, 3 R, 0), the Lipschitz constant unknown to the learner; derived."""
    return Constants(3 / 4, 0.0, 3 * diameter, 0.0)


def tracked(diameter: Any) -> Constants:
    """(3/4, 0, 4.86 R, 0) for `primal.Tracked` with its own steps; derived, in `regret.tracked`."""
    return Constants(3 / 4, 0.0, 4.86 * diameter, 0.0)


def loo_bogd(diameter: Any) -> Constants:
    r"""(3/4, 0, (\sqrt 3 + 3 * 65^(-1/4)) R, 0), about 2.789 R. Garber, Kretzu (2022), constant derived.

    $\min\{T, \sqrt{\lceil\sqrt T\rceil T} + \sqrt 3\,T^{3/4}\} / T^{3/4}$ is largest at $T = 65$.
    """
    return Constants(3 / 4, 0.0, (3**0.5 + 3 * 65**-0.25) * diameter, 0.0)


def ospf(diameter: Any, dimension: int) -> Constants:
    r"""(2/3, 0, 2 \sqrt{2 \kappa_d} R, R^2), smooth losses. Hazan, Minasyan (2020), constants derived."""
    return Constants(2 / 3, 0.0, 2 * (2 * kappa(dimension)) ** 0.5 * diameter, diameter**2)


def sftpl(diameter: Any, dimension: int) -> Constants:
    r"""(1/2, 0, (2 \sqrt{\kappa_d} + 1) R, 0), T samples per round. Hazan, Minasyan (2020); derived."""
    return Constants(1 / 2, 0.0, (2 * kappa(dimension) ** 0.5 + 1) * diameter, 0.0)


def sftpl_smooth(diameter: Any, dimension: int) -> Constants:
    r"""(1/2, 0, 2 \sqrt{\kappa_d} R, R^2) with ceil(sqrt(T)) samples per round, smooth losses; derived."""
    return Constants(1 / 2, 0.0, 2 * kappa(dimension) ** 0.5 * diameter, diameter**2)


def orgfw(diameter: Any) -> Constants:
    """(1/2, 0, 7 R, 6.5 R^2) for i.i.d. smooth losses. Xie et al. (2020), constants derived."""
    return Constants(1 / 2, 0.0, 7 * diameter, 6.5 * diameter**2)


def ftpl(diameter: Any, dimension: int, perturbation: str = "ball") -> Constants:
    r"""(1/2, 0, C1, 0) for linear losses at the best size of the perturbation.

    C1 is $2\sqrt{d} R$ for the cube $[0, s]^d$ (the paper's lemma; confirmed), $\sqrt{2d} R$ for the centred
    cube (derived), $2\sqrt{\kappa_d} R$ for the ball (derived).

    >>> ftpl(1.0, 9, "cube").c1, round(ftpl(1.0, 9, "ball").c1, 3)
    (6.0, 2.219)
    """
    if perturbation == "cube":
        factor = 2 * dimension**0.5
    elif perturbation == "centred":
        factor = (2 * dimension) ** 0.5
    elif perturbation == "ball":
        factor = 2 * kappa(dimension) ** 0.5
    else:
        raise ValueError(f"perturbation must be 'cube', 'centred' or 'ball', got {perturbation!r}")
    return Constants(1 / 2, 0.0, factor * diameter, 0.0)


def mfw(diameter: Any, dimension: int, perturbation: str = "ball") -> Constants:
    r"""(1/2, 0, C1 of `ftpl`, 2 R^2) with ceil(sqrt(T)) inner steps $\gamma_k = 2/(k+1)$; derived.

    Chen, Harshaw, Hassani, Karbasi (2018), exact gradients of smooth losses.
    """
    return ftpl(diameter, dimension, perturbation)._replace(c2=2 * diameter**2)


def adamfw(diameter: Any, dimension: int) -> Constants:
    r"""(1/2, 0, $2\sqrt{2\kappa_d}R$, 2 R^2): MFW with a ball that grows with the bounds on gradients; derived."""
    fixed = mfw(diameter, dimension)
    return fixed._replace(c1=2**0.5 * fixed.c1)


def morgfw(diameter: Any, dimension: int, perturbation: str = "ball") -> Constants:
    r"""(1/2, 0, C1 of `ftpl` + R/2, R^2/e), T inner steps $\eta_k = 1/(k+1)$, exact gradients; derived.

    Exact gradients make the recursive estimate equal to the gradient, so this is Meta-Frank-Wolfe with equal
    weights 1/(K+1). At K = T the start point costs $RD\,T/(T+1) \le \tfrac12 RD\sqrt T$, and curvature
    $\tfrac12 LR^2\,T\ln(T+1)/(T+1) \le LR^2\sqrt T/e$. Noisy gradients: `regret.morgfw`.
    """
    linear = ftpl(diameter, dimension, perturbation)
    return linear._replace(c1=linear.c1 + diameter / 2, c2=diameter**2 / math.e)


def morgfw_sampled(diameter: Any, dimension: int) -> Constants:
    r"""(1/2, 0, \sqrt 2 C + R/2, \sqrt 2 C R + R^2/e), C = C1 of `ftpl` with the ball, sampled gradients; derived.

    The estimates are unbiased and independent of the vertices they are paired with, so only their size matters:
    $E\|d^k\|^2 \le D^2 + (D^2 + L^2R^2) \le 2(D + LR)^2$. FTPL, sized for $\sqrt2(D+LR)$, then has regret
    $\sqrt2\,C(D+LR)\sqrt T$; start point and curvature cost what they do for `morgfw`.
    """
    exact, linear = morgfw(diameter, dimension), ftpl(diameter, dimension)
    extra = 2**0.5 * linear.c1
    return exact._replace(c1=exact.c1 - linear.c1 + extra, c2=exact.c2 + extra * diameter)


def ogd(diameter: Any) -> Constants:
    r"""(1/2, 0, R, 0): gradient descent with steps $R/(D\sqrt T)$ and projections (Zinkevich, 2003); derived."""
    return Constants(1 / 2, 0.0, diameter, 0.0)


def adagrad(diameter: Any) -> Constants:
    r"""(1/2, 0, \sqrt 2 R, 0): AdaGrad-norm gradient descent, the reference with projections; derived."""
    return Constants(1 / 2, 0.0, 2**0.5 * diameter, 0.0)
