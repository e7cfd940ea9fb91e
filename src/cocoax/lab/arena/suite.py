"""The arena: a fixed suite of problems, on which an untuned learner meets rivals that were tuned by hand."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from ... import learners, problems
from ...errors import LabError
from ...learners.base import AbstractLearner
from ..names import closest
from ..study import Study
from . import tuning
from .ranking import START, TUNED_HORIZON

RIVALS = 3  # on each problem: the families that did best when they were tuned


def _in_units(key, **units):
    return problems.rescaled(problems.simplex(key, quadratic=True), **units)


def _waking(key, after):
    return problems.waking(problems.simplex(key, quadratic=True), after=after)


_of = functools.partial
_simplex, _completion = problems.simplex, problems.matrix_completion

ARENA: dict[str, Callable] = {
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
    "pacing, budget 50%": _of(problems.pacing, budget=0.5),
    "pacing, budget 20%": _of(problems.pacing, budget=0.2),
    "pacing, budget 10%": _of(problems.pacing, budget=0.1),
    "pacing, prices double": _of(problems.pacing, budget=0.2, doubles_at=500),
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
"""By name, functions of a key. Each has a certified comparator, and a start that costs more than it."""

HORIZONS = dict.fromkeys(ARENA, (100, 300, TUNED_HORIZON)) | {
    "completion, binding": (200, 450, 1000),  # with fewer rounds hindsight overfits
    **dict.fromkeys(("pacing, prices double", "wakes late"), (1000, 2000, 4000)),  # what happens after 500 rounds
}


FIRST_SEED = 3000  # of the reported seeds; nothing was chosen by looking at them


def arena_study(
    out: Path | str | None = None,
    *,
    seeds: Sequence[int] = range(FIRST_SEED, FIRST_SEED + 10),
    horizons: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    challenger: AbstractLearner | None = None,
) -> Study:
    """The study behind `cocoax race arena`: `challenger`, the start, and on each problem the rivals tuned for it.

    **Arguments:**

    - `out`, `seeds`: as in `Study`; seeds that rivals were tuned on are refused.
    - `horizons`: instead of each problem's own.
    - `names`: of problems; all by default.
    - `challenger`: a learner; `learners.Auto()` by default.
    """
    used = sorted(set(seeds) & set(tuning.SEEDS))
    if used:
        raise LabError(f"rivals were tuned on the seed {used[0]}; give seeds other than {tuning.SEEDS}")
    chosen = list(ARENA) if names is None else [closest(name, ARENA, "problem of the arena") for name in names]
    first = learners.Auto() if challenger is None else challenger
    tuned = {
        family: {problem: rival for problem, rival in by_problem.items() if problem in chosen}
        for family, by_problem in tuning.rivals(RIVALS).items()
    }
    return Study(
        {name: ARENA[name] for name in chosen},
        {
            "Auto" if challenger is None else type(challenger).__name__: first,
            START: learners.Stay(),
            **{family: by_problem for family, by_problem in tuned.items() if by_problem},
        },
        {name: horizons or HORIZONS[name] for name in chosen},
        seeds,
        out,
        tol=tuning.TOLERANCE,
    )
