"""A session on disk: one SQLite file whose events are chained by checksums, with snapshots between them.

SQLite (WAL, full synchronous) gives whole transactions. It trusts its file: every event and snapshot therefore carries
a checksum of its own, events those of all events before, and the witness knows how many events were acknowledged, so
that what SQLite's log loses when its bytes are damaged is missed.
Nothing that is read is believed before its length and its checksum are.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...core.files import has_bytes, identity, sync_folder
from ...errors import SessionError
from . import events as events_in
from .acknowledged import Witness
from .database import Damaged, Database, checksum
from .events import OBSERVED, Event

_PART = 1 << 26  # bytes of a snapshot in one row
_MOST_TEXT = 1 << 22
_TOGETHER = 256  # events in one transaction, where none can be lost
_SCHEMA = {
    "facts": "CREATE TABLE facts(name TEXT PRIMARY KEY, value TEXT, checksum BLOB)",
    "events": (
        "CREATE TABLE events(number INTEGER PRIMARY KEY, kind TEXT, ticket TEXT, round BLOB, played BLOB, "
        "outcome BLOB, contents BLOB, chain BLOB)"
    ),
    "tickets": "CREATE INDEX tickets ON events(ticket) WHERE ticket IS NOT NULL",
    "snapshots": "CREATE TABLE snapshots(event INTEGER PRIMARY KEY, notes TEXT, checksum BLOB)",
    "parts": "CREATE TABLE parts(event INTEGER, part INTEGER, data BLOB, PRIMARY KEY (event, part))",
}


class Journal:
    """Events in order, facts by name, and snapshots; in a private temporary file without a path."""

    def __init__(self, path: Path | None, *, salvage: bool = False):
        self.path = path
        self._forgotten = 0  # up to which event
        self._stored, self.chain = 0, b""  # the number of the last event in the database, and its checksum
        self._waiting: list[Event] = []  # without a path: to be stored together
        self._witness = None if path is None or salvage else Witness(path)
        try:
            self._check_there()
            self._database = Database(path, _SCHEMA, salvage)
        except BaseException:
            self.close()
            raise
        self.is_new = self._database.is_new
        self._identity = identity(path)

    def _check_there(self):
        """Before SQLite clears the log of a lost file away."""
        if self._witness is not None and self._witness.count and not has_bytes(self.path):
            raise SessionError(
                f"{self.path} is empty or gone, but {self._witness.path.name} knows of events in it; bring it back, or "
                "delete that file too to begin anew"
            )

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._stored + len(self._waiting)

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that is written."""
        return self._identity == identity(self.path)

    @property
    def witness_name(self) -> str:
        return "" if self._witness is None else self._witness.path.name

    @property
    def acknowledged_before(self) -> int | None:
        """How many events were acknowledged when it was opened; None if nobody knows, -1 if that is damaged."""
        return None if self._witness is None else self._witness.count

    def create(self, facts: dict[str, Any], notes: dict, state: bytes):
        """The file, whole or not at all."""
        with self._database.transaction("the session was not begun"):
            self._database.create()
            for name, value in facts.items():
                self._write_fact(name, value)
            if self.path is not None:
                self._write_snapshot(notes, state)
        if self.path is not None:
            self._database.settle()
            with contextlib.suppress(OSError):
                sync_folder(self.path.parent)
            self._identity = identity(self.path)
            self.acknowledge()

    def fact(self, name) -> Any:
        row = self._database.read_row(
            "SELECT CASE WHEN length(value) <= ? THEN value END, checksum FROM facts WHERE name = ?", _MOST_TEXT, name
        )
        if row is None:
            return None
        value, recorded = row
        if not isinstance(value, str) or recorded != checksum(name, value):
            raise Damaged(f"what is known of {name}")
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise Damaged(f"what is known of {name}") from None

    def append(self, events: Iterable[Event], facts: dict[str, Any] | None = None):
        """All of them, durable when this returns (where there is a path), or none of them and an error."""
        if self.path is None and facts is None:
            self._store_waiting(_TOGETHER)
            self._waiting.extend(list(events))  # none of them if one is refused
        else:
            self._store_waiting()
            self._store(events, facts or {})

    def _store_waiting(self, least=1):
        if len(self._waiting) >= least:
            self._store(self._waiting, {})
            self._waiting = []

    def _store(self, events, facts):
        last, chain = self._stored, self.chain
        with self._database.transaction("the round was not stored"):
            for name, value in facts.items():
                self._write_fact(name, value)
            for event in events:
                last += 1
                chain = events_in.write(self._database, last, chain, event)
        self._stored, self.chain = last, chain

    def acknowledge(self):
        if self._witness is not None:
            self._witness.write(self.last)

    def snapshot(self, notes: dict, state: bytes):
        """The state after the last event; of older ones the newest is kept."""
        with self._database.transaction("the snapshot was not stored"):
            self._write_snapshot(notes, state)
            kept = "SELECT event FROM snapshots ORDER BY event DESC LIMIT 2"
            self._database.run(f"DELETE FROM parts WHERE event NOT IN ({kept})")
            self._database.run(f"DELETE FROM snapshots WHERE event NOT IN ({kept})")

    def _write_snapshot(self, notes, state):
        text = json.dumps(notes | {"chain": self.chain.hex()})
        self._database.run(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)",
            (self.last, text, checksum(str(self.last), text, state)),
        )
        for part, at in enumerate(range(0, len(state), _PART)):
            self._database.run(
                "INSERT OR REPLACE INTO parts VALUES (?, ?, ?)", (self.last, part, state[at : at + _PART])
            )

    def snapshots(self) -> list[int]:
        """The events that they were taken after, newest first."""
        return [event for (event,) in self._database.read("SELECT event FROM snapshots ORDER BY event DESC LIMIT 2")]

    def rewind(self, event: int, size_of, most: int) -> tuple[dict, bytes]:
        """(notes, state) of a snapshot; notes are at most so long, and the state has the size that they promise."""
        damaged = Damaged(f"the snapshot after event {event}")
        notes = "SELECT CASE WHEN length(notes) <= ? THEN notes END, checksum FROM snapshots WHERE event = ?"
        parts = "SELECT {} FROM parts WHERE event = ? ORDER BY part"
        text, recorded = self._database.read_row(notes, most, event) or ("", b"")
        try:
            found = json.loads(text)
            chain = bytes.fromhex(found.pop("chain"))
            size = size_of(found)
        except (TypeError, ValueError, AttributeError, KeyError, RecursionError):
            raise damaged from None
        lengths = [n if isinstance(n, int) else -1 for (n,) in self._database.read(parts.format("length(data)"), event)]
        if min(lengths, default=0) < 0 or sum(lengths) != size:
            raise damaged
        pieces = [data for (data,) in self._database.read(parts.format("data"), event)]
        if not all(isinstance(data, bytes) for data in pieces):
            raise damaged
        state = b"".join(pieces)
        if recorded != checksum(str(event), text, state):
            raise damaged
        self._stored, self.chain = event, chain
        return found, state

    def follow(self, size: int) -> Iterator[Event]:
        """The events after the last one known, each checked; `size` is the most that a round may take."""
        for number, chain, event in events_in.read(self._database, size, self._stored, self.chain):
            self._stored, self.chain = number, chain
            yield event

    def observed(self, size: int) -> Iterator[Event]:
        """Every round that was observed, all checked from the first event on."""
        self._store_waiting()
        last = 0
        for number, _, event in events_in.read(self._database, size):
            last = number
            if event.kind == OBSERVED:
                yield event
        if last != self.last:
            raise Damaged(f"event {last + 1}")

    def last_of(self, ticket: str) -> str | None:
        """What happened last to a ticket, if it was ever given."""
        self._store_waiting()
        query = "SELECT substr(kind, 1, 100) FROM events WHERE ticket = ? ORDER BY number DESC LIMIT 1"
        return (self._database.read_row(query, ticket) or (None,))[0]

    def take_back(self, last: int) -> bool:
        """Forget events after this one that are not in the database; whether there are none in there."""
        del self._waiting[max(last - self._stored, 0) :]
        if self._database.uncertain:
            return False
        try:
            stored = (self._database.read_row("SELECT max(number) FROM events") or (0,))[0] or 0
        except Damaged:
            return False
        return stored + len(self._waiting) == last

    def forget(self, event: int):
        """Drop the data of the rounds up to that event; what they came to stays."""
        self._store_waiting()
        with self._database.transaction("nothing was forgotten"):
            self._database.run(
                "UPDATE events SET round = NULL, played = NULL WHERE number > ? AND number <= ? AND round IS NOT NULL",
                (self._forgotten, event),
            )
        self._forgotten = event
        if self.path is not None:
            self._database.vacuum()

    def __del__(self):  # Python frees connections only when it collects garbage
        self.close()

    def close(self):
        database, witness = getattr(self, "_database", None), getattr(self, "_witness", None)
        if database is not None:
            database.close()
        if witness is not None and (database is None or database.is_mine()):
            witness.close()
            self._witness = None

    def _write_fact(self, name, value):
        text = json.dumps(value, sort_keys=True)
        self._database.run("INSERT INTO facts VALUES (?, ?, ?)", (name, text, checksum(name, text)))
