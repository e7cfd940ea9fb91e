"""The standings of the arena: one row per problem, and on how many problems each demand is met."""

import math
from typing import TYPE_CHECKING

import jax
import numpy as np
import polars as pl

from ... import __version__
from ...errors import LabError
from ..results import statistics
from . import tuning
from .problems import VERSION_1
from .rivals import TUNED

if TYPE_CHECKING:
    from ..study import Study

START = "play the start"
WORSE = 1.05  # times the start's score: no learner may exceed it
FACTOR = 2.0  # times the best rival's score
SHARE = 0.9  # of the problems on which the challenger must stay within the factor


def standings(study: "Study", challenger: str | None = None) -> pl.DataFrame:
    """One row per problem, from mean scores over the seeds. By default the challenger is the study's first learner.

    A game with a round that is not finite has an infinite score. "At the horizon" means the one that rivals were tuned
    for, or the largest one played if that was not played.

    - `score`, `start`, `rival`, `rival_score`: at the horizon; `rival` is the one with the lowest score on these seeds.
    - `regret`, `violation`, `rival_regret`, `rival_violation`: what those scores consist of.
    - `against_start`: the challenger's score over the start's, at the horizon where that is largest.
    - `slope`, `low`, `high`: the exponent of T in the challenger's score, with its interval.
    - `safe`: at every horizon, the challenger's score is at most 5% above the start's.
    - `falls`: its score per round falls: `high` is below 1. Scores that may be negative have no slope or no interval.
      Then the score per round must be lower at the largest horizon than at the smallest, or below 0 (better than the
      comparator), both by more than the 95% interval of the mean over the seeds. None with one horizon or one seed.
    - `ratio`: the challenger's score over the rival's, if both are positive; else NaN.
    - `within`: its score is at most twice the best rival's, or half of it if that is negative.
    """
    table = _with_infinite_scores(study.table())
    challenger = challenger or next(iter(study.learners))
    slopes = statistics.slopes(study.table(), figures=("score",)).filter(pl.col("learner") == challenger)
    figures = pl.col("score", "regret", "violation").mean()
    means = table.group_by("problem", "learner", "horizon", maintain_order=True).agg(figures)
    rows = []
    for problem in study.sources:
        here = means.filter(pl.col("problem") == problem)
        mine, start = (_by_horizon(here, name) for name in (challenger, START))
        if not mine:
            raise LabError(f"{challenger} could not play {problem!r}; the report says why")
        at = tuning.HORIZON if tuning.HORIZON in mine else max(mine)
        at_horizon = {row["learner"]: row for row in here.filter(pl.col("horizon") == at).iter_rows(named=True)}
        others = [row for name, row in at_horizon.items() if name.endswith(TUNED) and math.isfinite(row["score"])]
        none = {"learner": None, "score": math.nan, "regret": math.nan, "violation": math.nan}
        own, rival = at_horizon[challenger], min(others, key=lambda row: row["score"], default=none)
        best = rival["score"]
        slope = (math.nan,) * 3
        if all(map(math.isfinite, mine.values())):
            slope = slopes.filter(pl.col("problem") == problem).select("slope", "low", "high").row(0)
        games = table.filter((pl.col("problem") == problem) & (pl.col("learner") == challenger))
        against_start = max(mine[T] / start[T] if start[T] > 0 else math.inf for T in mine)
        rows.append(
            {
                "problem": problem,
                "horizon": at,
                "score": mine[at],
                "regret": own["regret"],
                "violation": own["violation"],
                "start": start[at],
                "rival": rival["learner"],
                "rival_score": best,
                "rival_regret": rival["regret"],
                "rival_violation": rival["violation"],
                "ratio": mine[at] / best if mine[at] > 0 and best > 0 else math.nan,
                "against_start": against_start,
                **dict(zip(("slope", "low", "high"), slope)),
                "safe": against_start <= WORSE,
                "falls": slope[2] < 1 if math.isfinite(slope[2]) else _falls(games),
                "within": None if rival["learner"] is None else mine[at] <= max(FACTOR * best, best / FACTOR),
            }
        )
    return pl.DataFrame(rows, schema_overrides={"rival": pl.String, "falls": pl.Boolean, "within": pl.Boolean})


