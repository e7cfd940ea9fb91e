"""A study's report: one HTML page that works offline, tables, and figures for papers."""

import contextlib
import datetime
import gc
import importlib.metadata
import io
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import polars as pl

from ... import __version__
from ...errors import LabError
from ..results import statistics
from ..results.store import write_whole
from .data import Facts, changed, one_by_one
from .figures import Rates, draw_horizons, draw_rounds, saved, styles
from .page import page, plus_minus
from .plots import as_json
from .sections import HOW_TO_READ, learners_section, problem_section, slug

if TYPE_CHECKING:
    from ..study import Study

KINDS = ("rounds", "horizons")  # of figures


def write_report(
    study: "Study",
    *,
    title: str | None = None,
    command: str | None = None,
    slopes: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    figures: bool = True,
) -> Path:
    """Write a page, tables and figures of the games that were played into the study's folder; returns the page's path.

    **Arguments:**

    - `title`: of the page.
    - `command`: what a reader would type to make the same page; by default this process's.
    - `slopes`: by the learners' names, exponents of T from a theorem: that of regret, or a tuple that begins with those
      of regret and violation, such as `theory.rates` returns.
    - `notes`: paragraphs to put below the title.
    - `figures`: whether to draw figures for papers too.
    """
    import plotly.offline

    assert study.out is not None  # Study.report sees to it
    facts = _facts(study, slopes)
    addresses = _addresses(study.sources)
    title = title or "A comparison of learners"
    plots: dict = {}
    changes = {which: changed(learner) for which, learner in one_by_one(study.learners).items()}
    problems = {name: facts.about(name) for name in addresses}
    body = "\n".join(
        [
            _head(study, title, notes, addresses),
            *(problem_section(name, at, problems[name], changes, plots) for name, at in addresses.items()),
            learners_section(study.learners, changes),
            _origin(study, command or shlex.join(sys.argv)),
        ]
    )
    if figures:
        _write_figures(study, problems, KINDS)
    facts.table.write_parquet(parquet := io.BytesIO())
    _write(study.out / "table.parquet", parquet.getvalue())
    _write(study.out / "table.csv", facts.table.write_csv().encode())
    _write(study.out / "table.tex", latex(problems).encode())
    text = page(title, body, as_json(plots), plotly.offline.get_plotlyjs())
    return _write(study.out / "report.html", text.encode())


def write_figures(
    study: "Study", problems: Iterable[str], slopes: Mapping[str, Any] | None = None, kinds: Sequence[str] = KINDS
) -> None:
    """Those that `write_report` would write, of some problems and kinds, so that several processes can share them."""
    facts = _facts(study, slopes)
    _write_figures(study, {name: facts.about(name) for name in problems}, kinds)


def load() -> None:
    """Import what a report needs: a process can do so while others still play."""
    statistics.half_width(1.0, 2)


def draw_once() -> None:
    """A figure that nobody sees: the next one takes half as long."""
    names = [f"{figure}_{part}" for figure in ("regret", "violation") for part in ("mean", "low", "high")]
    ends = {"learner": ["any", "any"], "horizon": [1, 1000], **{name: [1e-3, 1e3] for name in names}}
    list(saved(draw_horizons(pl.DataFrame(ends), styles(["any"]), {"regret": {}, "violation": {}})))


def latex(problems: Mapping[str, Facts]) -> str:
    """The final figures of each problem as a table for `booktabs`."""
    lines = [
        "% \\usepackage{booktabs}",
        "\\begin{tabular}{lrrrrr}",
        "\\toprule",
        "learner & regret & violation & score & slope & LMOs a round \\\\",
    ]
    for problem, facts in problems.items():
        if not len(facts.summary):
            continue
        horizon = facts.summary["horizon"].max()
        slopes = facts.slopes.filter(figure="regret").drop("problem", "figure")
        rows = facts.summary.filter(horizon=horizon).join(slopes, on="learner", how="left", maintain_order="left")
        lines += ["\\midrule", f"\\multicolumn{{6}}{{l}}{{{_tex(problem)}, $T={horizon}$}} \\\\"]
        for row in rows.iter_rows(named=True):
            found = [_pm(row[f"{name}_mean"], row[f"{name}_half"]) for name in ("regret", "violation", "score")]
            plain = [_pm(row[name], float("nan"), ".2f") for name in ("slope", "lmo_calls_mean")]
            lines.append(" & ".join([_tex(row["learner"]), *found, *plain]) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _pm(mean, half, form=None):
    if mean is None or mean != mean:
        return "--"
    text = format(mean, form) if form else plus_minus(mean, half, r" \pm ")
    text = re.sub(r"(\d)e(−?)(\d+)", r"\1 \\cdot 10^{\2\3}", text)
    return f"${text.replace('−', '-')}$"


def _tex(text: str) -> str:
    special = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)


