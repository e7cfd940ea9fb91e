"""The exponents of T in the guarantees of the two algorithms and in the paper's tables."""

from fractions import Fraction
from typing import Any, NamedTuple


class Rates(NamedTuple):
    """Exponents of the horizon; `strong_duality` is the violation's when strong duality holds."""

    regret: Any
    violation: Any
    strong_duality: Any
    block_exponent: Any
    beta_max: Any


def check_beta(beta, beta_max) -> None:
    if not 0 <= beta <= beta_max + 1e-12:
        raise ValueError(f"beta must lie in [0, {beta_max}], got {beta}")


def rates(alpha: Any, beta: Any = 0) -> Rates:
    r"""Algorithm 1 over a primal with regret $T^\alpha$; exact when given Fractions.

    Regret $\frac{2-\alpha}{3-2\alpha} + \beta$, violation $\frac{5-3\alpha}{6-4\alpha} - \frac\beta2$, under
    strong duality $\frac{2-\alpha}{3-2\alpha}$, block $\frac{1}{3-2\alpha}$; beta lies between 0 and
    $\frac{1-\alpha}{3-2\alpha}$.

    >>> [str(exponent) for exponent in rates(Fraction(3, 4))]
    ['5/6', '11/12', '5/6', '2/3', '1/6']
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha}")
    scale = 3 - 2 * alpha
    check_beta(beta, (1 - alpha) / scale)
    return Rates(
        regret=(2 - alpha) / scale + beta,
        violation=(5 - 3 * alpha - beta * scale) / (2 * scale),
        strong_duality=(2 - alpha) / scale,
        block_exponent=1 / scale,
        beta_max=(1 - alpha) / scale,
    )


def pdmfw_rates(beta: Any = 0) -> Rates:
    r"""Algorithm 2: regret $\frac12 + \beta$, violation $\frac34 - \frac\beta2$, under strong duality
    $\frac12$; a dual step every round, $0 \le \beta \le \frac12$ (erratum E8).

    >>> [str(exponent) for exponent in pdmfw_rates(Fraction(1, 4))]
    ['3/4', '5/8', '1/2', '0', '1/2']
    """
    half = Fraction(1, 2)
    check_beta(beta, half)
    return Rates(half + beta, (3 * half - beta) * half, half, Fraction(0), half)


class Exponent(NamedTuple):
    """constant + slope * beta."""

    constant: Fraction
    slope: Fraction = Fraction(0)

    def at(self, beta=0) -> Any:
        return self.constant + self.slope * beta


class Guarantee(NamedTuple):
    """A row of Table 1; `printed_cost` differs from `cost` where the paper is wrong (None: no such row)."""

    algorithm: int
    functions: str
    setting: str
    regret: Exponent
    violation: Exponent
    cost: Fraction
    printed_cost: Fraction | None
    primal: str
    note: str = ""


class Primal(NamedTuple):
    """A row of Table 2: regret T^regret without long-term constraints."""

    functions: str
    setting: str
    regret: Fraction
    cost: Fraction
    primal: str
    note: str = ""


_ONE, _HALF = Fraction(1), Fraction(1, 2)
_FREE = Fraction(0)  # cost T^0: one LMO a round
_SLATER = "E16: the bound has (lambda* + 1)^2"


def _row(algorithm, functions, setting, regret, violation, cost, primal, note="", printed: Any = ...):
    """A row of Table 1, from the exponents of regret and violation at beta = 0.

    `printed` is the paper's cost: by default the same as `cost`; None if the paper has no such row.
    """
    duality = "strong duality" in setting
    return Guarantee(
        algorithm,
        functions,
        setting,
        Exponent(Fraction(regret), Fraction(0 if duality else 1)),
        Exponent(Fraction(violation), Fraction(0) if duality else -_HALF),
        cost,
        cost if printed is ... else printed,
        primal,
        note,
    )


_SAMPLES = "E21: blocks of sqrt(T) rounds need sqrt(T) samples a round, not T; E20: SFTPL, not SFTRL"

TABLE_1: tuple[Guarantee, ...] = (
    _row(1, "non-smooth", "adversarial", "5/6", "11/12", _FREE, "ocg"),
    _row(1, "non-smooth", "stochastic, strong duality", "5/6", "5/6", _FREE, "ocg", _SLATER),
    _row(1, "smooth", "adversarial", "4/5", "9/10", _FREE, "ospf", "E30: losses ignore their block's coins"),
    _row(1, "smooth", "stochastic", "3/4", "7/8", _FREE, "orgfw", "E24: two gradients a round"),
    _row(1, "smooth", "stochastic, strong duality", "3/4", "3/4", _FREE, "orgfw", f"E24; {_SLATER}"),
    _row(1, "non-smooth", "adversarial", "3/4", "7/8", _HALF, "sftpl", _SAMPLES, printed=_ONE),
    _row(
        1,
        "non-smooth",
        "stochastic, strong duality",
        "3/4",
        "3/4",
        _HALF,
        "sftpl",
        f"{_SAMPLES}; {_SLATER}",
        printed=_ONE,
    ),
    _row(
        1,
        "smooth",
        "adversarial",
        "3/4",
        "7/8",
        Fraction(1, 4),
        "mfw",
        "E21: missing in print; beats the 4/5 row for T^(1/4) LMOs a round",
        printed=None,
    ),
    _row(
        2,
        "smooth",
        "adversarial",
        "1/2",
        "3/4",
        _HALF,
        "pdmfw",
        "E9: the printed K costs T^(1/2+beta), K = ceil(sqrt(T)) has the same bounds; E8: beta <= 1/2",
    ),
    _row(
        2,
        "smooth",
        "stochastic, strong duality",
        "1/2",
        "1/2",
        _HALF,
        "pdmfw",
        "E17: the constant is C_1 + 24 R D sqrt(d) (lambda* + 1)^2, not C_2",
    ),
)
"""Regret and violation of the two algorithms (the paper's Table 1, corrected)."""

TABLE_2: tuple[Primal, ...] = (
    Primal("non-smooth", "adversarial", Fraction(3, 4), _FREE, "ocg"),
    Primal("smooth", "adversarial", Fraction(2, 3), _FREE, "ospf", "E30: losses ignore their block's coins"),
    Primal("smooth", "stochastic", _HALF, _FREE, "orgfw", "E24: in expectation, two gradients a round"),
    Primal("non-smooth", "adversarial", _HALF, _ONE, "sftpl", "E20: printed as SFTRL"),
    Primal("smooth", "adversarial", _HALF, _HALF, "mfw"),
)
"""Regret of projection-free primals (the paper's Table 2)."""
