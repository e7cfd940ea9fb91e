"""The command line's application. A command is a function with `@app.command()` in a file beside this one."""

from typing import Annotated

import typer

from .. import __version__

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Constrained online convex optimization in JAX, without projections.",
)


def _show_version(asked: bool):
    if asked:
        print(f"cocoax {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
):
    pass
