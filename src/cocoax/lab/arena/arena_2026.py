"""The arena of 2026: rivals tuned on the first 30% of every series, all learners scored on the rest."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from ... import __version__, learners
from ...errors import LabError
from ...learners.base import AbstractLearner
from ..names import closest
from ..study import Study
from . import series
from .ranking import START
from .rivals import FAMILIES, TUNED, tuned_rivals

TOLERANCE = 1e-4  # of the comparators


def arena_2026_study(
    out: Path | str | None = None,
    *,
    names: Sequence[str] | None = None,
    challengers: Mapping[str, AbstractLearner] | None = None,
) -> Study:
    """The study behind `cocoax race arena-2026`: Auto, `challengers`, the start, and the rivals tuned for each series.

    **Arguments:**

    - `out`: as in `Study`.
    - `names`: names of series; all by default. Those of real data need `cocoax data fetch`.
    - `challengers`: learners of your own, by name, which play along with Auto.
    """
    known = series.SERIES
    chosen = list(known) if names is None else [closest(name, known, "series of the arena") for name in names]
    absent = series.missing_data(chosen)
    if absent:
        raise LabError(f"data are missing; run `cocoax data fetch {' '.join(absent)}`, or give --problems without them")
    own = dict(challengers or {})
    taken = sorted(own.keys() & {"Auto", START})
    if taken:
        raise LabError(f"a learner of your own cannot be called {taken[0]!r}; give it another name")
    found = {name: series.frozen(name) for name in chosen}
    rivals = tuned_rivals({name: series.tuned()[name]["families"] for name in chosen}, chosen, FAMILIES)
    return Study(
        {name: (one.problem, one.part(one.tuning, one.length)) for name, one in found.items()},
        {"Auto": learners.Auto(), **own, START: learners.Stay(), **rivals},
        {name: [one.length - one.tuning] for name, one in found.items()},
        [0],
        out,
        tol=TOLERANCE,
    )


def arena_2026_tables(study: Study) -> dict[str, list[dict[str, str]]]:
    """Two tables by title, "Real" and "Synthetic": one row per series, one cell per learner.

    A cell has the score and, in brackets, regret and the worst violation.
    """
    table = study.table().filter(pl.col("reason").is_null())
    own = [name for name, learner in study.learners.items() if not isinstance(learner, Mapping)]
    groups = {"Real": series.REAL, "Synthetic": series.SYNTHETIC}
    tables = {
        title: [{title: name, **_cells(table, name, own)} for name in study.sources if name in group]
        for title, group in groups.items()
    }
    return {title: rows for title, rows in tables.items() if rows}


def arena_2026_markdown(study: Study, command: str) -> str:
    """Both tables in Markdown, after a paragraph that says what their figures mean; `command` made them."""
    lines = [
        f"`{command}`, cocoax {__version__}. Rivals are tuned on the first {series.TUNING:.0%} of a series; all are "
        "scored on the rest, against the best fixed decision of it. A score is regret + ⟨price, [violation]₊⟩, lower "
        "is better; in brackets regret and violation (the worst constraint's). Series are frozen by a hash.",
    ]
    for rows in arena_2026_tables(study).values():
        lines += ["", f"| {' | '.join(rows[0])} |", "|---" * len(rows[0]) + "|"]
        lines += [f"| {' | '.join(row.values())} |" for row in rows]
    return "\n".join([*lines, ""])


def _cells(table, name, own) -> dict[str, str]:
    """The row of series `name`: the scores of the learners in `own`, and of the best rival with its name."""
    games = {row["learner"]: row for row in table.filter(pl.col("problem") == name).iter_rows(named=True)}
    finite = [row for learner, row in games.items() if learner not in own and row["bad_round"] < 0]
    best = min(finite, key=lambda row: row["score"], default=None)
    rounds = next(iter(games.values()))["horizon"]
    rival = "none" if best is None else best["learner"].removesuffix(TUNED)
    figures = {one: _figures(games.get(one)) for one in own}
    return {"rounds": str(rounds), **figures, "best rival, tuned": rival, "its score": _figures(best)}


def _figures(row) -> str:
    if row is None or row["bad_round"] >= 0:
        return "none"
    return f"{row['score']:.3g} ({row['regret']:.3g}, {row['violation']:.3g})"
