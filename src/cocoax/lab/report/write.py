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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import polars as pl

from ... import __version__
from ...core.files import write_file
from ...errors import LabError
from ..results import statistics
from .data import ReportData
from .describe import learner_facts
from .figures import Rates, draw_horizons, draw_rounds, image_files, styles
from .latex import latex
from .page import render
from .sections import section

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
    assert study.out is not None  # Study.report sees to it
    data = _report_data(study, slopes)
    by_problem = {name: data.of_problem(name) for name in study.sources}
    learners = learner_facts(study.learners)
    sections = [
        section(name, address, by_problem[name], marked=[one.name for one in learners if one.is_marked(name)])
        for name, address in _addresses(study.sources).items()
    ]
    text = render(
        title=title or "A comparison of learners",
        notes=notes,
        counts=_counts(study),
        sections=sections,
        plots_by_id={id: plot for section in sections for id, plot in section.plots.items()},
        learners=learners,
        command=command or shlex.join(sys.argv),
        origin=_origin(study),
    )
    if figures:
        _write_figures(study, by_problem, KINDS)
    data.table.write_parquet(parquet := io.BytesIO())
    _write(study.out / "table.parquet", parquet.getvalue())
    _write(study.out / "table.csv", data.table.write_csv().encode())
    _write(study.out / "table.tex", latex(by_problem).encode())
    return _write(study.out / "report.html", text.encode())


def write_figures(
    study: "Study", problems: Iterable[str], slopes: Mapping[str, Any] | None = None, kinds: Sequence[str] = KINDS
) -> None:
    """Write some of the figures that `write_report` writes, so that several processes can share the work."""
    data = _report_data(study, slopes)
    _write_figures(study, {name: data.of_problem(name) for name in problems}, kinds)


def load() -> None:
    """Import what a report needs: a process can do so while others still play."""
    statistics.half_width(1.0, 2)


def draw_once() -> None:
    """Draw a figure that nobody sees, so that the next one takes half as long."""
    names = [f"{figure}_{part}" for figure in ("regret", "violation") for part in ("mean", "low", "high")]
    ends = {"learner": ["any", "any"], "horizon": [1, 1000], **{name: [1e-3, 1e3] for name in names}}
    list(image_files(draw_horizons(pl.DataFrame(ends), styles(["any"]), {"regret": {}, "violation": {}})))


def _report_data(study, slopes) -> ReportData:
    return ReportData(study._stored(), styles(study.learners), _rates(slopes or {}, study.learners))


def _rates(slopes, learners) -> Rates:
    """The `slopes` of `write_report`, of the learners in this study."""
    here = {name: slope for name, slope in slopes.items() if name in learners}
    pairs = {name: slope if isinstance(slope, tuple | list) else (slope,) for name, slope in here.items()}
    try:
        return {
            figure: {name: float(pair[place]) for name, pair in pairs.items() if place < len(pair)}
            for place, figure in enumerate(("regret", "violation"))
        }
    except (TypeError, ValueError):
        raise LabError(f"slopes must hold, by the learners' names, exponents of T, got {here!r:.80}") from None


def _addresses(names) -> dict[str, str]:
    """For each problem, its section's id and the start of its files' names; no two are the same."""
    addresses: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "problem"
        address, n = plain, 2
        while address in addresses.values() or address in ("learners", "origin", "plots"):
            address, n = f"{plain}-{n}", n + 1
        addresses[name] = address
    return addresses


def _counts(study) -> dict[str, int]:
    horizons = {horizon for of_problem in study.horizons.values() for horizon in of_problem}
    return {
        "problem": len(study.sources),
        "learner": len(study.learners),
        "horizon": len(horizons),
        "seed": len(study.seeds),
    }


def _origin(study) -> dict[str, str]:
    """How the games were made, by the names that the page shows."""
    device = jax.devices()[0]
    horizons = {name: ", ".join(map(str, of_problem)) for name, of_problem in study.horizons.items()}
    same = len(set(horizons.values())) == 1
    return {
        "cocoax": __version__,
        "jax, jaxlib": f"{jax.__version__}, {importlib.metadata.version('jaxlib')}",
        "Python": platform.python_version(),
        "device": f"{device.platform}: {device.device_kind}, {os.cpu_count()} CPU cores, {platform.platform()}",
        "floats": "float64" if jax.config.read("jax_enable_x64") else "float32",
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seeds": ", ".join(map(str, study.seeds)),
        "horizons": next(iter(horizons.values()))
        if same
        else "; ".join(f"{name}: {numbers}" for name, numbers in horizons.items()),
        "certificates' tolerance": f"{study.tol:g}",
    }


def _write_figures(study, problems: Mapping[str, ReportData], kinds):
    addresses = _addresses(study.sources)
    for name, data in problems.items():
        with _without_garbage_collection():
            for kind, figure in _figures(data, kinds):
                for form, content in image_files(figure):
                    _write(study.out / "figures" / f"{addresses[name]}-{kind}.{form}", content)


@contextlib.contextmanager
def _without_garbage_collection():
    """A collection looks at everything that JAX has loaded, which takes longer than drawing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _figures(data: ReportData, kinds) -> Iterator[tuple[str, Any]]:
    """The figures of one problem, without those that would be empty."""
    horizons = data.played["horizon"].n_unique()
    if "rounds" in kinds and horizons:
        yield "rounds", draw_rounds(data.curves, data.looks, constrained=data.constrained)
    if "horizons" in kinds and horizons > 1:
        yield "horizons", draw_horizons(data.summary, data.looks, data.rates, constrained=data.constrained)


def _write(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}; give the Study another out=") from None
    return path
