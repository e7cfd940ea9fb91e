"""The problems of the arena, by name."""

import functools
from collections.abc import Callable

from ... import problems
from .tuning import HORIZON

_of = functools.partial
_simplex, _completion, _pacing = problems.simplex, problems.matrix_completion, problems.pacing


def _in_units(key, **units):
    return problems.rescaled(problems.simplex(key, quadratic=True), **units)


def _waking(key, after):
    return problems.waking(problems.simplex(key, quadratic=True), after=after)


def _quadratic(key, around, **options):
    return around(problems.simplex(key, quadratic=True), **options)


def _bought(key, around, **options):
    return around(problems.pacing(key, budget=0.2), **options)


_OF_VERSION_1: dict[str, Callable] = {
    "completion": _completion,
    "completion, binding": _of(_completion, binding=True),
    "completion, rank 5": _of(_completion, rank=5),
    "completion, 200 x 200": _of(_completion, rows=200, cols=200, rank=5, observed=1600),
    "linear": _simplex,
    "linear, 3 constraints": _of(_simplex, constraints=3),
    "linear, adversarial": _of(_simplex, adversarial=True),
    "linear, 3 constraints, adversarial": _of(_simplex, constraints=3, adversarial=True),
    "quadratic": _of(_simplex, quadratic=True),
    "quadratic, 3 constraints": _of(_simplex, quadratic=True, constraints=3),
    "quadratic, adversarial": _of(_simplex, quadratic=True, adversarial=True),
    "quadratic, 3 constraints, adversarial": _of(_simplex, quadratic=True, constraints=3, adversarial=True),
    "linear, alternating": _of(_simplex, adversarial=True, stretch=1),
    "pacing, budget 50%": _of(_pacing, budget=0.5),
    "pacing, budget 20%": _of(_pacing, budget=0.2),
    "pacing, budget 10%": _of(_pacing, budget=0.1),
    "pacing, prices double": _of(_pacing, budget=0.2, doubles_at=500),
    "portfolio": problems.portfolio,
    "shortest path": problems.shortest_path,
    "l1 regression": problems.sparse_regression,
    "l1 regression, absolute": _of(problems.sparse_regression, absolute=True),
    "group sparsity": problems.group_sparsity,
    "online PCA": problems.online_pca,
    "never binds": _of(_simplex, quadratic=True, binding=False),
    "wakes late": _of(_waking, after=500),
    "units of 1e-3": _of(_in_units, loss=1e-3, constraint=1e3, geometry=1e-3),
    "units of 1e3": _of(_in_units, loss=1e3, constraint=1e-3, geometry=1e3),
}

_THREE = {"curvatures": (1.0, 10.0, 100.0), "target": (2.0, 1.0, 0.7), "noise": 0.0}
_TWO_ITEMS = {"values": (1.0, -1.0), "prices": (1.0, 1000.0), "noise": 0.0, "budget": 0.3 / 1001}
_DECADES = {"segments": 20, "decades": 3, "budget": 0.2}

_MEAN: dict[str, Callable] = {
    "curvatures 1, 10, 100": _of(problems.ill_conditioned, **_THREE),
    "condition 100": _of(problems.ill_conditioned, condition=1e2),
    "condition 10^4": _of(problems.ill_conditioned, condition=1e4),
    "condition 10^4, constrained": _of(problems.ill_conditioned, condition=1e4, constrained=True),
    "correlation 0.9, box": problems.least_squares,
    "correlation 0.99, box": _of(problems.least_squares, correlation=0.99),
    "correlation 0.9, l1 ball, constrained": _of(problems.least_squares, ball="l1", constrained=True),
    "prices over 3 decades": _of(_pacing, **_DECADES),
    "prices over 3 decades, from nothing": _of(_pacing, **_DECADES, from_nothing=True),
    "two items, from nothing": _of(_pacing, **_TWO_ITEMS, from_nothing=True),
    "box 10 times too large": _of(problems.absolute_regression, width=10.0),
    "box 100 times too large": _of(problems.absolute_regression, width=100.0),
    "box 1000 times too large": _of(problems.absolute_regression, width=1000.0),
    "box 100 times too large, constrained": _of(problems.absolute_regression, width=100.0, constrained=True),
    "outliers in constraints": _of(_bought, around=problems.with_outliers, constraint=1e3),
    "outliers in losses": _of(_quadratic, around=problems.with_outliers, loss=1e2),
    "heavy tails in constraints": _of(_quadratic, around=problems.heavy_tailed, constraint=0.5),
    "heavy tails in losses": _of(_quadratic, around=problems.heavy_tailed, loss=0.1),
    "3% of constraints seen": _of(_quadratic, around=problems.rarely_seen, constraint=0.03),
    "3% of all seen": _of(_quadratic, around=problems.rarely_seen, loss=0.03, constraint=0.03),
    "100,000 experts": problems.experts,
    "volatility": problems.volatile_portfolio,
    "seasons": _of(_pacing, budget=0.2, season=200.0),
    "20 constraints": _of(_simplex, n=20, constraints=20, quadratic=True),
    "infeasible stretches": _of(_bought, around=problems.infeasible_stretches, excess=0.3),
    "newsvendor": problems.newsvendor,
    "hinge": problems.classification,
    "entropy": problems.poles,
    "log-loss": _of(problems.poles, loss="log"),
    "congestion": _of(problems.shortest_path, congestion=2.0),
}

ARENA = _OF_VERSION_1 | _MEAN
"""By name, functions of a key. Each has a certified comparator, and a start that costs more than it."""

VERSION_1 = tuple(_OF_VERSION_1)
"""The names of those that the first version of the arena had; the others were chosen to break its winner."""

HORIZONS = dict.fromkeys(ARENA, (100, 300, HORIZON)) | {
    "completion, binding": (200, 450, HORIZON),  # with fewer rounds hindsight overfits
    **dict.fromkeys(("pacing, prices double", "wakes late"), (1000, 2000, 4000)),  # what happens after 500 rounds
    **dict.fromkeys(("outliers in constraints", "outliers in losses"), (200, HORIZON, 5000)),  # two pairs, from 1000 on
    **dict.fromkeys(("3% of constraints seen", "3% of all seen", "volatility"), (HORIZON, 2000, 4000)),
    "infeasible stretches": (200, 500, HORIZON),
    "seasons": (200, 400, HORIZON),
    "100,000 experts": (75, 150, 300),
}


def tuned_horizon(name: str) -> int:
    """The number of rounds that the rivals on this problem are tuned for."""
    return HORIZON if HORIZON in HORIZONS[name] else max(HORIZONS[name])
