"""What to cite: the BibTeX of every public learner, baseline, primal and dual, by the name of its class."""

import re
from importlib import resources

from .. import baselines, dual, learners, primal
from ..core.facts import offered
from ..errors import LabError


def entries() -> dict[str, str]:
    """The entries of `references.bib` by their keys."""
    text = resources.files("cocoax.lab").joinpath("references.bib").read_text("utf-8")
    return {entry[1]: entry[0] for entry in re.finditer(r"^@\w+\{([^,]+),$.*?^\}$", text, re.MULTILINE | re.DOTALL)}


_ENTRIES = entries()


def _bibtex(name, part) -> str:
    missing = [key for key in part.facts.cites if key not in _ENTRIES]
    if missing:
        raise LabError(f"{name} cites {missing[0]!r}, which lab/references.bib does not have; add it there")
    return "\n\n".join(_ENTRIES[key] for key in part.facts.cites)


OWN = _ENTRIES["cocoax"]
"""Of cocoax itself."""

CITATIONS: dict[str, str] = {
    name: _bibtex(name, part)
    for package in (learners, baselines, primal, dual)
    for name, part in offered(package).items()
}
"""Several may share an entry. `Blocks`, `PrimalDual` and other learners made of parts: cite the parts too."""
