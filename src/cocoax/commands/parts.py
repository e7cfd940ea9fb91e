"""`cocoax list`."""

from typing import Annotated

import typer

from .app import app
from .console import show


@app.command("list")
def list_parts(
    kind: Annotated[str | None, typer.Argument(help="domains, primals, duals, learners or problems.")] = None,
    cite: Annotated[bool, typer.Option("--cite", help="BibTeX entries instead.")] = False,
):
    """Domains, primals, duals, learners and problems, with their cost a round and their guarantee."""
    from ..lab.catalogue import COLUMNS, catalogue
    from ..lab.names import closest

    parts = catalogue()
    chosen = parts if kind is None else {closest(kind, parts, "kind"): parts[closest(kind, parts, "kind")]}
    if cite:
        from ..learners.citations import CITATIONS

        names = [entry.name for entries in chosen.values() for entry in entries]
        print("\n\n".join(dict.fromkeys(CITATIONS[name] for name in names if name in CITATIONS)))
        return
    for title, entries in chosen.items():
        show(title, ["name", "what it is", *COLUMNS[title]], [list(entry) for entry in entries])
