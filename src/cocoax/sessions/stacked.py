"""What a call of a fleet is given: names and tickets, and rounds that are stacked along a leading axis."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np

from ..errors import SessionError
from . import packing
from .arguments import LONGEST_NAME, checked_campaign, checked_ticket
from .campaign_events import MOST
from .schema import RoundSchema
from .slots import LONGEST_TICKET


def checked_names(names, *, often: bool = False) -> list[str]:
    """Names of campaigns, each once, or `often`."""
    if isinstance(names, str):
        raise SessionError(f"names must be a list of names, got the string {names!r}; give [{names!r}]")
    if not isinstance(names, Iterable):
        raise SessionError(f"names must be a list of names, got {packing.short(names)}")
    names = list(names)
    if set(map(type, names)) != {str} or not all(names) or max(map(len, names)) > LONGEST_NAME or not _printable(names):
        for name in names:
            checked_campaign(name)
    if not 0 < len(names) <= MOST:
        raise SessionError(f"a call serves 1 to {MOST:,} campaigns, got {len(names)}; give them in parts")
    if not often and len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise SessionError(f"{twice!r} comes twice; each campaign may come once in a call")
    return names


def _printable(names: list[str]) -> bool:
    return "".join(names).isprintable()


def checked_tickets(tickets, count: int, *, needed: bool | None) -> list:
    """One ticket, or None, for each name. They are `needed`, or may be there (None), or not (False)."""
    if tickets is not None and needed is False:
        raise SessionError("tickets are for late feedback; begin the fleet with pending=")
    if tickets is None and not needed:
        return [None] * count
    if tickets is None:
        raise SessionError("this fleet has late feedback; give tickets, one for each name, which decide answered with")
    listed = [] if isinstance(tickets, str) else list(tickets)
    if len(listed) != count or (needed and None in listed):
        got = packing.short(tickets)
        raise SessionError(f"tickets must be a list with one for each of the {count} names, got {got}")
    for ticket in listed:
        if ticket is not None and len(checked_ticket(ticket).encode()) > LONGEST_TICKET:
            raise SessionError(f"a ticket of a fleet has at most {LONGEST_TICKET} bytes, got {packing.short(ticket)}")
    return listed


def waves(rows: np.ndarray) -> tuple[np.ndarray, Iterator[tuple[np.ndarray, np.ndarray]]]:
    """(each row once, an iterator): first the first places of all rows, then the second ones, ..., each time with where
    their rows are among those."""
    unique, where = np.unique(rows, return_inverse=True)
    if len(unique) == len(rows):
        all_of_them = np.arange(len(rows))
        return rows, iter([(all_of_them, all_of_them)])
    order = np.argsort(where, kind="stable")
    starts = np.searchsorted(where[order], np.arange(len(unique)))
    turn = np.empty(len(rows), np.int64)
    turn[order] = np.arange(len(rows)) - starts[where[order]]
    return unique, ((places, where[places]) for places in (np.flatnonzero(turn == k) for k in range(turn.max() + 1)))


def chosen(tree: Any, places: np.ndarray, count: int) -> Any:
    """These places of a stacked tree, where not all were chosen."""
    return tree if len(places) == count else jax.tree.map(lambda leaf: np.asarray(leaf)[places], tree)


def picked(items: list, places: np.ndarray) -> list:
    """These places of a list, where not all were chosen."""
    return items if len(places) == len(items) else [items[place] for place in places.tolist()]


def first(tree: Any, name: str) -> Any:
    """The first of stacked rounds. Whole numbers in lists are floats, as in a session."""

    def one(leaf):
        array = np.asarray(leaf)
        if not array.ndim or not len(array):
            raise SessionError(f"{name} must have a leading axis with one entry for each campaign, got {array}")
        return array[0].astype(float) if isinstance(leaf, list) and array.dtype.kind in "iu" else array[0]

    return jax.tree.map(one, tree, is_leaf=lambda node: isinstance(node, list))


def cast(schema: RoundSchema, tree: Any, names: list[str], what: str) -> Any:
    """Stacked rounds in the schema of one; an error names the campaign, and is about its own round."""
    try:
        return _stacked(schema, len(names)).cast(tree, what)
    except SessionError:
        for place, name in enumerate(names):
            schema.cast(_one(tree, place, len(names), what), f"{what} of {name!r}")
        raise


def _one(tree: Any, place: int, count: int, what: str) -> Any:
    def one(leaf):
        try:
            array = np.asarray(leaf)
        except ValueError:  # lists of unequal lengths
            array = np.asarray(None)
        if array.shape[:1] != (count,):
            raise SessionError(f"{what} must have one entry for each of the {count} names, got {packing.short(leaf)}")
        return array[place]

    return jax.tree.map(one, tree, is_leaf=lambda node: isinstance(node, list))


def _stacked(schema: RoundSchema, count: int) -> RoundSchema:
    """The schema of `count` rounds, or requests, that are stacked along a leading axis."""

    def longer(part) -> Any:
        match part:
            case {"dict": parts}:
                return {"dict": {key: longer(one) for key, one in parts.items()}}
            case {"none": _}:
                return part
            case {"list": parts}:
                return {"list": [longer(one) for one in parts]}
            case {"tuple": parts}:
                return {"tuple": [longer(one) for one in parts]}
        return {"dtype": part["dtype"], "shape": [count, *part["shape"]]}

    return RoundSchema(longer(schema.json))
