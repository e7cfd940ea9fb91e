"""Options that several commands take, and how their texts are read."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import LabError

Out = Annotated[Path, typer.Option(help="Folder of the results.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the games that are already in --out.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Certify = Annotated[
    bool, typer.Option("--certify", help="Also keep what games prove of their own regret, for bands in the report.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes on this machine; beside a GPU most cores, else 1.")]
Cluster = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, as tcp://head:8786.")]


def numbers(text: str | None) -> list[int] | None:
    """Horizons, as 10,100,1000."""
    if text is None:
        return None
    try:
        values = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        values = []
    if not values or min(values) < 1:
        raise LabError(f"horizons must be whole numbers from 1 on, separated by commas, got {text!r}")
    return values
