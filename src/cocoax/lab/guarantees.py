"""What the theorems promise, as a table, and from which horizon on they promise anything."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import theory
from .names import closest

_LARGEST = 10**15
_NAMES = {
    "adagrad": "AdaGrad (projected)",
    "adamfw": "AdaMFW",
    "adaofw": "AdaOFW",
    "loo_bogd": "LOO-BOGD",
    "morgfw_sampled": "MORGFW (sampled)",
    "ocg_sharp": "OCG (sharper analysis)",
    "ogd": "OGD (projected)",
    "sftpl_smooth": "SFTPL (smooth)",
}


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


def methods(*, diameter, lipschitz, smoothness, constraint_bound, dimension, beta=0.0) -> dict[str, Method]:
    """Algorithm 1 with every primal that has constants, and Algorithm 2, with R and D in the l2 norm."""
    known: dict[str, Any] = {"lipschitz": lipschitz, "smoothness": smoothness, "constraint_bound": constraint_bound}
    found = {}
    for name, make in inspect.getmembers(theory.constants, inspect.isfunction):
        if name == "kappa" or make.__module__ != theory.constants.__name__:
            continue
        takes = inspect.signature(make).parameters
        constants = make(diameter, dimension) if "dimension" in takes else make(diameter)
        used = min(beta, float(theory.rates(constants.alpha).beta_max))
        bounds = functools.partial(theory.algorithm1, constants=constants, diameter=diameter, beta=used, **known)
        found[f"Algorithm 1 + {_NAMES.get(name, name.upper())}"] = Method(theory.rates(constants.alpha, used), bounds)

    known |= {"dimension": dimension, "diameter": diameter, "beta": beta, "perturbation": "ball"}
    bounds = functools.partial(theory.pdmfw, **known)
    found["Algorithm 2 (PDMFW, ball)"] = Method(theory.pdmfw_rates(beta), bounds)
    return found | _frontier(
        {"diameter": diameter, "lipschitz": lipschitz}, smoothness, constraint_bound, dimension, min(beta, 0.25)
    )


def _frontier(known: dict[str, Any], smoothness, constraint_bound, dimension, beta) -> dict[str, Method]:
    """The methods beyond the paper; logarithms are not in their exponents."""
    partial, constants, bound = functools.partial, theory.constants, {"constraint_bound": constraint_bound}
    rates = theory.Rates(0.75 + beta, 0.875 - beta / 2, 0.75, 0, 0.25)
    found = {
        "PD-OFW": Method(rates, partial(theory.pdofw, beta=beta, **known, **bound)),
        "PEN-OFW (hard)": Method(rates, partial(theory.penofw, beta=beta, **known)),
    }
    bases = {
        "AdaOFW": constants.adaofw(known["diameter"]),
        "AdaGrad (projected)": constants.adagrad(known["diameter"]),
        "AdaMFW": constants.adamfw(known["diameter"], dimension),
    }
    for name, base in bases.items():
        rates = theory.Rates(base.alpha, base.alpha, base.alpha, 0, 0)
        if name != "AdaMFW":
            found[f"LYAP-HARD + {name}"] = Method(rates, partial(theory.lyap_hard, constants=base, **known))
            found[f"LYAP-PRED + {name}"] = Method(rates, partial(theory.lyap_pred, constants=base, **known, **bound))
        given = {"constants": base, "smoothness": smoothness, **known, **bound}
        found[f"LYAP-STOCH + {name}"] = Method(rates, partial(theory.lyap_stoch, **given))
    return found


def table(found: dict[str, Method], horizons, *, diameter, lipschitz, constraint_bound) -> list[Row]:
    rows = []
    for name, method in found.items():
        for T in horizons:
            bounds = method.bounds(T)
            trivial = diameter * lipschitz * T, constraint_bound * T
            rows.append(Row(name, T, float(bounds.regret), trivial[0], float(bounds.violation), trivial[1]))
    return rows


def useful_from(method: Method, slope, which: str) -> int | None:
    """About the horizon T from which a bound stays below `slope * T`, what any decisions reach; None if that is beyond
    1e15. Rounding of block lengths makes bounds jump: the search looks at eight horizons in each doubling."""

    def useful(T):
        return getattr(method.bounds(T), which) < slope * T

    looked_at = sorted({round(2 ** (i / 8)) for i in range(8 * _LARGEST.bit_length())}, reverse=True)
    after = None
    for horizon in looked_at:
        if not useful(horizon):
            break
        after = horizon
    return after


def pick(found: dict[str, Method], names) -> dict[str, Method]:
    if not names:
        return found
    return {name: found[closest(name, found, "method")] for name in names}
