"""`cocoax serve`."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import SessionError
from .app import app


@app.command()
def serve(
    file: Annotated[Path, typer.Argument(help="A Python file that defines fleet = cx.Fleet(...), or sessions.")],
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8000,
    tokens: Annotated[
        Path | None, typer.Option(help="A file with a role (play, read, admin) and a token a line.")
    ] = None,
    body: Annotated[int, typer.Option(min=1, help="Largest body of a request, in bytes.")] = 1 << 20,
    queue: Annotated[int, typer.Option(min=1, help="Requests that may wait; more are refused with 429.")] = 4096,
    campaigns: Annotated[
        int, typer.Option(min=1, help="Campaigns of a fleet that may be open; more are refused with 409.")
    ] = 250_000,
    log_all: Annotated[bool, typer.Option("--log-all", help="Log every request, not only refused ones.")] = False,
):
    """A fleet, or sessions, as an HTTP service, until SIGTERM or Ctrl-C."""
    try:
        from ..service import access, run
    except ModuleNotFoundError as missing:
        raise SessionError(f'{missing.name} is missing; a service needs it: pip install "cocoax[serve]"') from None
    limits = {"largest_body": body, "longest_queue": queue, "most_campaigns": campaigns, "log_all": log_all}
    run.serve(file, host, port, access.tokens_from(tokens), **limits)
