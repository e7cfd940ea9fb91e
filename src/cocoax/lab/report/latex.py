"""The report's table for papers, in LaTeX."""

import math
import re
from collections.abc import Mapping

from .data import ReportData
from .page import plus_minus


def latex(problems: Mapping[str, ReportData]) -> str:
    """The final figures of each problem, for the package `booktabs`."""
    lines = [
        "% \\usepackage{booktabs}",
        "\\begin{tabular}{lrrrrr}",
        "\\toprule",
        "learner & regret & violation & score & slope & LMOs a round \\\\",
    ]
    for problem, data in problems.items():
        if not len(data.summary):
            continue
        horizon = data.summary["horizon"].max()
        slopes = data.slopes.filter(figure="regret").drop("problem", "figure")
        rows = data.summary.filter(horizon=horizon).join(slopes, on="learner", how="left", maintain_order="left")
        lines += ["\\midrule", f"\\multicolumn{{6}}{{l}}{{{_escape(problem)}, $T={horizon}$}} \\\\"]
        for row in rows.iter_rows(named=True):
            means = [_number(row[f"{name}_mean"], row[f"{name}_half"]) for name in ("regret", "violation", "score")]
            plain = [_number(row[name], form=".2f") for name in ("slope", "lmo_calls_mean")]
            lines.append(" & ".join([_escape(row["learner"]), *means, *plain]) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _number(mean, half=math.nan, form=None):
    if mean is None or mean != mean:
        return "--"
    text = format(mean, form) if form else plus_minus(mean, half, r" \pm ")
    text = re.sub(r"(\d)e(−?)(\d+)", r"\1 \\cdot 10^{\2\3}", text)
    return f"${text.replace('−', '-')}$"


def _escape(text: str) -> str:
    special = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)
