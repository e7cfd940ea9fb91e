"""What the page shows of one problem, as plain data: `page.html.j2` and `tables.html.j2` make the HTML."""

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from ..results import statistics
from . import plots
from .data import ReportData
from .figures import Style


@dataclasses.dataclass(frozen=True)
class Section:
    """If no game could be played, only `refused` and `bad` hold something."""

    name: str
    address: str  # of the section in the page
    refused: list[dict[str, Any]]  # games that could not be played, by learner and reason
    bad: list[dict[str, Any]]  # games with a value that was not finite, by learner and horizon
    looks: Mapping[str, Style] = dataclasses.field(default_factory=dict)  # of the learners that played
    horizon: int = 0  # the largest
    constrained: bool = True
    horizon_plots: Mapping[str, Any] | None = None  # by their ids in the page; None if there is one horizon
    round_plots: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    final: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # a row for each learner
    best: str | None = None  # the learner with the lowest score, if two or more have one
    differences: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # from the best, by learner
    certificate: Mapping[str, float] | None = None
    seeds_without_comparator: int = 0

    @property
    def plots(self) -> dict[str, Any]:
        return {**(self.horizon_plots or {}), **self.round_plots}


def section(name: str, address: str, data: ReportData, marked: Collection[str]) -> Section:
    """Of the problem whose data these are; `marked` are learners whose parameters are not the defaults."""
    refused, bad = _refused(data), _bad(data)
    if not len(data.summary):
        return Section(name, address, refused, bad)
    figures = ("regret", "violation", "multiplier")[: 3 if data.constrained else 1]
    over_rounds = {x: plots.over_rounds(data.curves, x, data.looks) for x in figures}
    against_horizon = None
    if data.summary["horizon"].n_unique() > 1:
        against_horizon = {x: plots.against_horizon(data.summary, x, data.looks, data.rates[x]) for x in figures[:2]}
    best = _best(data)
    return Section(
        name,
        address,
        refused,
        bad,
        looks={learner: look for learner, look in data.looks.items() if learner in set(data.summary["learner"])},
        horizon=data.horizon,
        constrained=data.constrained,
        horizon_plots=None if against_horizon is None else _by_id(f"{address}-horizon", against_horizon),
        round_plots=_by_id(f"{address}-round", over_rounds),
        final=_final(data, marked),
        best=best,
        differences={} if best is None else _differences(best, data),
        certificate=_certificate(data),
        seeds_without_comparator=data.played.filter(pl.col("comparator").is_null())["seed"].n_unique(),
    )


def _by_id(prefix, by_figure):
    """Without plots that would be empty: where there is no comparator, there is no regret."""
    return {
        f"{prefix}-{figure}": plot
        for figure, plot in by_figure.items()
        if any(y is not None for line in plot["lines"] for y in line["mean"])
    }


def _final(data: ReportData, marked):
    """Every learner at the largest horizon: its row of the summary, slopes and time."""
    seconds = dict(data.seconds.filter(pl.col("horizon") == data.horizon).select("learner", "seconds").iter_rows())
    slopes: dict[str, dict] = {}
    for row in data.slopes.iter_rows(named=True):
        theorem = data.rates[row["figure"]].get(row["learner"])
        slopes.setdefault(row["learner"], {})[row["figure"]] = row | ({} if theorem is None else {"theorem": theorem})
    return [
        row
        | {
            "slopes": slopes[row["learner"]],
            "microseconds": 1e6 * seconds[row["learner"]],
            "marked": row["learner"] in marked,
        }
        for row in data.summary.filter(pl.col("horizon") == data.horizon).iter_rows(named=True)
    ]


def _scores(data: ReportData) -> pl.DataFrame:
    return data.summary.filter((pl.col("horizon") == data.horizon) & pl.col("score_mean").is_not_nan())


def _best(data: ReportData) -> str | None:
    scores = _scores(data)
    return None if len(scores) < 2 else scores.sort("score_mean", maintain_order=True)["learner"][0]


def _differences(best, data: ReportData):
    """By learner and figure, (mean, half of its interval) of learner - best; and whether the score's is clear."""
    by_learner: dict[str, dict] = {learner: {} for learner in _scores(data)["learner"] if learner != best}
    for row in data.differences.iter_rows(named=True):  # each pair stands there once, in one of the two directions
        learner, sign = (row["learner"], 1) if row["other"] == best else (row["other"], -1)
        if best in (row["learner"], row["other"]) and learner in by_learner:
            by_learner[learner][row["figure"]] = sign * row["mean"], row["half"]
    for row in by_learner.values():
        mean, half = row["score"]
        told_apart = half > 0 or mean == 0  # one seed, or seeds with the same rounds, cannot tell
        row["verdict"] = ("yes" if abs(mean) > half else "no") if told_apart else "–"
    return by_learner


def _certificate(data: ReportData):
    """What proves the comparators, if there are any at the largest horizon."""
    games = data.played.unique(["horizon", "seed"], keep="first", maintain_order=True)
    games = games.filter(pl.col("comparator").is_not_null())
    last = games.filter(pl.col("horizon") == data.horizon)
    if not len(last):
        return None
    values = last["comparator"].to_numpy()
    half = float(statistics.half_width(values.std(ddof=1), len(values))) if len(values) > 1 else math.nan
    gap, gap_ever = (frame["gap"].to_numpy().max() for frame in (last, games))
    return {"mean": values.mean(), "half": half, "gap": gap, "gap_ever": gap_ever}


def _refused(data: ReportData):
    games = data.table.filter(pl.col("reason").is_not_null())
    return [
        {"learner": learner, "horizons": group["horizon"].unique().sort(), "games": len(group), "reason": reason}
        for (learner, reason), group in games.group_by("learner", "reason", maintain_order=True)
    ]


def _bad(data: ReportData):
    games = data.table.filter(pl.col("bad_round") >= 0)
    return [
        {"learner": learner, "horizon": horizon, "first": group["bad_round"].min(), "seeds": group["seed"].to_list()}
        for (learner, horizon), group in games.group_by("learner", "horizon", maintain_order=True)
    ]
