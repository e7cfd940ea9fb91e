"""`cocoax race`."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import LabError
from .app import app
from .options import Certify, Cluster, Quiet, Resume, Workers, numbers
from .studies import Options, begun, finish, typed


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
    certify: Certify = False,
):
    """Every learner of a file on every problem of it, against the same rounds; ends with a report.

    `race arena` plays the untuned learner against rivals that were tuned for each problem on other seeds, and ends with
    a table as well; `race requests` does so with decisions that are taken after a request, `race arena-2026` with real
    data.
    """
    if allow_code and file.suffix.lower() != ".toml":
        raise LabError("--allow-code is for TOML files; leave it out")
    which = str(file)
    if which not in ("arena", "requests", "arena-2026"):
        options = Options(out or Path("out/race"), resume, quiet, workers, cluster, certify)
        if (problems, challenger) != (None, None):
            raise LabError("--problems and --challenger are for `cocoax race arena`; a file says its problems itself")
        _race_file(file, options, horizons, seeds, learners, allow_code)
        return
    options = Options(out or Path("out", which), resume, quiet, workers, cluster, certify)
    if which == "arena-2026":
        if (learners, horizons, seeds) != (None, None, None):
            raise LabError("arena-2026 has series of one length; give --problems, --challenger and --out alone")
        text = _race_2026(options, problems, challenger)
    else:
        if learners is not None or (challenger is not None and which != "arena"):
            raise LabError("--learners is for files, and --challenger for `cocoax race arena`")
        text = _race_arena(which, options, problems, horizons, seeds, challenger)
    (options.out / f"{which}.md").write_text(text, "utf-8")
    print(f"\n{text}")


def _race_file(file, options, horizons, seeds, learners, allow_code):
    with begun(options) as client:
        from ..lab.files import study_from

        instead = {"horizons": numbers(horizons), "seeds": None if seeds is None else range(seeds)}
        study = study_from(file, options.out, **instead, learners=learners, allow_code=allow_code)
        finish(study, options, client, title=f"Race: {file.stem}")


def _race_arena(which, options, problems, horizons, seeds, challenger) -> str:
    with begun(options) as client:
        from ..lab.arena import requests, suite
        from ..lab.arena.ranking import markdown
        from ..lab.arena.rivals import TUNED

        make, first, table, title = {
            "arena": (suite.arena_study, suite.FIRST_SEED, markdown, "The arena"),
            "requests": (requests.requests_study, requests.FIRST_SEED, requests.requests_markdown, "Requests"),
        }[which]
        mine = _challengers(challenger)
        beside = {"beside": mine} if mine else {}
        seeds = range(first, first + (seeds or 10))
        study = make(options.out, seeds=seeds, horizons=numbers(horizons), names=_split(problems), **beside)
        tuned = [name for name in study.learners if name.endswith(TUNED)]
        untuned = [name for name in study.learners if name not in tuned]
        groups = {"learners with nothing tuned": untuned, "tuned rivals": tuned}
        finish(study, options, client, title=title, groups=groups)
    return "\n".join([*(table(study, typed(), name) for name in mine), table(study, typed())])


def _race_2026(options, problems, challenger) -> str:
    with begun(options) as client:
        from ..lab.arena.arena_2026 import arena_2026_markdown, arena_2026_study, arena_2026_tables

        study = arena_2026_study(options.out, names=_split(problems), challengers=_challengers(challenger))
        finish(study, options, client, title="The arena of 2026", tables=arena_2026_tables)
    return arena_2026_markdown(study, typed())


def _challengers(text) -> dict:
    """The user's own learner, by its name; nothing if there is none."""
    from ..lab.code import learner_from

    return {} if text is None else dict([learner_from(text)])


def _split(problems):
    return None if problems is None else [name.strip() for name in problems.split(";") if name.strip()]
