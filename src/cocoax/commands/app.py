"""The command line's application. A command is a function with `@app.command()` in a file beside this one."""

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Constrained online convex optimization in JAX, without projections.",
)