def markdown(study: "Study", command: str, challenger: str | None = None) -> str:
    """The standings as a Markdown table, followed by how many problems meet each demand; `command` made them."""
    challenger = challenger or next(iter(study.learners))
    rows = standings(study, challenger)
    header = f"| problem | T | {challenger} | start | best rival, tuned on other seeds | its score | ratio | slope |"
    lines = [header, "|---|---|---|---|---|---|---|---|"]
    for row in rows.iter_rows(named=True):
        rival = "none" if row["rival"] is None else row["rival"].removesuffix(TUNED)
        slope = "none" if math.isnan(row["slope"]) else f"{row['slope']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        figures = [_score_with_parts(row, ""), f"{row['start']:.3g}"]
        other = [_score_with_parts(row, "rival_"), "none" if math.isnan(row["ratio"]) else f"{row['ratio']:.2g}"]
        lines.append(f"| {' | '.join([row['problem'], str(row['horizon']), *figures, rival, *other, slope])} |")
    return "\n".join(
        [
            f"`{command}`, cocoax {__version__}, jax {jax.__version__}, "
            f"{'float64' if jax.config.read('jax_enable_x64') else 'float32'}, seeds {min(study.seeds)} to "
            f"{max(study.seeds)}. "
            "Scores are regret + ⟨price, [violation]₊⟩, means over the seeds, with regret and violation (the worst "
            "constraint's) beside them: lower is better. The price is twice the comparator's multiplier, or a tenth of "
            "the natural unit |∇f|/|∇g| if that is more. Rivals have all their "
            f"steps tuned for each problem, at T = {tuning.HORIZON} on the seeds {tuning.SEEDS[0]} to "
            f"{tuning.SEEDS[-1]}. A slope is the p of c T^p fitted to the mean scores of three horizons or more, "
            "with its 95% interval.",
            "",
            *lines,
            "",
            *_verdicts(rows, challenger),
            "",
        ]
    )


def _verdicts(rows, challenger):
    """Lines that say on how many problems each demand is met."""
    judged = rows.filter(pl.col("within").is_not_null())
    first = judged.filter(pl.col("problem").is_in(VERSION_1))
    yield f"* {challenger} is worse than playing the start by at most 5%, at every horizon: {_passed(rows, 'safe')}."
    yield f"* Its score per round falls as T grows, with the interval: {_passed(rows, 'falls')}.{_without_slope(rows)}"
    yield (
        f"* Its score is at most {FACTOR:g} times the best rival's (half of it, where that is negative: better than "
        f"the comparator): {_passed(judged, 'within')}; {SHARE:.0%} are asked. Of the problems that the arena's first "
        f"version had: {first['within'].sum()} of {len(first)}."
    )


def _without_slope(rows) -> str:
    """A sentence on how `falls` was judged on problems without a slope; empty if there are none."""
    if not len(rows.filter(pl.col("slope").is_nan() & pl.col("falls").is_not_null())):
        return ""
    return (
        " Where there is no slope: from the smallest T to the largest, or below 0 there, with the interval over the "
        "seeds."
    )


def _passed(rows, demand):
    """How many rows meet the demand (a boolean column), as text, with the problems that fail."""
    judged = rows.filter(pl.col(demand).is_not_null())
    if not len(judged):
        return "not known with one horizon or one seed"
    failed = judged.filter(~pl.col(demand))["problem"].to_list()
    return f"{len(judged) - len(failed)} of {len(judged)}" + (f" (not: {'; '.join(failed)})" if failed else "")


def _score_with_parts(row, whose):
    """A score, with its regret and violation in brackets; `whose` is a prefix of columns, empty or `rival_`."""
    score, regret, violation = (row[f"{whose}{name}"] for name in ("score", "regret", "violation"))
    return "none" if math.isnan(score) else f"{score:.3g} ({regret:.3g}, {violation:.3g})"


def _with_infinite_scores(table):
    """The games that could be played, with infinite figures where a round was not finite."""
    bad = pl.col("bad_round") >= 0
    rows = table.filter(pl.col("reason").is_null() & (bad | pl.col("score").is_not_nan()))
    figures = [pl.when(bad).then(math.inf).otherwise(pl.col(x)).alias(x) for x in ("score", "regret", "violation")]
    return rows.with_columns(figures)


def _by_horizon(means, learner):
    """{horizon: mean score} of one learner."""
    return dict(means.filter(pl.col("learner") == learner).select("horizon", "score").iter_rows())


def _falls(games) -> bool | None:
    """Whether the score per round is lower at the largest horizon than at the smallest, or below 0, beyond chance.

    None with one horizon, or fewer than two seeds.
    """
    per_round = games.with_columns(pl.col("score") / pl.col("horizon"))
    ends = [per_round.filter(pl.col("horizon") == at) for at in (games["horizon"].min(), games["horizon"].max())]
    pairs = ends[1].join(ends[0], on="seed", suffix="_first")
    if ends[0]["horizon"][0] == ends[1]["horizon"][0] or len(pairs) < 2:
        return None
    figures = (pairs["score"] - pairs["score_first"]).to_numpy(), pairs["score"].to_numpy()
    if not all(np.isfinite(figure).all() for figure in figures):
        return False
    return any(figure.mean() + statistics.half_width(np.std(figure, ddof=1), len(figure)) < 0 for figure in figures)
