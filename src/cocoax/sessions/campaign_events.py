"""Events of campaigns: how they are written down, and what is wrong with one that cannot be read."""

import hashlib
import json
from typing import Any, NamedTuple

import jax
import numpy as np

from ..errors import CocoaxError, ProblemError, SessionError
from . import blame
from .arguments import LONGEST_NAME
from .storage.database import Damaged
from .storage.events import Event

BEGAN, ENDED = "began", "ended"
MOST = 1 << 16  # campaigns in one call
MOST_ROWS = 1 << 24
LONGEST_EVENT = MOST * (LONGEST_NAME * 6 + 16)  # of campaigns that begin, in bytes of JSON


class NewRounds(NamedTuple):
    """What rounds do, before they count."""

    rows: np.ndarray
    after: np.ndarray  # words
    numbers: np.ndarray  # the outcomes, packed


def halves(name: str) -> list[int]:
    return np.frombuffer(hashlib.blake2b(name.encode(), digest_size=8).digest(), ">u4").tolist()


class NotFiniteError(Exception):
    """The round at this place is not finite, for this reason."""

    def __init__(self, place: int, reason: str):
        super().__init__(place)
        self.place, self.reason = place, reason


def names_and_rows(event: Event) -> tuple[list[str], list[int]]:
    try:
        names, rows = json.loads(event.round or b"")
    except (ValueError, TypeError, RecursionError):
        raise Damaged("the names of campaigns") from None
    good = isinstance(names, list) and isinstance(rows, list) and len(names) == len(rows) == len(set(rows)) > 0
    if not good or not all(isinstance(name, str) for name in names):
        raise Damaged("the names of campaigns")
    if not all(type(row) is int and 0 <= row < MOST_ROWS for row in rows):
        raise Damaged("the rows of campaigns")
    return names, rows


def of_users(call, failure):
    """Call users' functions; their errors become one sentence."""
    try:
        return call()
    except ProblemError as error:  # a whole sentence already
        raise SessionError(str(error)) from error
    except CocoaxError:
        raise
    except Exception as error:  # of any kind: users write the loss
        raise blame.users_error(failure, error) from error


def row_of(tree: Any, place: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[place], tree)
