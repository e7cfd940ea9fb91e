"""What a report says about a problem: one sentence that includes its size."""

import inspect
import math
from typing import Any

import jax

from ...core import tree
from ..sources import Source


def sentence(source: Source, seed: int, constraints: int, horizon: int, what: str | None = None) -> str:
    """One sentence: what the problem is, its decisions, constraints and rounds.

    `what` replaces the description from the problem's function.
    """
    function = _function(source.make)
    facts = getattr(function, "facts", None)
    what = what or (facts.purpose.split(";")[0] if facts else _first_line(function))
    domain = source.sample(seed).domain
    where = facts.domain if facts else f"a set of the kind {type(domain).__name__}"
    size = f"a decision is {_size(domain.shape)} in {where}"
    limits = "without constraints" if not constraints else f"{constraints} constraint{'s' * (constraints > 1)} a round"
    text = f"{what}: {size}, {limits}, up to {horizon:,} rounds." if what else f"{size}, {limits}, {horizon:,} rounds."
    return text[0].upper() + text[1:]


def _function(make: Any) -> Any:
    """The function that the user wrote, taken out of `functools.partial`."""
    while hasattr(make, "func"):
        make = make.func
    return make


def _first_line(function: Any) -> str:
    """The first line of the function's docstring, without its full stop; empty if it has a formula."""
    text = (inspect.getdoc(function) or "").split("\n")[0] if inspect.isroutine(function) else ""
    return "" if "$" in text else text.strip().rstrip(".")


def _size(shape: Any) -> str:
    """A decision's shape in words, such as "10 numbers" or "a 50 × 50 matrix"."""
    parts = jax.tree.leaves(shape, is_leaf=tree.is_shape)
    entries = sum(math.prod(part) for part in parts)
    if len(parts) > 1:
        return f"{entries:,} numbers in {len(parts)} parts"
    if len(parts[0]) == 2:
        return f"a {parts[0][0]:,} × {parts[0][1]:,} matrix"
    return f"{entries:,} number{'s' * (entries != 1)}"
