"""A session on disk: one SQLite file whose events are chained by checksums, with snapshots between them.

SQLite (WAL, full synchronous) gives whole transactions. It trusts its file: every event and snapshot therefore carries
a checksum of its own, events those of all events before, and the witness knows how many events were acknowledged, so
that what SQLite's log loses when its bytes are damaged is missed.
Nothing that is read is believed before its length and its checksum are.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ._database import Damaged, Database, checksum
from ._witness import Witness
from .errors import SessionError

_PART = 1 << 26  # bytes of a snapshot in one row
_MOST_TEXT = 1 << 22
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

DECIDED, OBSERVED, SKIPPED = "decided", "observed", "skipped"


class Event(NamedTuple):
    """What happened: a ticket was given, observed or skipped. `round` is None once it was forgotten."""

    kind: str
    ticket: str | None
    round: bytes | None
    played: bytes | None
    outcome: bytes | None  # with the next state's checksum: what a replay must come to


class Journal:
    """Events in order, facts by name, and snapshots; in a private temporary file without a path."""

    def __init__(self, path: Path | None, *, salvage: bool = False):
        self.path = path
        self._forgotten = 0  # up to which event
        self.last = 0  # the number of the last event
        self.chain = b""
        self._witness = None if path is None or salvage else Witness(path)
        try:
            self._check_there()
            self._database = Database(path, _SCHEMA, salvage)
        except BaseException:
            self.close()
            raise
        self.is_new = self._database.is_new
        self._identity = _identity(path)

    def _check_there(self):
        """Before SQLite clears the log of a lost file away."""
        if self._witness is not None and self._witness.count and not _has_bytes(self.path):
            raise SessionError(
                f"{self.path} is empty or gone, but {self._witness.path.name} knows of events in it; bring it back, or "
                "delete that file too to begin anew"
            )

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that is written."""
        return self._identity == _identity(self.path)

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
            _sync_folder(self.path.parent)
            self._identity = _identity(self.path)
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
        """All of them, durable when this returns, or none of them and an error."""
        last, chain = self.last, self.chain
        with self._database.transaction("the round was not stored"):
            for name, value in (facts or {}).items():
                self._write_fact(name, value)
            for event in events:
                contents = checksum(event.round or b"", event.played or b"")
                last += 1
                chain = _link(chain, last, event, contents) or b""
                self._database.run(
                    "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (last, *event, contents, chain)
                )
        self.last, self.chain = last, chain

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
        self.last, self.chain = event, chain
        return found, state

    def follow(self, size: int) -> Iterator[Event]:
        """The events after the last one known, each checked; `size` is the most that a round may take."""
        for number, chain, event in self._events(size, self.last, self.chain):
            self.last, self.chain = number, chain
            yield event

    def observed(self, size: int) -> Iterator[Event]:
        """Every round that was observed, all checked from the first event on."""
        last = 0
        for number, _, event in self._events(size, 0, b""):
            last = number
            if event.kind == OBSERVED:
                yield event
        if last != self.last:
            raise Damaged(f"event {last + 1}")

    def _events(self, size, last, chain) -> Iterator[tuple[int, bytes, Event]]:
        data = ", ".join(f"iif(length({name}) > :size, 'too long', {name})" for name in ("round", "played", "outcome"))
        query = (
            f"SELECT number, substr(kind, 1, 1000), substr(ticket, 1, 1000), {data}, substr(contents, 1, 100), "
            "substr(chain, 1, 100) FROM events WHERE number > :last ORDER BY number"
        )
        for number, kind, ticket, round, played, outcome, contents, link in self._database.read(
            query, {"size": size, "last": last}
        ):
            event = Event(kind, ticket, round, played, outcome)
            good = number == last + 1 and isinstance(link, bytes) and link == _link(chain, number, event, contents)
            if good and (round is not None or played is not None):
                good = contents == checksum(round or b"", played or b"")
            if not good:
                raise Damaged(f"event {last + 1}")
            last, chain = number, link
            yield number, link, event

    def last_of(self, ticket: str) -> str | None:
        """What happened last to a ticket, if it was ever given."""
        query = "SELECT substr(kind, 1, 100) FROM events WHERE ticket = ? ORDER BY number DESC LIMIT 1"
        return (self._database.read_row(query, ticket) or (None,))[0]

    def stored(self) -> int:
        """The number of the last event, by the file; -1 if that cannot be told."""
        if self._database.uncertain:
            return -1
        try:
            return (self._database.read_row("SELECT max(number) FROM events") or (0,))[0] or 0
        except Damaged:
            return -1

    def forget(self, event: int):
        """Drop the data of the rounds up to that event; what they came to stays."""
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


def _link(chain, number, event: Event, contents) -> bytes | None:
    """The checksum of an event and of all before it."""
    texts, data = event[:2], event[2:]
    if not all(isinstance(text, str | None) for text in texts) or not isinstance(contents, bytes):
        return None
    if not all(isinstance(each, bytes | None) for each in data):
        return None
    return checksum(chain, str(number), json.dumps(texts), event.outcome or b"", contents)


def _identity(path) -> tuple | None:
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _has_bytes(path) -> bool:
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _sync_folder(folder):
    with contextlib.suppress(OSError):  # where folders cannot be opened
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
