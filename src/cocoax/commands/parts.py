"""`cocoax list`."""

from typing import Annotated

import typer

from .app import app
from .console import show


@app.command("list")
def list_parts(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="domains, primals, duals, learners, baselines or problems; with --cite, of parts too."),
    ] = None,
    cite: Annotated[
        bool, typer.Option("--cite", help="BibTeX entries instead; `cocoax list --cite OCG Auto`.")
    ] = False,
):
    """Domains, primals, duals, learners, baselines and problems, with their cost a round and their guarantee."""
    from ..lab.catalogue import COLUMNS, catalogue, kind_of
    from ..lab.plain_math import plain

    parts = catalogue()
    if cite:
        print("\n\n".join(_entries(names, parts)))
        return
    for kind in dict.fromkeys(kind_of(name) for name in names) if names else parts:
        rows = [[entry.name, plain(entry.summary), *entry[2:]] for entry in parts[kind]]
        show(kind, ["name", "what it is", *COLUMNS[kind]], rows)


def _entries(names, parts) -> list[str]:
    """BibTeX of some parts, or of all parts of some kinds, or of cocoax itself; of everything without names."""
    from ..lab.citations import CITATIONS, OWN
    from ..lab.names import resolve

    known = {"cocoax": OWN, **CITATIONS}
    kinds = {name: kind for kind in parts for name in (kind, kind.removesuffix("s"))}
    found = []
    for name in names or known:
        if name in kinds:
            found += [known[entry.name] for entry in parts[kinds[name]] if entry.name in known]
        else:
            found.append(known[resolve(name, known, "learner, baseline, primal or dual")])
    return list(dict.fromkeys(found))
