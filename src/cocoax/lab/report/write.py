"""Writes a study's report: one HTML page that works offline, tables, and figures for papers."""

import datetime
import importlib.metadata
import io
import platform
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from ... import __version__
from ...core.files import write_file
from ...errors import LabError
from ...learners import Stay
from ..arguments import naming_problem
from ..results.rows import harmless
from ..run.pools import pool_of
from .data import ReportData
from .figures import Rates, draw_horizons, draw_rounds, image_files, styles
from .headline import headline
from .latex import latex
from .learner_facts import learner_facts
from .page import render
from .problem_facts import sentence
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
    descriptions: Mapping[str, str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    tables: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
    client: Any = None,
    executor: Any = None,
) -> Path:
    """Write a page, tables and figures of the games that were played into the study's folder. Returns the page's path.

    **Arguments:**

    - `title`: title of the page.
    - `command`: what a reader would type to make the same page; by default this process's command.
    - `slopes`: by the learners' names, exponents of T from a theorem: the regret's, or a tuple that begins with those
      of regret and violation, such as `theory.rates` returns.
    - `notes`: paragraphs to put below the title.
    - `descriptions`: by the problems' names, a description to use instead of the one from the problem's function.
    - `groups`: learners' names, by a plural such as "methods of the paper"; the legend and the headline use it.
    - `tables`: by title, tables of your own to put first; a row has its cells by the columns' names, the problem first.
    - `client`, `executor`: as in `Study.run`; figures and statistics of many problems are then made elsewhere.
    """
    assert study.out is not None  # Study.report sees to it
    pool, addresses = pool_of(client, executor), _addresses(study.sources)
    data, by_problem = _data(study, slopes or {})
    learners, groups = learner_facts(study.learners), groups or {}
    shared = {name: pool.share(of_problem) for name, of_problem in by_problem.items()}
    figures = {(addresses[name], kind): pool.call(_images, shared[name], kind) for name in by_problem for kind in KINDS}
    writing = [
        pool.call(
            section,
            name,
            addresses[name],
            _problem_sentence(study, name, of_problem, descriptions or {}),
            shared[name],
            [one.name for one in learners if one.is_marked(name)],
            groups,
        )
        for name, of_problem in by_problem.items()
    ]
    sections = [future.result() for future in writing]
    written = {address: [] for address in addresses.values()}
    for (address, kind), images in figures.items():
        for form, content in images.result():
            written[address].append(f"figures/{address}-{kind}.{form}")
            _write(study.out / written[address][-1], content)
    starts = [name for name, learner in study.learners.items() if isinstance(learner, Stay)]
    text = render(
        title=title or "A comparison of learners",
        notes=notes,
        counts=_counts(study),
        headline=headline([section.ranking for section in sections], starts, groups),
        tables=tables or {},
        sections=sections,
        plots_by_id={id: plot for section in sections for id, plot in section.plots.items()},
        learners=learners,
        command=command or shlex.join(sys.argv),
        origin=_origin(study),
        figures=written,
    )
    data.table.write_parquet(parquet := io.BytesIO())
    _write(study.out / "table.parquet", parquet.getvalue())
    _write(study.out / "table.csv", harmless(data.table).write_csv().encode())
    _write(study.out / "table.tex", latex(by_problem).encode())
    _write(study.out / "table_all_horizons.tex", latex(by_problem, "all").encode())
    return _write(study.out / "report.html", text.encode())


def table_for_papers(study: "Study", horizon: int | str | None = None) -> str:
    """The tables in LaTeX that `Study.latex` returns."""
    return latex(_data(study, {})[1], horizon)


def _data(study, slopes) -> tuple[ReportData, dict[str, ReportData]]:
    """(data of all problems, data by problem)."""
    data = ReportData(study._stored(), styles(study.learners), _rates(slopes, study.learners))
    return data, {name: data.of_problem(name) for name in study.sources}


def _problem_sentence(study, name, data: ReportData, descriptions: Mapping[str, str]) -> str:
    """The problem `name` in one sentence."""
    constraints = data.table["constraints"].drop_nulls()
    count = int(constraints.max()) if len(constraints) else 0  # pyright: ignore[reportArgumentType]
    with naming_problem(name):
        return sentence(study.sources[name], study.seeds[0], count, max(study.horizons[name]), descriptions.get(name))


def _rates(slopes, learners) -> Rates:
    """The exponents in `slopes`, by figure and learner, for the learners of this study."""
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
    """For each problem, a unique text for its section's id and its files' names."""
    addresses: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "problem"
        address, n = plain, 2
        while address in addresses.values() or address in ("learners", "origin", "plots"):
            address, n = f"{plain}-{n}", n + 1
        addresses[name] = address
    return addresses


def _counts(study) -> dict[str, int]:
    """How many problems, learners, horizons and seeds the study has."""
    horizons = {horizon for of_problem in study.horizons.values() for horizon in of_problem}
    return {
        "problem": len(study.sources),
        "learner": len(study.learners),
        "horizon": len(horizons),
        "seed": len(study.seeds),
    }


def _origin(study) -> dict[str, str]:
    """Versions, device, seeds and other facts on how the games were made, by the names that the page shows."""
    horizons = {name: ", ".join(map(str, of_problem)) for name, of_problem in study.horizons.items()}
    same = len(set(horizons.values())) == 1
    return {
        "cocoax": __version__,
        "jax, jaxlib": f"{jax.__version__}, {importlib.metadata.version('jaxlib')}",
        "Python": platform.python_version(),
        "device": study.played_on,
        "floats": "float64" if jax.config.read("jax_enable_x64") else "float32",
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seeds": ", ".join(map(str, study.seeds)),
        "horizons": next(iter(horizons.values()))
        if same
        else "; ".join(f"{name}: {numbers}" for name, numbers in horizons.items()),
        "certificates' tolerance": f"{study.tol:g}",
    }


def _images(data: ReportData, kind: str) -> list[tuple[str, bytes]]:
    """(format, bytes) of one problem's figure, whose kind is in `KINDS`; an empty list if it would be empty."""
    if data.played["horizon"].n_unique() < (2 if kind == "horizons" else 1):
        return []
    if kind == "rounds":
        return list(image_files(draw_rounds(data.curves, data.looks, constrained=data.constrained)))
    return list(image_files(draw_horizons(data.summary, data.looks, data.rates, constrained=data.constrained)))


def _write(path: Path, content: bytes) -> Path:
    """Write a file, with its folder, and return its path; raises `LabError` if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}; give the Study another out=") from None
    return path
