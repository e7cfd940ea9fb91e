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
            help="A Python file that defines problems and learners, a TOML file, or arena, requests or arena-2026."
        ),
    ],
    problems: Annotated[
        str | None, typer.Option(help="In the arena: names, separated by semicolons; all by default.")
    ] = None,
    learners: Annotated[
        str | None, typer.Option(help="Of a file: whole names or words of them as OCG, separated by commas.")
    ] = None,
    challenger: Annotated[
        str | None, typer.Option(help="In the arena: FILE.py:NAME, your learner or primal, which plays beside Auto.")
    ] = None,
    horizons: Annotated[str | None, typer.Option(help="Numbers of rounds, as 100,300,1000.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many; 10 by default.")] = None,
    allow_code: Annotated[
        bool,
        typer.Option("--allow-code", help='A TOML file may name parts of Python files beside it, as "mine:MomFW".'),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; out/race or out/arena by default.")] = None,
    resume: Resume = False,
    quiet: Quiet = False,
    workers: Workers = None,
    cluster: Cluster = None,
):
    """Every learner of a file on every problem of it, against the same rounds; ends with a report.

    `race arena` plays the untuned learner against rivals that were tuned by hand, and ends with a table as well; `race
    requests` does so with decisions that are taken after a request, `race arena-2026` with real data.
    """
    if str(file) == "arena-2026":
        if (learners, horizons, seeds) != (None, None, None):
            raise LabError("arena-2026 has series of one length; give --problems, --challenger and --out alone")
        _race_2026(out or Path("out", file), resume, quiet, workers, cluster, problems, challenger)
        return
    if str(file) in ("arena", "requests"):
        which, out = str(file), out or Path("out", file)
        if learners is not None or (challenger is not None and which != "arena"):
            raise LabError("--learners is for files, and --challenger for `cocoax race arena`")
        _race_arena(which, out, resume, quiet, workers, cluster, problems, horizons, seeds, challenger)
        return
    if (problems, challenger) != (None, None):
        raise LabError("--problems and --challenger are for `cocoax race arena`; a file says its problems itself")
    out = out or Path("out/race")
    with begun(out, resume, workers, cluster) as client:
        from ..lab.files import study_from

        options = {"horizons": numbers(horizons), "seeds": None if seeds is None else range(seeds)}
        study = study_from(file, out, **options, learners=learners, allow_code=allow_code)
        finish(study, quiet, client, cluster, title=f"Race: {file.stem}")


def _race_arena(which, out, resume, quiet, workers, cluster, problems, horizons, seeds, challenger):
    with begun(out, resume, workers, cluster) as client:
        from ..lab.arena import requests, suite
        from ..lab.arena.ranking import TUNED, markdown
        from ..lab.code import learner_from

        make, first, table, title = {
            "arena": (suite.arena_study, suite.FIRST_SEED, markdown, "The arena"),
            "requests": (requests.requests_study, requests.FIRST_SEED, requests.requests_markdown, "Requests"),
        }[which]
        names = _split(problems)
        mine = {} if challenger is None else dict([learner_from(challenger)])
        options = {"beside": mine} if mine else {}
        seeds = range(first, first + (seeds or 10))
        study = make(out, seeds=seeds, horizons=numbers(horizons), names=names, **options)
        tuned = [name for name in study.learners if name.endswith(TUNED)]
        untuned = [name for name in study.learners if name not in tuned]
        groups = {"learners with nothing tuned": untuned, "tuned rivals": tuned}
        finish(study, quiet, client, cluster, title=title, groups=groups)
    command = shlex.join(["cocoax", *sys.argv[1:]])
    text = "\n".join([*(table(study, command, name) for name in mine), table(study, command)])
    (out / f"{which}.md").write_text(text, "utf-8")
    print(f"\n{text}")


def _race_2026(out, resume, quiet, workers, cluster, problems, challenger):
    with begun(out, resume, workers, cluster) as client:
        from ..lab.arena.arena_2026 import arena_2026_markdown, arena_2026_study
        from ..lab.code import learner_from

        mine = {} if challenger is None else dict([learner_from(challenger)])
        study = arena_2026_study(out, names=_split(problems), challengers=mine)
        finish(study, quiet, client, cluster, title="The arena of 2026")
    text = arena_2026_markdown(study, shlex.join(["cocoax", *sys.argv[1:]]))
    (out / "arena-2026.md").write_text(text, "utf-8")
    print(f"\n{text}")


def _split(problems):
    return None if problems is None else [name.strip() for name in problems.split(";") if name.strip()]
