"""A session on disk: one SQLite file whose events are chained by checksums, with snapshots between them.

SQLite (WAL, full synchronous) gives whole transactions, but it trusts its file. So every snapshot has a checksum, every
event has one of itself and all events before it, and a second file counts the acknowledged events: it shows when
SQLite's log lost some because its bytes were damaged. Lengths and checksums are tested before anything is used.
"""

import contextlib
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...core.files import has_bytes, identity, links, sync_folder
from ...errors import ConflictError, SessionError
from . import facts as stored_facts
from . import snapshots
from .acknowledged import AcknowledgedCounter
from .database import Damaged, Database
from .events import Event, insertions, read_some
from .events import read as read_events

DROPPED = "dropped"  # the fact that says which events were dropped
_MOMENT = 0.002  # seconds that others wait while the past is read
_BATCH = 256  # events that a session in memory stores in one transaction
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


class _Position(NamedTuple):
    """Where a journal ends; changed by one assignment, so that no interrupt comes between."""

    stored: int = 0  # the number of the last event in the database
    chain: bytes = b""  # its checksum
    waiting: tuple[Event, ...] = ()  # of a session in memory, to be stored in one batch

    @property
    def last(self) -> int:
        return self.stored + len(self.waiting)


class Journal:
    """Events in order, facts by name, and snapshots; in a private temporary file without a path."""

    _counter: AcknowledgedCounter | None = None
    _file_id: Any = None

    def __init__(self, path: Path | None, *, salvage: bool = False):
        self.path = path
        self._forgotten = 0  # rounds up to this event were dropped
        self._position = _Position()
        if path is not None and os.path.exists(path) and not os.path.isfile(path):
            kind = "a folder" if os.path.isdir(path) else "a device, a pipe or a socket"
            raise SessionError(f"{path} is {kind}; give the path of a file")
        try:
            if path is not None and not salvage:
                self._counter = AcknowledgedCounter(path)
            self._check_file()
            self._database = Database(path, _SCHEMA, salvage)
            if self._counter is not None:  # all names are there now, and not every SQLite syncs those of its logs
                with contextlib.suppress(OSError):
                    sync_folder(self._counter.path.parent)
            self._file_id = identity(path)
        except BaseException:
            self.close()
            raise
        self.is_new = self._database.is_new

    def _check_file(self):
        """Before SQLite opens the file: it would delete the log of a lost one."""
        if self._counter is not None and links(self.path) > 1:
            raise SessionError(
                f"{self.path} has {links(self.path)} names (hard links), and a second session could open it under "
                "another one; copy it, and open the copy"
            )
        if self._counter is not None and self._counter.count and not has_bytes(self.path):
            raise SessionError(
                f"{self.path} is empty or gone, but {self._counter.path.name} counts events in it; restore it, or "
                "delete that file too to start again"
            )

    @property
    def database(self) -> Database:
        return self._database

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._position.last

    def displaced(self) -> str | None:
        """Why what is written now would be lost or spoil another's file; None if all is well."""
        if self._file_id is not None and self._file_id != identity(self.path):
            return f"{self.path} was moved or deleted while it was open; restore it and open it again"
        if self._counter is not None and not self._counter.is_mine():
            return (
                f"{self.path} was opened by another session, because the file system ignores locks or "
                f"{self._counter.path.name} was deleted; close that session and open this one again"
            )
        return None

    def _commit(self, statements, failure):
        self._database.commit(statements, failure, self.displaced)

    @property
    def counter_name(self) -> str:
        return "" if self._counter is None else self._counter.path.name

    @property
    def acknowledged_before(self) -> int | None:
        """Acknowledged events when it was opened; None if unknown, -1 if the count is damaged."""
        return None if self._counter is None else self._counter.count

    def create(self, facts: dict[str, Any], notes: dict, state: bytes):
        """Make the file, whole or not at all."""
        snapshot = [] if self.path is None else snapshots.insertions(0, b"", notes, state)
        statements = [*self._database.creation(), *stored_facts.insertions(facts), *snapshot]
        self._commit(statements, "the session was not started")
        if self.path is not None:
            self._database.checkpoint()
            self._file_id = identity(self.path)
            self.acknowledge()

    def fact(self, name) -> Any:
        return stored_facts.read(self._database, name)

    def replace_fact(self, name: str, value: Any):
        self._commit(stored_facts.insertions({name: value}, replace=True), f"the record of {name} was not changed")

    def drop_fact(self, name: str):
        self._commit([("DELETE FROM facts WHERE name = ?", (name,))], f"the record of {name} was not dropped")

    def append(self, events: list[Event], facts: dict[str, Any] | None = None):
        """Store all events in one transaction, or none and raise; with a path they are durable when this returns."""
        if self.path is None and facts is None:
            self._store_waiting(_BATCH)
            position = self._position
            self._position = position._replace(waiting=(*position.waiting, *events))
        else:
            self._store_waiting()
            self._store(events, facts or {})

    def _store_waiting(self, least=1):
        if len(self._position.waiting) >= least:
            self._store(self._position.waiting, {})

    def _store(self, events, facts):
        stored = self._position.stored
        statements, chain = insertions(events, stored, self._position.chain)
        self._commit([*stored_facts.insertions(facts), *statements], "the round was not stored")
        if (reason := self.displaced()) is not None:  # meanwhile; the other session may have seen it or not
            raise SessionError(reason)
        self._position = _Position(stored + len(events), chain)

    def acknowledge(self):
        if self._counter is not None:
            self._counter.write(self.last)

    def snapshot(self, notes: dict, state: bytes):
        """Store the state after the last event; one older snapshot is kept."""
        insertions = snapshots.insertions(self.last, self._position.chain, notes, state)
        self._commit([*insertions, *snapshots.deletions()], "the snapshot was not stored")

    def snapshots(self) -> list[int]:
        """The numbers of the events that snapshots were taken after, newest first."""
        return snapshots.events(self._database)

    def rewind(self, event: int, size_of, most: int) -> tuple[dict, bytes]:
        """Go back to a snapshot; returns (notes, state). Notes may have `most` characters, states `size_of(notes)`."""
        notes, state, chain = snapshots.read(self._database, event, size_of, most)
        self._position = _Position(event, chain)
        return notes, state

    def follow(self, size: int) -> Iterator[Event]:
        """Go forward over the stored events, each checked; no field may be longer than `size`."""
        for number, chain, event in read_events(self._database, size, self._position.stored, self._position.chain):
            self._position = _Position(number, chain)
            yield event

    def past(self, size: int, turn: Callable[[], Any] = contextlib.nullcontext) -> Iterator[Event]:
        """Every event so far that was not dropped, from the first on, all checked.

        The file is read inside `with turn()`, for a moment each time: others may use the journal between two of them.
        """
        with turn():
            self._store_waiting()
            (last, chain), end = self.dropped(), self.last
        while last < end:
            with turn():
                if self.dropped()[0] > last:
                    raise ConflictError("rounds were forgotten while they were read; ask again")
                piece = read_some(self._database, size, last, chain, _MOMENT)
            if not piece:
                raise Damaged(f"event {last + 1}")
            for number, link, event in piece[: end - last]:
                yield event
                last, chain = number, link

    def last_of(self, ticket: str) -> str | None:
        """What happened last to a ticket, if it was ever given."""
        self._store_waiting()
        query = "SELECT kind FROM events WHERE ticket = ? ORDER BY number DESC LIMIT 1"
        return (self._database.read_row(query, ticket, longest=0) or (None,))[0]

    def outcome_of(self, ticket: str | None, size: int) -> bytes | None:
        """The outcome of the last observed round, or of the one with this ticket."""
        self._store_waiting()
        which, arguments = ("", ()) if ticket is None else (" AND ticket = ?", (ticket,))
        query = f"SELECT outcome FROM events WHERE kind = 'observed'{which} ORDER BY number DESC LIMIT 1"
        return (self._database.read_row(query, *arguments, longest=size) or (None,))[0]

    def settle(self, last: int) -> bool:
        """After an interrupt: drop the events after `last`; False if the database has some of them already."""
        if self._database.uncertain:
            return False
        try:
            self._database.roll_back()
            row = self._database.read_row("SELECT number, chain FROM events ORDER BY number DESC LIMIT 1", longest=0)
            row = row or self.dropped()
        except (Damaged, sqlite3.Error):
            return False
        before, (stored, chain) = self._position, row
        waiting = before.waiting[stored - before.stored :] if stored >= before.stored else ()
        if not stored <= last <= stored + len(waiting):
            return False
        self._position = _Position(stored, chain, waiting[: last - stored])
        return True

    def forget(self, event: int):
        """Drop the data of the rounds up to that event; their outcomes stay."""
        self._store_waiting()
        drop = "UPDATE events SET round = NULL, played = NULL WHERE number > ? AND number <= ? AND round IS NOT NULL"
        self._commit([(drop, (self._forgotten, event))], "nothing was forgotten")
        self._forgotten = event
        self._free_space()

    def drop(self, event: int):
        """Drop the events up to that one, with their outcomes. Of all of them, one checksum stays."""
        self._store_waiting()
        row = self._database.read_row("SELECT chain FROM events WHERE number = ?", event, longest=0)
        if row is None or not isinstance(row[0], bytes):
            return
        fact = {DROPPED: {"event": event, "chain": row[0].hex()}}
        deletion = "DELETE FROM events WHERE number <= ?", (event,)
        self._commit([deletion, *stored_facts.insertions(fact, replace=True)], "nothing was dropped")
        self._free_space()

    def dropped(self) -> tuple[int, bytes]:
        """The number and checksum of the last event that was dropped."""
        fact = self.fact(DROPPED)
        try:
            return (0, b"") if fact is None else (int(fact["event"]), bytes.fromhex(fact["chain"]))
        except (TypeError, KeyError, ValueError):
            raise Damaged("its record of dropped events") from None

    def _free_space(self):
        if self.path is not None:
            self._database.vacuum()
            self._database.checkpoint()  # else the log keeps it

    def rewind_to_first(self):
        """Go back to before the first event that was not dropped."""
        self._position = _Position(*self.dropped())

    def __del__(self, is_finalizing=sys.is_finalizing):  # Python frees connections only when it collects garbage
        if not is_finalizing():  # at the end of the process everything closes by itself
            self.close()

    def close(self):
        """May be called again, if an interrupt came between."""
        database, counter = getattr(self, "_database", None), self._counter
        if database is not None and self._is_displaced():
            database.abandon()
        elif database is not None:
            database.close()
        if counter is not None and (database is None or database.process == os.getpid()):
            counter.close()
            self._counter = None

    def _is_displaced(self):
        return self._file_id is not None and self._counter is not None and self.displaced() is not None
