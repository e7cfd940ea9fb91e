"""`cocoax session`: look at, check, copy and move the files of sessions and fleets."""

import json
from pathlib import Path
from typing import Annotated

import typer

from .app import app

session = typer.Typer(no_args_is_help=True, help="Files of sessions and fleets: inspect, verify, backup, export, ...")
app.add_typer(session, name="session")
File = Annotated[Path, typer.Argument(help="The file of a session or a fleet.")]
New = Annotated[Path, typer.Argument(help="A new file.")]


def _run(command: str, *files: Path, **options):
    from ..sessions import maintenance  # when it is needed: it loads JAX
    from ..sessions.arguments import as_file

    print(json.dumps(getattr(maintenance, command)(*map(as_file, files), **options), indent=2))


@session.command()
def inspect(file: File):
    """What a file says of itself, as JSON: version, learner, settings, events, snapshots, space. May be open."""
    _run("inspect", file)


@session.command()
def verify(file: File):
    """Check every page, checksum and snapshot. May be open."""
    _run("verify", file)


@session.command()
def backup(file: File, to: New):
    """Write a checked copy, which opens as the session would after a kill now. May be open."""
    _run("backup", file, to)


@session.command()
def export(file: File, to: New):
    """Write the state of a closed session, without its past, to a file with a checksum."""
    _run("export", file, to)


@session.command("import")
def import_(source: Annotated[Path, typer.Argument(help="What export wrote.")], to: New):
    """A new file that goes on from an exported state."""
    _run("import_file", source, to)


@session.command()
def compact(
    file: File,
    forget_rounds: Annotated[bool, typer.Option("--forget-rounds", help="Drop the data of past rounds.")] = False,
    forget_history: Annotated[
        bool, typer.Option("--forget-history", help="Drop past rounds with their outcomes.")
    ] = False,
):
    """Write a closed file anew, without the space of what was forgotten."""
    _run("compact", file, forget_rounds=forget_rounds, forget_history=forget_history)
