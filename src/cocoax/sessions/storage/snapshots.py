"""Snapshots of a journal: the state after an event, in parts, with one checksum of all of it."""

import json

from .database import Damaged, Database, Statement, checksum

_PART = 1 << 26  # bytes of a snapshot in one row
_NEWEST = "SELECT event FROM snapshots ORDER BY event DESC LIMIT 2"


def insertions(event: int, chain: bytes, notes: dict, state: bytes) -> list[Statement]:
    """The statements that store the state after an event, whose checksum is `chain`."""
    text, view = json.dumps(notes | {"chain": chain.hex()}), memoryview(state)
    row = event, text, checksum(str(event), text, state)
    parts = [(event, part, view[at : at + _PART]) for part, at in enumerate(range(0, len(state), _PART))]
    return [
        ("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", row),
        *(("INSERT OR REPLACE INTO parts VALUES (?, ?, ?)", part) for part in parts),
    ]


def deletions() -> list[Statement]:
    """The statements that drop all but the two newest."""
    return [(f"DELETE FROM {table} WHERE event NOT IN ({_NEWEST})", ()) for table in ("parts", "snapshots")]


def events(database: Database) -> list[int]:
    """The numbers of the events that snapshots were taken after, newest first."""
    return [event for (event,) in database.read(_NEWEST, longest=0)]


def size(database: Database, event: int) -> int:
    """How many bytes the state of a snapshot has, as stored."""
    query = "SELECT total(CASE typeof(data) WHEN 'blob' THEN length(data) ELSE 0 END) FROM parts WHERE event = ?"
    return int((database.read_row(query, event, longest=0) or (0,))[0])


def read(database: Database, event: int, size_of, most: int) -> tuple[dict, bytes, bytes]:
    """(notes, state, chain). Notes may have `most` characters, and states `size_of(notes)` bytes."""
    damaged = Damaged(f"the snapshot after event {event}")
    notes = "SELECT notes, checksum FROM snapshots WHERE event = ?"
    parts = "SELECT {} FROM parts WHERE event = ? ORDER BY part"
    try:
        text, recorded = database.read_row(notes, event, longest=most) or ("", b"")
        snapshot = json.loads(text)
        chain = bytes.fromhex(snapshot.pop("chain"))
        expected = size_of(snapshot)
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError, Damaged):
        raise damaged from None
    measured = parts.format("CASE typeof(data) WHEN 'blob' THEN length(data) ELSE -1 END")
    lengths = [length for (length,) in database.read(measured, event, longest=expected)]
    if min(lengths, default=0) < 0 or sum(lengths) != expected:
        raise damaged
    pieces = [data for (data,) in database.read(parts.format("data"), event, longest=expected)]
    state = b"".join(pieces)
    if recorded != checksum(str(event), text, state):
        raise damaged
    return snapshot, state, chain
