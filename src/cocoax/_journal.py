"""A session on disk: one SQLite file whose events are chained by checksums, with snapshots between them.

SQLite (WAL, full synchronous) gives whole transactions and one writer. It trusts its file: every event and snapshot
therefore carries a checksum of its own, events those of all events before, and a second small file the number of events
that were acknowledged, so that what the log of SQLite loses when its bytes are damaged is missed.
Nothing that is read is believed before its length and its checksum are.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import sqlite3
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .errors import SessionError

_APPLICATION, _FORMAT = 0x636F636F, 1  # "coco"
_PART = 1 << 26  # bytes of a snapshot in one row
_MOST_TEXT = 1 << 22
_SCHEMA = {
    "facts": "CREATE TABLE facts(name TEXT PRIMARY KEY, value TEXT, checksum BLOB)",
    "events": (
        "CREATE TABLE events(number INTEGER PRIMARY KEY, kind TEXT, ticket TEXT, round BLOB, played BLOB, "
        "outcome BLOB, contents BLOB, chain BLOB)"
    ),
    "snapshots": "CREATE TABLE snapshots(event INTEGER PRIMARY KEY, notes TEXT, checksum BLOB)",
    "parts": "CREATE TABLE parts(event INTEGER, part INTEGER, data BLOB, PRIMARY KEY (event, part))",
}
_INDICES = {"sqlite_autoindex_facts_1": None, "sqlite_autoindex_parts_1": None}  # which SQLite makes of its own

DECIDED, OBSERVED, SKIPPED = "decided", "observed", "skipped"


class Event(NamedTuple):
    """What happened: a ticket was given, observed or skipped. `round` is None once it was forgotten."""

    kind: str
    ticket: str | None
    round: bytes | None
    played: bytes | None
    outcome: bytes | None  # with the next decision's checksum: what a replay must come to


class Damaged(Exception):
    """What was read is not what was written."""


class Journal:
    """Events in order, facts by name, and snapshots; in a private temporary file without a path."""

    def __init__(self, path: Path | None, *, must_exist: bool = False, salvage: bool = False):
        if must_exist and not (path and path.is_file()):
            raise SessionError(f"there is no session in {path}")
        self.path = path
        self._process = os.getpid()
        self._forgotten = 0  # up to which event
        self._salvage = salvage  # read as far as it goes
        self.last = 0  # the number of the last event
        self.chain = b""
        self._acknowledged = None
        self.acknowledged_before = None if path is None else _read_count(self.count_path)
        if self.acknowledged_before and not _has_bytes(path):  # before SQLite clears its log away
            raise SessionError(
                f"{path} is empty or gone, but {self.count_path.name} knows of events in it; bring it back, or delete "
                "that file too to begin anew"
            )
        self._connection = _connect(path)
        try:
            self._prepare()
        except sqlite3.Error as error:
            self.close()
            raise _unreadable(path, error) from None
        except BaseException:
            self.close()
            raise

    def _prepare(self):
        run = self._connection.execute
        run("PRAGMA trusted_schema = OFF")
        run("PRAGMA cell_size_check = ON")
        run("PRAGMA locking_mode = EXCLUSIVE")
        if self.path is None:
            run("PRAGMA journal_mode = MEMORY")
            run("PRAGMA synchronous = OFF")
        else:
            run("PRAGMA auto_vacuum = INCREMENTAL")
            run("PRAGMA journal_mode = WAL")
            run("PRAGMA synchronous = FULL")
        run("BEGIN EXCLUSIVE")
        run("COMMIT")
        schema = dict(run("SELECT name, sql FROM sqlite_schema"))
        self.is_new = not schema
        if not self.is_new:
            kind = run("PRAGMA application_id").fetchone()[0], run("PRAGMA user_version").fetchone()[0]
            if schema != _SCHEMA | _INDICES or kind != (_APPLICATION, _FORMAT):
                raise SessionError(f"{self.path} is no session of cocoax; give another path")
            if not self._salvage and run("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise SessionError(f"{self.path} is damaged; {_ADVICE}")

    @property
    def count_path(self) -> Path:
        """The second file."""
        path = self.path or Path("none")
        return path.with_name(path.name + "-acknowledged")

    def create(self, facts: dict[str, Any], notes: dict, state: bytes):
        """The file, whole or not at all."""
        with self._transaction("the session was not begun"):
            run = self._connection.execute
            for statement in _SCHEMA.values():
                run(statement)
            run(f"PRAGMA application_id = {_APPLICATION}")
            run(f"PRAGMA user_version = {_FORMAT}")
            for name, value in facts.items():
                self._write_fact(name, value)
            if self.path is not None:
                self._write_snapshot(notes, state)
        if self.path is not None:
            _sync_folder(self.path.parent)
            self.acknowledge()

    def fact(self, name) -> Any:
        row = self._read_row(
            "SELECT CASE WHEN length(value) <= ? THEN value END, checksum FROM facts WHERE name = ?", _MOST_TEXT, name
        )
        if row is None:
            return None
        value, checksum = row
        if not isinstance(value, str) or checksum != _checksum(name, value):
            raise Damaged(f"what is known of {name}")
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise Damaged(f"what is known of {name}") from None

    def append(self, events: Iterable[Event], facts: dict[str, Any] | None = None):
        """All of them, durable when this returns, or none of them and an error."""
        last, chain = self.last, self.chain
        with self._transaction("the round was not stored"):
            for name, value in (facts or {}).items():
                self._write_fact(name, value)
            for event in events:
                contents = _checksum(event.round or b"", event.played or b"")
                last += 1
                chain = _link(chain, last, event, contents)
                self._connection.execute(
                    "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (last, *event, contents, chain)
                )
        self.last, self.chain = last, chain

    def acknowledge(self):
        """Tell the second file; it need not be forced to disk, for after a power cut it can only know too little."""
        if self.path is None:
            return
        if self._acknowledged is None:
            self._acknowledged = _open_count(self.count_path, os.O_RDWR | os.O_CREAT)
        count = struct.pack("<Q", self.last)
        with contextlib.suppress(OSError):  # it is a witness, and the round is safe without
            os.pwrite(self._acknowledged, count + _checksum(count), 0)

    def snapshot(self, notes: dict, state: bytes):
        """The state after the last event; of older ones the newest is kept."""
        with self._transaction("the snapshot was not stored"):
            self._write_snapshot(notes, state)
            kept = "SELECT event FROM snapshots ORDER BY event DESC LIMIT 2"
            self._connection.execute(f"DELETE FROM parts WHERE event NOT IN ({kept})")
            self._connection.execute(f"DELETE FROM snapshots WHERE event NOT IN ({kept})")

    def _write_snapshot(self, notes, state):
        text = json.dumps(notes | {"chain": self.chain.hex()})
        self._connection.execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)",
            (self.last, text, _checksum(str(self.last), text, state)),
        )
        for part, at in enumerate(range(0, len(state), _PART)):
            self._connection.execute(
                "INSERT OR REPLACE INTO parts VALUES (?, ?, ?)", (self.last, part, state[at : at + _PART])
            )

    def snapshots(self) -> list[int]:
        """The events that they were taken after, newest first."""
        return [event for (event,) in self._read("SELECT event FROM snapshots ORDER BY event DESC LIMIT 2")]

    def rewind(self, event: int, size_of) -> tuple[dict, bytes]:
        """(notes, state) of a snapshot whose state has the size that its notes promise; events are read from there."""
        damaged = Damaged(f"the snapshot after event {event}")
        notes = "SELECT CASE WHEN length(notes) <= ? THEN notes END, checksum FROM snapshots WHERE event = ?"
        parts = "SELECT {} FROM parts WHERE event = ? ORDER BY part"
        text, checksum = self._read_row(notes, _MOST_TEXT, event) or ("", b"")
        try:
            found = json.loads(text)
            chain = bytes.fromhex(found.pop("chain"))
            size = size_of(found)
        except (TypeError, ValueError, AttributeError, KeyError, RecursionError):
            raise damaged from None
        lengths = [n if isinstance(n, int) else -1 for (n,) in self._read(parts.format("length(data)"), event)]
        if min(lengths, default=0) < 0 or sum(lengths) != size:
            raise damaged
        pieces = [data for (data,) in self._read(parts.format("data"), event)]
        if not all(isinstance(data, bytes) for data in pieces):
            raise damaged
        state = b"".join(pieces)
        if checksum != _checksum(str(event), text, state):
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
        count = 0
        for count, _, event in self._events(size, 0, b""):  # noqa: B007
            if event.kind == OBSERVED:
                yield event
        if count != self.last:
            raise Damaged(f"event {count + 1}")

    def _events(self, size, last, chain) -> Iterator[tuple[int, bytes, Event]]:
        data = ", ".join(f"iif(length({name}) > ?1, 'too long', {name})" for name in ("round", "played", "outcome"))
        query = (
            f"SELECT number, substr(kind, 1, 1000), substr(ticket, 1, 1000), {data}, substr(contents, 1, 100), "
            "substr(chain, 1, 100) FROM events WHERE number > ?2 ORDER BY number"
        )
        for number, kind, ticket, round, played, outcome, contents, link in self._read(query, size, last):
            event = Event(kind, ticket, round, played, outcome)
            good = number == last + 1 and isinstance(link, bytes) and link == _link(chain, number, event, contents)
            if good and (round is not None or played is not None):
                good = contents == _checksum(round or b"", played or b"")
            if not good:
                raise Damaged(f"event {last + 1}")
            last, chain = number, link
            yield number, link, event

    def stored(self) -> int:
        """The number of the last event, by the file; -1 if it cannot be read."""
        try:
            return (self._read_row("SELECT max(number) FROM events") or (0,))[0] or 0
        except Damaged:
            return -1

    def forget(self, event: int):
        """Drop the data of the rounds up to that event; what they came to stays."""
        with self._transaction("nothing was forgotten"):
            self._connection.execute(
                "UPDATE events SET round = NULL, played = NULL WHERE number > ? AND number <= ? AND round IS NOT NULL",
                (self._forgotten, event),
            )
        self._forgotten = event
        if self.path is not None:
            with contextlib.suppress(sqlite3.Error):  # the space is used again all the same
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()

    def __del__(self):  # Python frees connections only when it collects garbage
        if hasattr(self, "_connection"):
            self.close()

    def close(self):
        if os.getpid() != self._process:  # in a child, to close would clear away the log that its parent writes
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            return
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        if self._acknowledged is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._acknowledged)
                os.close(self._acknowledged)
            self._acknowledged = None

    def _write_fact(self, name, value):
        text = json.dumps(value, sort_keys=True)
        self._connection.execute("INSERT INTO facts VALUES (?, ?, ?)", (name, text, _checksum(name, text)))

    def _read(self, query, *arguments):
        try:
            for row in self._connection.execute(query, arguments):  # noqa: UP028 (it would close what is closed)
                yield row
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise Damaged(str(error)) from None

    def _read_row(self, query, *arguments):
        return next(self._read(query, *arguments), None)

    @contextlib.contextmanager
    def _transaction(self, failed):
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error | OSError):
                raise SessionError(
                    f"{failed}: {error}; make room or mend the disk and give it again, all that was acknowledged is "
                    "safe"
                ) from None
            raise


_ADVICE = "cx.Session.replay reads what can be read of it into a new file"


def _connect(path):
    try:
        return sqlite3.connect(
            "" if path is None else path, timeout=0, isolation_level=None, check_same_thread=False, uri=False
        )
    except sqlite3.Error as error:
        raise SessionError(f"cannot open {path}: {error}; give a file in a folder that can be written") from None


def _unreadable(path, error) -> SessionError:
    if "locked" in str(error) or "busy" in str(error):
        return SessionError(f"{path} is open in another session; close that one first")
    if "not a database" in str(error):
        return SessionError(f"{path} is no session of cocoax, or damaged from its first bytes on; give another path")
    if "readonly" in str(error) or "unable to open" in str(error):
        return SessionError(f"cannot write {path}: {error}; give a file that can be written")
    return SessionError(f"{path} is damaged ({error}); {_ADVICE}")


def _checksum(*parts: str | bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)
    return digest.digest()


def _link(chain, number, event: Event, contents) -> bytes | None:
    """The checksum of an event and of all before it."""
    texts, data = event[:2], event[2:]
    if not all(isinstance(text, str | None) for text in texts) or not isinstance(contents, bytes):
        return None
    if not all(isinstance(each, bytes | None) for each in data):
        return None
    return _checksum(chain, str(number), repr(texts), event.outcome or b"", contents)


def _read_count(path) -> int | None:
    """How many events were acknowledged; None without the file, -1 where it is damaged."""
    if not os.path.lexists(path):
        return None
    descriptor = _open_count(path, os.O_RDONLY)
    try:
        data = os.read(descriptor, 64)
    finally:
        os.close(descriptor)
    if len(data) != 24 or data[8:] != _checksum(data[:8]):
        return -1
    return struct.unpack("<Q", data[:8])[0]


def _open_count(path, flags) -> int:
    """A plain file: a link could lead to a file of another's, and a pipe would be waited for."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        reason = "not a plain file"
    except OSError as error:
        reason = error.strerror
    raise SessionError(f"cannot use {path}: {reason}; move it out of the way")


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
