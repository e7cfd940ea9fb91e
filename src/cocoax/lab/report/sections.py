"""What the page shows for one problem, as plain data; `page.html.j2` and `tables.html.j2` make the HTML."""

import dataclasses
import itertools
import math
from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from ..results import statistics
from . import plots
from .data import ReportData
from .figures import Style
from .headline import Ranking

VISIBLE = 1e-3  # part of a number that changes its digits
SHOWN = 8  # lines in a plot before a reader asks for more


@dataclasses.dataclass(frozen=True)
class Section:
    """The section of one problem. If no game could be played, only `about`, `refused` and `bad` are filled."""

    name: str
    address: str  # of the section in the page
    about: str  # the problem in one sentence
    refused: list[dict[str, Any]]  # games that could not be played, by learner and reason
    bad: list[dict[str, Any]]  # games with a value that was not finite, by learner and horizon
    legend: Mapping[str, Mapping[str, Style]] = dataclasses.field(default_factory=dict)  # by group and learner
    shown: Collection[str] = ()  # learners whose lines are shown at first
    horizon: int = 0  # the largest
    constrained: bool = True
    certified: bool = False  # whether there are proven bounds on the regret
    horizon_plots: Mapping[str, Any] | None = None  # by their ids in the page; None if there is one horizon
    round_plots: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    final: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # a row for each learner, best first
    best: list[str] = dataclasses.field(default_factory=list)  # who has the lowest score, if two or more have one
    differences: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # from the best, by learner
    certificate: Mapping[str, float] | None = None  # None where it would say nothing
    seeds_without_comparator: int = 0

    @property
    def plots(self) -> dict[str, Any]:
        return {**(self.horizon_plots or {}), **self.round_plots}

    @property
    def ranking(self) -> Ranking:
        """Who won, for the headline."""
        scores = {row["learner"]: row["score_mean"] for row in self.final if row["whole"]}
        return Ranking(self.name, self.best, self.second.get("verdict") == "yes", scores)

    @property
    def second(self) -> Mapping[str, Any]:
        """The next learner behind the best, with its difference; empty if there is none."""
        behind = [row for row in self.final if row["whole"] and row["learner"] not in self.best]
        return behind[0] | self.differences[behind[0]["learner"]] if self.best and behind else {}


def section(
    name: str,
    address: str,
    about: str,
    data: ReportData,
    marked: Collection[str],
    groups: Mapping[str, Collection[str]],
) -> Section:
    """The section of the problem whose games are in `data`.

    `marked` are learners with parameters that are not the defaults; `groups` has learners' names by group.
    """
    refused, bad = _refused(data), _bad(data)
    if not len(data.summary):
        return Section(name, address, about, refused, bad)
    figures = ("regret", "violation", "score", "multiplier") if data.constrained else ("regret",)
    over_rounds = {x: plots.over_rounds(data.curves, x, data.looks) for x in figures}
    against_horizon = None
    if data.summary["horizon"].n_unique() > 1:
        rates = {"score": {}, **data.rates}
        against_horizon = {x: plots.against_horizon(data.summary, x, data.looks, rates[x]) for x in figures[:3]}
    for plot in [*over_rounds.values(), *(against_horizon or {}).values()]:
        plot["best"] = data.best
    legend = _legend(data, groups)
    return Section(
        name,
        address,
        about,
        refused,
        bad,
        legend=legend,
        shown=_shown_at_first(legend),
        horizon=data.horizon,
        constrained=data.constrained,
        certified=bool(data.standings["regret_bound_mean"].is_not_nan().any()),
        horizon_plots=None if against_horizon is None else _by_id(f"{address}-horizon", against_horizon),
        round_plots=_by_id(f"{address}-round", over_rounds),
        final=_final(data, marked),
        best=data.best,
        differences=_differences(data.best[0], data) if data.best else {},
        certificate=_certificate(data),
        seeds_without_comparator=data.played.filter(pl.col("comparator").is_null())["seed"].n_unique(),
    )


def _legend(data: ReportData, groups) -> dict[str, dict[str, Style]]:
    """The styles of the learners that played, by group and, within it, by score; learners in no group come last."""
    order = data.standings["learner"].to_list()
    order += [name for name in data.looks if name in set(data.summary["learner"]) and name not in order]
    named = {name for members in groups.values() for name in members}
    every = {**groups, "others" if groups else "": [name for name in order if name not in named]}
    legend = {group: {name: data.looks[name] for name in order if name in members} for group, members in every.items()}
    return {group: members for group, members in legend.items() if members}


def _shown_at_first(legend: Mapping[str, Mapping[str, Style]]) -> list[str]:
    """Learners whose lines are shown at first: the best of each group, then the second of each, and so on."""
    by_place = itertools.chain(*itertools.zip_longest(*legend.values()))
    return [name for name in by_place if name is not None][:SHOWN]


def _by_id(prefix, by_figure):
    """The plots by their ids in the page, without empty ones (regret is empty without a comparator)."""
    return {
        f"{prefix}-{figure}": plot
        for figure, plot in by_figure.items()
        if any(y is not None for line in plot["lines"] for y in line["mean"])
    }


def _final(data: ReportData, marked):
    """A row per learner at the largest horizon, lowest score first: its summary, slopes and time per round."""
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
        for row in data.standings.iter_rows(named=True)
    ]


def _differences(best, data: ReportData):
    """For each learner: its mean difference from `best` in each figure, with half of the interval.

    `verdict` says whether the difference of the scores is clear.
    """
    scored = data.standings.filter(pl.col("score_mean").is_not_nan())["learner"]
    by_learner: dict[str, dict] = {learner: {} for learner in scored if learner != best}
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
    """The certificate of the comparators at the largest horizon: mean value, its interval, and the largest gaps.

    None if no gap would change a digit of a regret that is shown.
    """
    games = data.played.unique(["horizon", "seed"], keep="first", maintain_order=True)
    games = games.filter(pl.col("comparator").is_not_null())
    last = games.filter(pl.col("horizon") == data.horizon)
    regrets = data.standings["regret_mean"].drop_nans().abs()
    if not len(last) or not games["gap"].max() > VISIBLE * regrets.min():  # pyright: ignore
        return None
    values = last["comparator"].to_numpy()
    half = float(statistics.half_width(values.std(ddof=1), len(values))) if len(values) > 1 else math.nan
    gap, gap_ever = (frame["gap"].to_numpy().max() for frame in (last, games))
    return {"mean": values.mean(), "half": half, "gap": gap, "gap_ever": gap_ever}


def _refused(data: ReportData):
    """The games that could not be played, by learner and reason."""
    games = data.table.filter(pl.col("reason").is_not_null())
    return [
        {"learner": learner, "horizons": group["horizon"].unique().sort(), "games": len(group), "reason": reason}
        for (learner, reason), group in games.group_by("learner", "reason", maintain_order=True)
    ]


def _bad(data: ReportData):
    """The games with a round that was not finite, by learner and horizon."""
    games = data.table.filter(pl.col("bad_round") >= 0)
    return [
        {"learner": learner, "horizon": horizon, "first": group["bad_round"].min(), "seeds": group["seed"].to_list()}
        for (learner, horizon), group in games.group_by("learner", "horizon", maintain_order=True)
    ]
