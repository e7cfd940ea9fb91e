"""The theorems' bounds as a table, and the horizon from which each bound is better than the trivial one."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from .. import learners, primal, theory
from ..core.facts import offered
from ..domains import AbstractDomain
from .names import select

_LARGEST = 10**15


class Row(NamedTuple):
    method: str
    horizon: int
    regret: float
    trivial_regret: float  # R D T: no decisions do worse
    violation: float
    trivial_violation: float  # G T


class Method(NamedTuple):
    """A theorem's bounds as a function of the horizon, and its exponents of T."""

    rates: theory.Rates
    bounds: Callable[[int], theory.Bounds | theory.Guaranteed]


class _Sizes(NamedTuple):
    """What the constants of a primal ask of a domain, its diameter and dimension, as plain numbers."""

    width: float
    dimension: int

    def diameter(self, ord):
        return self.width


def methods(*, diameter, lipschitz, smoothness, constraint_bound, dimension, beta=0.0) -> dict[str, Method]:
    """The proven methods by name: Algorithm 1 with each primal that has constants, Algorithm 2, and `_frontier`.

    R (`diameter`) and D (`lipschitz`) are in the l2 norm.
    """
    sizes: dict[str, Any] = {"lipschitz": lipschitz, "smoothness": smoothness, "constraint_bound": constraint_bound}
    domain = cast(AbstractDomain, _Sizes(diameter, dimension))
    proven = {name: method.constants(domain) for name, method in _primals().items()}
    proven["OCG (sharper analysis)"] = theory.constants.ocg_sharp(diameter)
    rows = {}
    for name, constants in sorted(proven.items(), key=lambda item: item[0].lower()):
        used = min(beta, float(theory.rates(constants.alpha).beta_max))
        bounds = functools.partial(theory.algorithm1, constants=constants, diameter=diameter, beta=used, **sizes)
        rows[f"Algorithm 1 + {name}"] = Method(theory.rates(constants.alpha, used), bounds)

    sizes |= {"dimension": dimension, "diameter": diameter, "beta": beta, "perturbation": "ball"}
    bounds = functools.partial(theory.pdmfw, **sizes)
    rows["Algorithm 2 (PDMFW, ball)"] = Method(theory.pdmfw_rates(beta), bounds)
    return rows | _frontier(domain, lipschitz, smoothness, constraint_bound, min(beta, 0.25))


def _primals() -> dict[str, primal.AbstractPrimal]:
    """Every public primal, with its variants."""
    return {name: method for part in offered(primal).values() for name, method in part.variants().items()}


def _frontier(domain, lipschitz, smoothness, constraint_bound, beta) -> dict[str, Method]:
    """The proven methods that are not in the paper; their exponents leave out logarithms."""
    sizes: dict[str, Any] = {"diameter": domain.diameter(2), "lipschitz": lipschitz}
    bound, partial = {"constraint_bound": constraint_bound}, functools.partial
    facts: Any = learners.PDOFW.facts  # PENOFW's are the same
    regret, violation = float(facts.regret), float(facts.violation)
    rates = theory.Rates(regret + beta, violation - beta / 2, regret, 0, 0.25)
    rows = {
        "PD-OFW": Method(rates, partial(theory.pdofw, beta=beta, **sizes, **bound)),
        "PEN-OFW (hard)": Method(rates, partial(theory.penofw, beta=beta, **sizes)),
    }
    for name, base in _primals().items():
        if not isinstance(base, primal.AbstractAdaptive):
            continue
        rates = theory.Rates(base.alpha, base.alpha, base.alpha, 0, 0)
        sizes["constants"] = base.constants(domain)
        if base.deterministic:
            rows[f"LYAP-HARD + {name}"] = Method(rates, partial(theory.lyap_hard, **sizes))
            rows[f"LYAP-PRED + {name}"] = Method(rates, partial(theory.lyap_pred, **sizes, **bound))
        rows[f"LYAP-STOCH + {name}"] = Method(
            rates, partial(theory.lyap_stoch, smoothness=smoothness, **sizes, **bound)
        )
    return rows


def table(methods: dict[str, Method], horizons, *, diameter, lipschitz, constraint_bound) -> list[Row]:
    """A row with the bounds of each method at each horizon, and the trivial bounds that any decisions keep."""
    rows = []
    for name, method in methods.items():
        for T in horizons:
            bounds = method.bounds(T)
            trivial = diameter * lipschitz * T, constraint_bound * T
            rows.append(Row(name, T, float(bounds.regret), trivial[0], float(bounds.violation), trivial[1]))
    return rows


def useful_from(method: Method, slope, which: str) -> int | None:
    """About the smallest horizon from which a bound stays below `slope * T`, the trivial bound; None if above 1e15.

    `which` is "regret" or "violation". Rounded block lengths make bounds jump, so the search looks at eight horizons in
    each doubling.
    """

    def useful(T):
        return getattr(method.bounds(T), which) < slope * T

    horizons = sorted({round(2 ** (i / 8)) for i in range(8 * _LARGEST.bit_length())}, reverse=True)
    first = None
    for horizon in horizons:
        if not useful(horizon):
            break
        first = horizon
    return first


def pick(methods: dict[str, Method], names: str | Sequence[str] | None) -> dict[str, Method]:
    """The methods that a text names, whole or short, separated by commas; all of them without a text."""
    return {name: methods[name] for name in select(names, methods, "method") or methods}
