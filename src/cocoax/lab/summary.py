"""A summary of a study as text."""

from typing import TYPE_CHECKING

import polars as pl

from ..core.summaries import Summary

if TYPE_CHECKING:
    from .study import Study

_SHOWN = 5  # learners of a problem


def summary(study: "Study") -> Summary:
    """How many games were played, and which learner has the lowest mean score at each problem's longest horizon."""
    games, missing = len(study.plan), len(study.missing())
    played = f"{games - missing:,} of {games:,} games played"
    if study.refused:
        played += f", {len(study.refused):,} could not be"
    counts = [_count(study.learners, "learner"), _count(study.sources, "problem"), _count(study.seeds, "seed")]
    title = "Study of {} on {}, {}: {}".format(*counts, played)
    if missing == games:
        return Summary(title, [(name, f"T = {_listed(study.horizons[name])}") for name in study.sources])
    table = study.table().filter(pl.col("reason").is_null())
    last = table.filter(pl.col("horizon") == pl.col("horizon").max().over("problem"))
    scores = last.group_by("problem", "learner", maintain_order=True).agg(
        pl.col("score").mean(), pl.col("horizon").max()
    )
    rows = []
    for name in study.sources:
        own = scores.filter(pl.col("problem") == name).sort("score", nulls_last=True)
        if len(own):
            ranked = ", ".join(f"{one['learner']} {one['score']:.4g}" for one in own.head(_SHOWN).to_dicts())
            more = f", and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
            rows.append((name, f"mean score at T = {own['horizon'][0]:,}, lowest first: {ranked}{more}"))
    return Summary(title, rows)


def _count(parts, name) -> str:
    return f"{len(parts)} {name}{'' if len(parts) == 1 else 's'}"


def _listed(numbers) -> str:
    return ", ".join(f"{number:,}" for number in numbers)
