"""The arena for requests: AutoPrice, with nothing tuned, against pacers whose numbers were tuned on other seeds."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import polars as pl

from ... import __version__, learners, problems
from ..names import closest
from ..study import Study
from . import tuning
from .rivals import TUNED, tuned_rivals

HORIZON = 2000
FIRST_SEED = 5000  # of the reported seeds; docs/requests.md says what was chosen after a look at them
_of = functools.partial

REQUESTS: dict[str, Callable] = {
    "prompts, tight": _of(problems.llm_routing, budget=3e-4),
    "prompts, loose": _of(problems.llm_routing, budget=2e-3),
    "offers, budget 50%": _of(problems.offers, share=0.5),
    "offers, budget 20%": _of(problems.offers, share=0.2),
    "offers, budget 10%": _of(problems.offers, share=0.1),
    "two resources": problems.resources,
    "prices double": _of(problems.offers, doubles_at=HORIZON // 2),
    "daily cycle": _of(problems.offers, day=500),
    "heavy tails": _of(problems.offers, tails="heavy"),
    "fulfilment": problems.fulfilment,
}
"""By name, functions of a key."""

UNTUNED = {
    "AutoPrice": learners.AutoPrice(),
    "AutoPrice, no horizon": learners.AutoPrice(horizon=False),
    "AutoPrice, memory 150": learners.AutoPrice(memory=150),
}
"""The challenger with the number of rounds told, without, and with a memory as for prices that shift."""


FAMILIES = {
    "dual mirror descent": learners.DualMirrorDescent,
    "dual mirror descent, entropy": _of(learners.DualMirrorDescent, geometry="entropy"),
    "PID pacing": learners.PIDPacing,
}
"""Rivals; `benchmarks.tune` says which numbers to try for each."""


def tuned() -> dict[str, dict[str, dict]]:
    """By problem and family, what `python -m benchmarks.tune requests` found."""
    return tuning.tuned("tuned_requests.json")


def requests_study(
    out: Path | str | None = None,
    *,
    seeds: Sequence[int] = range(FIRST_SEED, FIRST_SEED + 10),
    horizons: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> Study:
    """The study behind `cocoax race requests`; seeds on which rivals were tuned are refused."""
    chosen = list(REQUESTS) if names is None else [closest(name, REQUESTS, "problem with requests") for name in names]
    return Study(
        {name: REQUESTS[name] for name in chosen},
        {**UNTUNED, **tuned_rivals(tuned(), chosen, FAMILIES, most=None)},
        horizons or [HORIZON],
        tuning.unseen(seeds),
        out,
        tol=tuning.TOLERANCE,
    )


def requests_markdown(study: Study, command: str) -> str:
    """A Markdown table with a row per problem and horizon; `command` made it.

    Scores, with regret in brackets, are in per cent of the best policy's value.
    """
    table = study.table().filter(pl.col("reason").is_null() & (pl.col("bad_round") < 0))
    size = pl.col("comparator").abs() / 100
    parts = [(pl.col(name) / size).alias(name) for name in ("score", "regret")]
    rows = table.with_columns(*parts, (pl.col("gap") / pl.col("comparator").abs()).alias("gap"))
    means = rows.group_by("problem", "horizon", "learner", maintain_order=True).agg(
        pl.col("score", "regret").mean(), pl.col("gap").max()
    )
    lines = [
        f"| problem | T | {' | '.join(UNTUNED)} | best rival, tuned on other seeds | its score |",
        "|---" * (4 + len(UNTUNED)) + "|",
    ]
    ahead = 0
    for (problem, horizon), games in means.group_by("problem", "horizon", maintain_order=True):
        by_learner = {row["learner"]: row for row in games.iter_rows(named=True)}
        rivals = [row for name, row in by_learner.items() if name not in UNTUNED]
        best = min(rivals, key=lambda row: row["score"], default=None)
        own = [_figures(by_learner.get(name)) for name in UNTUNED]
        ahead += best is not None and by_learner["AutoPrice"]["score"] <= best["score"]
        rival = "none" if best is None else best["learner"].removesuffix(TUNED)
        lines.append(f"| {' | '.join([str(problem), str(horizon), *own, rival, _figures(best)])} |")
    precision = "float64" if jax.config.read("jax_enable_x64") else "float32"
    return "\n".join(
        [
            f"`{command}`, cocoax {__version__}, jax {jax.__version__}, {precision}, seeds {min(study.seeds)} to "
            f"{max(study.seeds)}. A score is what was lost against the best policy plus what was overspent, at twice "
            "its price or more; in brackets is what was lost alone. All are means over the seeds, in per cent of the "
            f"best policy's value, which is certified to {means['gap'].max():.0e} of it. Rivals have their numbers "
            f"tuned for each problem, at T = {HORIZON} on the seeds {tuning.SEEDS[0]} to {tuning.SEEDS[-1]}.",
            "",
            *lines,
            "",
            f"AutoPrice, untuned, is at or ahead of the best tuned rival on {ahead} of {len(lines) - 2}.",
            "",
        ]
    )


def _figures(row) -> str:
    return "none" if row is None else f"{row['score']:.2f} ({row['regret']:.2f})"
