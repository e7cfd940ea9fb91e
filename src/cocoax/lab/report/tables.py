"""The tables and lists of a report about one problem, as HTML."""

import math
from fractions import Fraction
from html import escape

import polars as pl

from ..results import statistics
from .data import Changes, Facts
from .page import cell, number, plus_minus, table

FINAL = [
    ("learner", True),
    ("games", False),
    ("regret", False),
    ("violation", False),
    ("score", False),
    ("slope of regret", False),
    ("slope of violation", False),
    ("largest multiplier", False),
    ("LMO calls a round", False),
    ("gradient calls a round", False),
    ("µs a round", False),
]


def final(problem: str, facts: Facts, changes: Changes) -> str:
    """Every learner at the largest horizon."""
    rows = []
    seconds = dict(facts.seconds.filter(pl.col("horizon") == facts.horizon).select("learner", "seconds").iter_rows())
    slopes = {(row["learner"], row["figure"]): row for row in facts.slopes.iter_rows(named=True)}
    for row in facts.summary.filter(pl.col("horizon") == facts.horizon).iter_rows(named=True):
        name = row["learner"]
        other = changes[name, problem if (name, problem) in changes else None]
        mark = ' <a href="#learners" title="not the default parameters">†</a>' if other else ""
        cells = [cell("learner", escape(name) + mark), cell("games", str(row["games"]), row["games"])]
        for figure in statistics.COMPARED:
            mean, half = row[f"{figure}_mean"], row[f"{figure}_half"]
            cells.append(cell(figure, plus_minus(mean, half), mean, half=half))
        cells += [_slope(facts, name, x, slopes[name, x]) for x in ("regret", "violation")]
        cells += [cell(x, number(row[f"{x}_mean"]), row[f"{x}_mean"]) for x in statistics.SUMMARISED[3:]]
        micro = seconds[name] * 1e6
        rows.append(f'<tr data-learner="{escape(name)}">{"".join(cells)}{cell("time", number(micro, 3), micro)}</tr>')
    note = (
        '<p class="note">Click on a header to sort. The largest multiplier of each game, averaged over the seeds. Time '
        "is measured in batches, a game and round, without compilation. Slopes of violation count positive parts only. "
        "A slope is missing where a mean is not positive or fewer than three horizons were played; ? stands where "
        "resampled means are not all positive. † has parameters that are not the defaults.</p>"
    )
    head = f"<h3>Final figures, T = {facts.horizon}</h3>"
    return head + table(FINAL, rows, sortable=True, table="final", problem=problem) + note


def _slope(facts, learner, figure, found):
    slope, low, high = found["slope"], found["low"], found["high"]
    notes = []
    if math.isfinite(slope):
        bounds = [number(each, 3) if math.isfinite(each) else "?" for each in (low, high)]
        notes.append(f"[{bounds[0]}, {bounds[1]}]")
    theorem = facts.rates[figure].get(learner)
    if theorem is not None:
        notes.append(f"theorem: {_as_fraction(theorem)}")
    data = {} if theorem is None else {"theorem": theorem}
    return cell(f"slope_{figure}", number(slope, 3), slope, note="<br>".join(notes), low=low, high=high, **data)


def _as_fraction(exponent: float) -> str:
    near = Fraction(exponent).limit_denominator(24)
    return str(near) if abs(near - exponent) < 1e-6 else number(exponent, 3)


def paired(problem: str, facts: Facts) -> str:
    """Every learner against the one with the lowest score."""
    scores = facts.summary.filter((pl.col("horizon") == facts.horizon) & pl.col("score_mean").is_not_nan())
    if len(scores) < 2:
        return ""
    best = scores.sort("score_mean", maintain_order=True)["learner"][0]
    rows, found = [], _differences_from(best, facts.differences)
    for other in scores["learner"]:
        if other == best:
            continue
        cells = [cell("learner", escape(other))]
        for figure in ("score", "regret", "violation"):
            mean, half = found[figure, other]
            cells.append(cell(figure, plus_minus(mean, half), mean, half=half))
        mean, half = found["score", other]
        told_apart = half > 0 or mean == 0  # not by one seed, nor by seeds that all have the same rounds
        verdict = ("yes" if abs(mean) > half else "no") if told_apart else "–"
        rows.append(f'<tr data-learner="{escape(other)}">{"".join(cells)}{cell("clear", verdict)}</tr>')
    text = (
        f"<h3>Differences from {escape(best)}, which has the lowest score</h3><p>Mean of what each learner has more "
        f"than {escape(best)} on the same seeds. A difference in score is clear where its interval does not hold 0; no "
        "correction is made for the number of comparisons.</p>"
    )
    headers = [(x, False) for x in ("score", "regret", "violation")]
    headers = [("learner", True), *headers, ("clear", True)]
    return text + table(headers, rows, sortable=True, table="differences", problem=problem, best=best)


