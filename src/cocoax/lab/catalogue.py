"""Everything that cocoax offers, by name: what it costs per round, and what is proven about it."""

import inspect
from typing import NamedTuple

from .. import baselines, domains, dual, learners, primal, problems
from ..core.facts import offered
from .names import closest

COLUMNS = {
    "domains": ("LMO", "runs"),
    "primals": ("cost a round", "guarantee"),
    "duals": ("cost a round", "guarantee"),
    "learners": ("cost a round", "guarantee"),
    "baselines": ("cost a round", "guarantee"),
    "problems": ("domain", "what"),
}
_PACKAGES = {
    "domains": domains,
    "primals": primal,
    "duals": dual,
    "learners": learners,
    "baselines": baselines,
    "problems": problems,
}


class Entry(NamedTuple):
    name: str
    summary: str  # the first line of its docstring
    cost: str  # a round
    guarantee: str  # or what it is for


def catalogue() -> dict[str, list[Entry]]:
    """The entries by kind: domains, primals, duals, learners, baselines, problems."""
    return {
        kind: [Entry(name, _summary(part), *part.facts.columns()) for name, part in offered(package).items()]
        for kind, package in _PACKAGES.items()
    }


def kind_of(name: str) -> str:
    """The kind that a user names, in the singular or the plural."""
    plural = name if name.endswith("s") else f"{name}s"
    return plural if plural in _PACKAGES else closest(name, _PACKAGES, "kind")


def markdown(kind: str) -> str:
    """The entries of one kind as a Markdown table for the docs."""
    rows = [("name", *COLUMNS[kind]), ("---",) * 3]
    rows += [(f"`{entry.name}`", entry.cost, entry.guarantee) for entry in catalogue()[kind]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _summary(part) -> str:
    return (inspect.getdoc(part) or "").split("\n")[0]
