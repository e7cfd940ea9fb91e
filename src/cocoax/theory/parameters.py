r"""Parameters of the two algorithms: block length, theta, mu, size of the perturbation.

Integers (`ceil_power`, `block_length`, `inner_steps`) are for Python ints; the rest takes arrays too.
"""

from fractions import Fraction
from typing import Any

from .constants import Constants, kappa


def ceil_power(horizon: int, exponent: Any) -> int:
    """The smallest integer K >= horizon**exponent, without rounding errors.

    >>> ceil_power(1000, 2 / 3), ceil_power(1001, 2 / 3), ceil_power(10**30, 1 / 3) == 10**10
    (100, 101, True)
    """
    if isinstance(horizon, float) or horizon < 1:
        raise ValueError(f"horizon must be a positive integer, got {horizon}")
    fraction = Fraction(exponent).limit_denominator(1000)
    if not 0 <= fraction <= 1:
        raise ValueError(f"exponent must lie between 0 and 1, got {exponent}")
    target = int(horizon) ** fraction.numerator
    below, above = 0, int(horizon)
    while above - below > 1:
        middle = (below + above) // 2
        if middle**fraction.denominator >= target:
            above = middle
        else:
            below = middle
    return above


def block_length(horizon: int, alpha: Any) -> int:
    r"""$K = \lceil T^{1/(3-2\alpha)} \rceil$: the number of rounds between two dual steps of Algorithm 1.

    >>> block_length(1000, 3 / 4), block_length(1024, 1 / 2), block_length(7776, 2 / 3)
    (100, 32, 216)
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha}")
    return ceil_power(horizon, 1 / (3 - 2 * Fraction(alpha).limit_denominator(100)))


def inner_steps(horizon: int) -> int:
    r"""$K = \lceil\sqrt T\rceil$: the number of Frank-Wolfe steps per round in Algorithm 2, for every beta (erratum
    E9).

    >>> inner_steps(1000)
    32
    """
    return ceil_power(horizon, Fraction(1, 2))


def blocks_theta(
    constants: Constants,
    lipschitz: Any,
    smoothness: Any = None,
    *,
    block: Any,
    horizon: Any,
    beta: Any = 0.0,
    constraints: int = 1,
    scale: Any = 1.0,
) -> Any:
    r"""$\theta = 3 m A K^\alpha T^{-\beta}$ with $A = C_1 D + C_2 L$: the regularisation of Algorithm 1's dual steps.

    K is the block length as it is, after rounding (erratum E23).

    >>> from cocoax.theory import constants
    >>> blocks_theta(constants.ocg(1.0), 1.0, block=16, horizon=64)  # 3 * 8 R D * 16^(3/4)
    192.0
    """
    slope = constants.slope(lipschitz, smoothness)
    return 3 * constraints * slope * block**constants.alpha * horizon**-beta * scale


def blocks_mu(theta: Any, blocks: Any) -> Any:
    r"""$\mu = 1 / (\theta (Q + 1))$: the dual step of Algorithm 1, for $Q = \lceil T/K \rceil$ blocks.

    >>> blocks_mu(2.0, 9)
    0.05
    """
    return 1 / (theta * (blocks + 1))


def pdmfw_level(horizon: Any, beta: Any = 0.0) -> Any:
    r"""$N = T^{1/2+\beta}$, from which Algorithm 2's perturbation and regularisation follow.

    >>> pdmfw_level(10_000)
    100.0
    """
    return horizon ** (0.5 + beta)


def pdmfw_size(level: Any, lipschitz: Any, dimension: int, perturbation: str = "cube") -> Any:
    r"""The size of Algorithm 2's perturbation: side $2 D \sqrt d N$ of a cube, or radius $D \sqrt{2\kappa_d} N$ of a
    ball.

    The side is $1/\delta$ in the paper (erratum E1).

    >>> pdmfw_size(100.0, 1.0, dimension=4)
    400.0
    """
    sides = 1 if perturbation == "ball" else 2
    return sides * lipschitz * dimension_factor(dimension, perturbation) * level


def pdmfw_theta(
    level: Any,
    lipschitz: Any,
    diameter: Any,
    dimension: int,
    perturbation: str = "cube",
    *,
    constraints: int = 1,
    scale: Any = 1.0,
) -> Any:
    r"""$\theta = 12 m R D \sqrt d / N$: the regularisation of Algorithm 2's dual steps.

    The ball has $\sqrt{2\kappa_d}$ instead of $\sqrt d$.

    >>> pdmfw_theta(100.0, 1.0, 1.0, dimension=4)
    0.24
    """
    factor = dimension_factor(dimension, perturbation)
    return 12 * constraints * diameter * lipschitz * factor / level * scale


def pdmfw_mu(theta: Any, horizon: Any) -> Any:
    r"""$\mu = 1 / (\theta (T + 2))$: the dual step of Algorithm 2.

    >>> pdmfw_mu(0.5, 98)
    0.02
    """
    return 1 / (theta * (horizon + 2))


def ftpl_size(horizon: Any, lipschitz: Any, dimension: int, perturbation: str = "ball") -> Any:
    r"""The perturbation with the least regret bound for T linear losses.

    Side $D\sqrt{dT}$ of a cube, $D\sqrt{2dT}$ of a centred cube, or radius $D\sqrt{\kappa_d T}$ of a ball.

    >>> ftpl_size(100, 1.0, dimension=4, perturbation="cube")
    20.0
    """
    spread = {"cube": dimension, "centred": 2 * dimension, "ball": kappa(dimension)}
    if perturbation not in spread:
        raise ValueError(f"perturbation must be 'cube', 'centred' or 'ball', got {perturbation!r}")
    return lipschitz * (spread[perturbation] * horizon) ** 0.5


def dimension_factor(dimension: int, perturbation) -> float:
    r"""$\sqrt d$ for cubes, $\sqrt{2\kappa_d}$ for the ball: how Algorithm 2's bounds depend on the dimension."""
    if perturbation in ("cube", "centred"):
        return dimension**0.5
    if perturbation == "ball":
        return (2 * kappa(dimension)) ** 0.5
    raise ValueError(f"perturbation must be 'cube', 'centred' or 'ball', got {perturbation!r}")