def _differences_from(best, differences):
    """(mean, half) of learner - best, by figure and learner; each pair is stored in one direction."""
    found = {}
    for row in differences.iter_rows(named=True):
        if row["other"] == best:
            found[row["figure"], row["learner"]] = row["mean"], row["half"]
        elif row["learner"] == best:
            found[row["figure"], row["other"]] = -row["mean"], row["half"]
    return found


def certificate(problem: str, facts: Facts) -> str:
    """What proves the comparators."""
    every = facts.played.unique(["horizon", "seed"], keep="first", maintain_order=True)
    every = every.filter(pl.col("comparator").is_not_null())
    missing = facts.played.filter(pl.col("comparator").is_null())["seed"].n_unique()
    warning = ""
    if missing:
        warning = (
            f'<p class="warning">For {missing} of the seeds no decision meets the constraints, so there is no '
            "comparator and no regret.</p>"
        )
    last = every.filter(pl.col("horizon") == facts.horizon)
    if not len(last):
        return f"<h3>The comparator's certificate</h3>{warning}"
    values, gap, gap_ever = last["comparator"].to_numpy(), last["gap"].to_numpy().max(), every["gap"].to_numpy().max()
    half = float(statistics.half_width(values.std(ddof=1), len(values))) if len(values) > 1 else math.nan
    rows = [
        f"<tr>{cell('what', 'total loss of the comparator, mean over the seeds')}"
        f"{cell('value', plus_minus(values.mean(), half), values.mean(), half=half)}</tr>",
        f"<tr>{cell('what', 'largest gap over the seeds')}{cell('gap', number(gap, 3), gap)}</tr>",
        f"<tr>{cell('what', 'largest gap over all horizons and seeds')}"
        f"{cell('gap_ever', number(gap_ever, 3), gap_ever)}</tr>",
    ]
    text = (
        "<p>No decision that meets the constraints (in expectation, where the problem states it; else on average over "
        "these rounds) has a total loss below the comparator's minus its gap, which a dual lower bound proves. So "
        "regret against the exact optimum is at most the gap above what is shown. A gap of 0 means that the optimum is "
        "known.</p>"
    )
    headers = [(f"T = {facts.horizon}", True), ("value", False)]
    found = table(headers, rows, table="certificate", problem=problem)
    return f"<h3>The comparator's certificate</h3>{text}{warning}{found}"


def unplayed(facts: Facts) -> str:
    """Learners that could not be played, and why."""
    rows = facts.table.filter(pl.col("reason").is_not_null())
    if not len(rows):
        return ""
    items = []
    for (learner, reason), games in rows.group_by("learner", "reason", maintain_order=True):
        horizons = ", ".join(map(str, games["horizon"].unique().sort()))
        items.append(
            f"<li><b>{escape(str(learner))}</b> (T = {horizons}; {len(games)} games): {escape(str(reason))}</li>"
        )
    return f"<h3>Could not be played</h3><ul class=unplayed>{''.join(items)}</ul>"


def bad(facts: Facts) -> str:
    """Games in which something was not finite."""
    rows = facts.table.filter(pl.col("bad_round") >= 0)
    if not len(rows):
        return ""
    items = []
    for (learner, horizon), games in rows.group_by("learner", "horizon", maintain_order=True):
        seeds = ", ".join(map(str, games["seed"]))
        items.append(
            f"<li><b>{escape(str(learner))}</b>, T = {horizon}: first in round {games['bad_round'].min()}, counted "
            f"from 0; seeds {seeds}</li>"
        )
    return (
        '<div class="warning"><h3>Games that went bad</h3><p>A value in them was not finite. They are left out of all '
        f"figures above.</p><ul class=bad>{''.join(items)}</ul></div>"
    )
