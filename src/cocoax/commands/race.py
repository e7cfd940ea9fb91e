"""`cocoax race`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LabError
from .app import app
from .options import Cluster, Quiet, Resume, Workers, numbers
from .studies import begun, finish


@app.command()
def race(
    file: Annotated[
        Path,
        typer.Argument(
            help="A Python file that defines problems and learners, a TOML file, or the word arena or requests."
        ),
    ],
    problems: Annotated[
        str | None, typer.Option(help="In the arena: names, separated by semicolons; all by default.")
    ] = None,
    horizons: Annotated[str | None, typer.Option(help="In the arena: numbers of rounds, as 100,300,1000.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="In the arena: how many; 10 by default.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; out/race or out/arena by default.")] = None,
    resume: Resume = False,
    quiet: Quiet = False,
    workers: Workers = None,
    cluster: Cluster = None,
):
    """Every learner of a file on every problem of it, against the same rounds; ends with a report.

    `race arena` plays the untuned learner against rivals that were tuned by hand, and ends with a table as well; `race
    requests` does so with decisions that are taken after a request.
    """
    if str(file) in ("arena", "requests"):
        which, out = str(file), out or Path("out", file)
        _race_arena(which, out, resume, quiet, workers, cluster, problems, horizons, seeds)
        return
    if (problems, horizons, seeds) != (None, None, None):
        raise LabError(
            "--problems, --horizons and --seeds are for `cocoax race arena` and requests; a file says them itself"
        )
    out = out or Path("out/race")
    with begun(out, resume, workers, cluster) as client:
        from ..lab.files import study_from

        finish(study_from(file, out), quiet, client, cluster, title=f"Race: {file.stem}")


def _race_arena(which, out, resume, quiet, workers, cluster, problems, horizons, seeds):
    with begun(out, resume, workers, cluster) as client:
        from ..lab.arena import requests, suite
        from ..lab.arena.ranking import markdown

        make, first, table, title = {
            "arena": (suite.arena_study, suite.FIRST_SEED, markdown, "The arena"),
            "requests": (requests.requests_study, requests.FIRST_SEED, requests.requests_markdown, "Requests"),
        }[which]
        names = None if problems is None else [name.strip() for name in problems.split(";") if name.strip()]
        study = make(out, seeds=range(first, first + (seeds or 10)), horizons=numbers(horizons), names=names)
        finish(study, quiet, client, cluster, title=title)
    text = table(study, shlex.join(["cocoax", *sys.argv[1:]]))
    (out / f"{which}.md").write_text(text, "utf-8")
    print(f"\n{text}")