def _facts(study, slopes) -> Facts:
    rates, looks = _rates(slopes or {}, study.learners), styles(study.learners)
    return Facts(study._stored(), looks, rates)


def _rates(slopes, learners) -> Rates:
    """What `write_report` was given, for the learners that are there."""
    here = {name: each for name, each in slopes.items() if name in learners}
    given = {name: each if isinstance(each, tuple | list) else (each,) for name, each in here.items()}
    try:
        return {
            figure: {name: float(each[place]) for name, each in given.items() if place < len(each)}
            for place, figure in enumerate(("regret", "violation"))
        }
    except (TypeError, ValueError):
        raise LabError(f"slopes must hold, by the learners' names, exponents of T, got {here!r:.80}") from None


def _addresses(names) -> dict[str, str]:
    """A name for the files and the anchor of each problem, no two the same."""
    found: dict[str, str] = {}
    for name in names:
        at, n = slug(name), 2
        while at in found.values() or at in ("learners", "origin", "plots"):
            at, n = f"{slug(name)}-{n}", n + 1
        found[name] = at
    return found


def _head(study, title, notes, addresses):
    horizons = sorted({horizon for each in study.horizons.values() for horizon in each})
    counts = [(len(addresses), "problem"), (len(study.learners), "learner"), (len(horizons), "horizon")]
    counts = [f"{n} {word}{'s' if n != 1 else ''}" for n, word in [*counts, (len(study.seeds), "seed")]]
    links = [*addresses.items(), ("Learners", "learners"), ("How this was made", "origin")]
    items = "".join(f'<li><a href="#{at}">{escape(name)}</a></li>' for name, at in links)
    paragraphs = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f"<header><h1>{escape(title)}</h1><p class=muted>{' · '.join(counts)}</p>{paragraphs}{HOW_TO_READ}</header>"
        f"<nav aria-label=contents><ul>{items}</ul></nav>"
    )


def _origin(study, command):
    device = jax.devices()[0]
    horizons = {name: ", ".join(map(str, each)) for name, each in study.horizons.items()}
    same = len(set(horizons.values())) == 1
    facts = {
        "command": f"<code>{escape(command)}</code>",
        "cocoax": __version__,
        "jax, jaxlib": f"{jax.__version__}, {importlib.metadata.version('jaxlib')}",
        "Python": platform.python_version(),
        "device": escape(f"{device.platform}: {device.device_kind}, {os.cpu_count()} CPU cores, {platform.platform()}"),
        "floats": "float64" if jax.config.read("jax_enable_x64") else "float32",
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seeds": ", ".join(map(str, study.seeds)),
        "horizons": next(iter(horizons.values()))
        if same
        else "; ".join(f"{escape(name)}: {each}" for name, each in horizons.items()),
        "certificates' tolerance": f"{study.tol:g}",
    }
    items = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items())
    return f'<section id="origin"><h2>How this was made</h2><dl class="facts">{items}</dl></section>'


def _write_figures(study, problems: Mapping[str, Facts], kinds):
    addresses = _addresses(study.sources)
    for name, facts in problems.items():
        with _undisturbed():
            for kind, figure in _drawn(facts, kinds):
                for form, content in saved(figure):
                    _write(study.out / "figures" / f"{addresses[name]}-{kind}.{form}", content)


@contextlib.contextmanager
def _undisturbed():
    """Without collections of garbage, each of which looks at all that JAX has loaded."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _drawn(facts: Facts, kinds) -> Iterator[tuple[str, Any]]:
    """Of one problem, those of these kinds that have something to show."""
    horizons = facts.played["horizon"].n_unique()
    if "rounds" in kinds and horizons:
        yield "rounds", draw_rounds(facts.curves, facts.looks, constrained=facts.constrained)
    if "horizons" in kinds and horizons > 1:
        yield "horizons", draw_horizons(facts.summary, facts.looks, facts.rates, constrained=facts.constrained)


def _write(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"cannot write into {path.parent}: {error.strerror}; give the Study another out=") from None
    write_whole(path, content)
    return path
