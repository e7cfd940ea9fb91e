"""The report's tables for papers, in LaTeX."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ... import __version__
from ...errors import LabError
from .data import ReportData, best_of
from .page import plus_minus

ROWS = 45  # of learners in a table, so that it fits on a page
_HEADER = "learner & score & regret & violation & slope of regret & LMOs a round \\\\"
_FIGURES = ("score", "regret", "violation")


class _Block(NamedTuple):
    """The lines of a table for one problem at one horizon."""

    lines: list[str]
    rows: int
    games: int


def latex(problems: Mapping[str, ReportData], horizon: int | str | None = None) -> str:
    """Tables with captions, for the package `booktabs`: a row per learner, the lowest score first and in bold.

    `horizon` is one that was played, "all", or None for each problem's largest.
    """
    blocks = [
        _block(problem, data, T)
        for problem, data in problems.items()
        if len(data.summary)
        for T in _horizons(data, horizon)
    ]
    if not blocks and horizon not in (None, "all"):
        played = sorted({T for data in problems.values() for T in data.summary["horizon"].to_list()})
        raise LabError(f"horizon must be one that was played ({', '.join(map(str, played))}) or 'all', got {horizon!r}")
    tables = list(_pages(blocks))
    texts = [_table(page, number, len(tables)) for number, page in enumerate(tables, 1)]
    return "\n\n".join(["% \\usepackage{booktabs}", *texts]) + "\n"


def _horizons(data: ReportData, horizon) -> list[int]:
    played = data.summary["horizon"].unique().sort().to_list()
    return played if horizon == "all" else [T for T in played if (horizon or played[-1]) == T]


def _block(problem, data: ReportData, horizon) -> _Block:
    """The rows of one problem at one horizon, under a heading."""
    slopes = data.slopes.filter(figure="regret").drop("problem", "figure")
    standings = data.standings_at(horizon)
    best = best_of(standings)
    rows = standings.join(slopes, on="learner", how="left", maintain_order="left")
    lines = ["\\midrule", f"\\multicolumn{{6}}{{l}}{{{_escape(problem)}, $T={horizon}$}} \\\\"]
    for row in rows.iter_rows(named=True):
        score, *means = (_number(row[f"{name}_mean"], row[f"{name}_half"]) for name in _FIGURES)
        plain = [_number(row[name], form=".2f") for name in ("slope", "lmo_calls_mean")]
        learner = _escape(row["learner"])
        if row["learner"] in best:
            learner, score = f"\\textbf{{{learner}}}", f"$\\mathbf{{{score.strip('$')}}}$"
        lines.append(" & ".join([learner, score, *means, *plain]) + " \\\\")
    return _Block(lines, len(rows), rows["games"].max())  # pyright: ignore[reportArgumentType]


def _pages(blocks: list[_Block]) -> Iterator[list[_Block]]:
    """The blocks of each page: as many as fit, at least one."""
    page: list[_Block] = []
    for block in blocks:
        if page and sum(one.rows for one in page) + block.rows > ROWS:
            yield page
            page = []
        page.append(block)
    if page:
        yield page


def _table(page: list[_Block], number: int, count: int) -> str:
    """One page's table in LaTeX, the `number`-th of `count`."""
    games = sorted({block.games for block in page})
    seeds = f"{games[0]} seed{'s' * (games[0] > 1)}" if len(games) == 1 else f"{games[0]} to {games[-1]} seeds"
    spread = "" if games[-1] == 1 else ", $\\pm$ their 95\\% confidence intervals (Student's $t$)"
    part = f" ({number} of {count})" if count > 1 else ""
    caption = (
        f"Score, regret and violation after $T$ rounds{part}: means over {seeds}{spread}. Lower is better; the lowest "
        "score is in bold. The score is the regret plus what was overspent, at twice the comparator's multiplier or "
        "more. The slope is the $p$ of $c\\,T^p$ fitted to the mean regrets of all horizons. "
        f"Made with cocoax {__version__}."
    )
    return "\n".join(
        [
            "\\begin{table*}",
            "\\centering\\small",
            f"\\caption{{{caption}}}",
            f"\\label{{tab:cocoax{f'-{number}' if count > 1 else ''}}}",
            "\\begin{tabular}{lrrrrr}",
            "\\toprule",
            _HEADER,
            *itertools.chain(*(block.lines for block in page)),
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table*}",
        ]
    )


def _number(mean, half=math.nan, form=None):
    """A number in LaTeX's mathematics, with its interval or in the format `form`; -- if it is missing or NaN."""
    if mean is None or mean != mean:
        return "--"
    text = format(mean, form) if form else plus_minus(mean, half, r" \pm ")
    text = re.sub(r"(\d)e(−?)(\d+)", r"\1 \\cdot 10^{\2\3}", text)
    return f"${text.replace('−', '-')}$"


def _escape(text: str) -> str:
    special = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)
