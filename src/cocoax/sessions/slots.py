"""The decisions of campaigns that wait for their rounds: a table of slots for each, whose size is fixed.

Without late feedback a campaign has one slot, for its open request. With it, each slot has the name of a ticket, and
campaigns remember the names and outcomes of the tickets that were over last.
"""

import math

import numpy as np

from ..errors import SessionError

LONGEST_TICKET = 40  # bytes
FREE = -1  # the number of a ticket in a slot without one
_LARGEST = 1 << 26  # bytes of one campaign with late feedback

Columns = dict[str, np.ndarray]


def empty(rows: int, slots: int, copies: int, late: bool, request: int, answer: int, outcome: int) -> Columns:
    """Columns of so many campaigns. Sizes: of a request in bytes, of an answer in words, of an outcome in numbers."""
    if not slots:
        return {}
    columns = {
        "given": np.zeros(rows, np.int64),  # tickets so far
        "number": np.full((rows, slots), FREE, np.int64),  # how many tickets were given before
        "request": np.zeros((rows, slots, request), np.uint8),
        "answer": np.zeros((rows, slots, answer), np.uint32),
    }
    if not late:
        return columns
    return columns | {
        "ticket": np.zeros((rows, slots), f"S{LONGEST_TICKET}"),
        "copy": np.zeros((rows, slots), np.int32),  # the copy that decided
        "version": np.zeros((rows, slots), np.int64),  # how many rounds it had observed before
        "versions": np.zeros((rows, copies), np.int64),  # how many rounds each copy has observed
        "over": np.zeros(rows, np.int64),  # tickets that are over
        "over_ticket": np.zeros((rows, slots), f"S{LONGEST_TICKET}"),  # the last ones, in turn
        "over_outcome": np.zeros((rows, slots, outcome)),  # NaN of those that were given up
    }


def check_size(columns: Columns, pending: int, copies: int):
    """Raise if late feedback would take very much memory for each campaign; of columns without rows."""
    size = sum(column.itemsize * math.prod(column.shape[1:]) for column in columns.values())
    if pending and size > _LARGEST:
        settings = f"pending={pending} and copies={copies}"
        raise SessionError(f"each campaign would take {size >> 20} MiB with {settings}; give less, say copies=1")


def find(columns: Columns, at: np.ndarray, tickets: np.ndarray | None) -> np.ndarray:
    """The slots of these tickets, or of the open requests; -1 where there is none."""
    is_it = columns["number"][at] != FREE
    if tickets is not None:
        is_it &= columns["ticket"][at] == tickets[:, None]
    return np.where(is_it.any(1), is_it.argmax(1), -1)


def find_over(columns: Columns, at: np.ndarray, tickets: np.ndarray) -> np.ndarray:
    """Where the tickets that were over last are remembered; -1 where they are not."""
    is_it = columns["over_ticket"][at] == tickets[:, None]
    return np.where(is_it.any(1), is_it.argmax(1), -1)


def free(columns: Columns, at: np.ndarray) -> np.ndarray:
    """A free slot of each; -1 where there is none."""
    is_free = columns["number"][at] == FREE
    return np.where(is_free.any(1), is_free.argmax(1), -1)


def oldest_first(columns: Columns, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(all slots by age, how many of them have a ticket)."""
    number = columns["number"][at]
    order = np.argsort(np.where(number == FREE, np.iinfo(np.int64).max, number), axis=1, kind="stable")
    return order, (number != FREE).sum(1).astype(np.int32)


def expired(columns: Columns, at: np.ndarray, expires: int) -> np.ndarray:
    """The oldest slot of each whose ticket expires when the next one is given; -1 where there is none."""
    number = columns["number"][at]
    is_old = (number != FREE) & (number <= columns["given"][at][:, None] - expires)
    oldest = np.where(is_old, number, np.iinfo(np.int64).max).argmin(1)
    return np.where(is_old.any(1), oldest, -1)


def idle_copy(columns: Columns, at: np.ndarray) -> np.ndarray:
    """The copy with the fewest tickets, the first of several."""
    if "copy" not in columns:
        return np.zeros(len(at), np.int64)
    copies = columns["versions"].shape[1]
    busy = (columns["copy"][at][:, :, None] == np.arange(copies)) & (columns["number"][at] != FREE)[:, :, None]
    return busy.sum(1).argmin(1)


def give(columns: Columns, at, slot, which, tickets: np.ndarray | None, requests: np.ndarray | None, answers):
    """Put new tickets into free slots."""
    columns["number"][at, slot] = columns["given"][at]
    columns["given"][at] += 1
    columns["answer"][at, slot] = answers
    if requests is not None:
        columns["request"][at, slot] = requests
    if tickets is not None:
        columns["ticket"][at, slot] = tickets
        columns["copy"][at, slot] = which
        columns["version"][at, slot] = columns["versions"][at, which]


def drop(columns: Columns, at, slot, outcome: np.ndarray | float):
    """These tickets are over. Their names and outcomes are remembered, as long as there is space."""
    columns["number"][at, slot] = FREE
    if "over" in columns:
        place = columns["over"][at] % columns["number"].shape[1]
        columns["over_ticket"][at, place] = columns["ticket"][at, slot]
        columns["over_outcome"][at, place] = outcome
        columns["over"][at] += 1
