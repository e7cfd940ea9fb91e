"""Events of campaigns: how they are written down, and what is wrong with one that cannot be read."""

import hashlib
import json
from typing import Any

import jax
import numpy as np

from .arguments import LONGEST_NAME
from .slots import LONGEST_TICKET
from .storage.database import Damaged
from .storage.events import Event

BEGAN, ENDED, CHANGED = "began", "ended", "changed"
MOST = 1 << 16  # campaigns in one call
MOST_ROWS = 1 << 24
LONGEST_NUMBER = 32  # characters of JSON
LONGEST_EVENT = MOST * (LONGEST_NAME * 6 + 16)  # of campaigns that begin, in bytes of JSON


def halves(name: str) -> list[int]:
    return np.frombuffer(hashlib.blake2b(name.encode(), digest_size=8).digest(), ">u4").tolist()


class NotFiniteError(Exception):
    """The round at this place is not finite, for this reason."""

    def __init__(self, place: int, reason: str):
        super().__init__(place)
        self.place, self.reason = place, reason


def names_and_rows(event: Event, budgets: int = 0) -> list:
    """Names and rows of campaigns; and, of some that begin, so many budgets each."""
    try:
        names, rows, *own = json.loads(event.round or b"")
        tables = [np.array(table, float).reshape(len(rows), budgets) for table in own]
    except (ValueError, TypeError, RecursionError):
        raise Damaged("the names of campaigns") from None
    good = isinstance(names, list) and isinstance(rows, list) and len(names) == len(rows) == len(set(rows)) > 0
    if not good or not all(isinstance(name, str) for name in names) or len(tables) > bool(budgets):
        raise Damaged("the names of campaigns")
    if not all(type(row) is int and 0 <= row < MOST_ROWS for row in rows):
        raise Damaged("the rows of campaigns")
    if not all(np.isfinite(table).all() and (table >= 0).all() for table in tables):
        raise Damaged("the budgets of campaigns")
    return [names, rows, *tables]


def row_of(tree: Any, place: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[place], tree)


def rows_and_data(data: bytes, size: int, late: bool) -> tuple[np.ndarray, np.ndarray | None, bytes]:
    """(rows, tickets, the other bytes) of an event that has `size` other bytes for each row."""
    name = LONGEST_TICKET if late else 0
    count, left = divmod(len(data), 4 + name + size)
    if left or not count:
        raise Damaged("an event of another size")
    rows = np.frombuffer(data, np.int32, count).astype(np.int64)
    tickets = np.frombuffer(data, f"S{name}", count, 4 * count) if late else None
    return rows, tickets, data[(4 + name) * count :]
