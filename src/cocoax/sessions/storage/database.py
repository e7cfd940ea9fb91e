"""The SQLite database of a journal: whole transactions that are on disk when they return, errors in one sentence."""

import contextlib
import hashlib
import os
import sqlite3
import struct
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from ...errors import SessionError, StorageError

ADVICE = "cx.Session.replay reads what can be read of it into a new file"
_SHORTEST, _LONGEST = 1 << 12, 10**9  # bytes: for names, checksums and SQLite's own schema; its own limit
_APPLICATION, _FORMAT = 0x636F636F, 1  # "coco"

Statement = tuple[str, tuple]  # SQL and its arguments


class Damaged(Exception):
    """What was read is not what was written."""


class Database:
    """One file with the tables of `schema`, or a private temporary one without a path."""

    def __init__(self, path: Path | None, schema: dict, salvage: bool):
        self.path, self._schema = path, schema
        self.process = os.getpid()
        self.is_mine = True  # False in a child process, or if another session has the files
        self.uncertain = False  # a transaction failed, and it is not known whether it is on disk
        self._connection = _connect(path)
        try:
            _open_databases.add(self)
            self._prepare(salvage)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self.close()
            raise _unreadable(path, error) from None
        except BaseException:
            self.close()
            raise

    def _prepare(self, salvage):
        run = self.run
        run("PRAGMA trusted_schema = OFF")
        run("PRAGMA cell_size_check = ON")
        run("PRAGMA locking_mode = EXCLUSIVE")
        tables = {name: sql for name, sql in run("SELECT name, sql FROM sqlite_schema") if sql is not None}
        kind = run("PRAGMA application_id").fetchone()[0], run("PRAGMA user_version").fetchone()[0]
        self.is_new = not tables
        if not self.is_new and (tables != self._schema or kind != (_APPLICATION, _FORMAT)):
            raise SessionError(f"{self.path} is not a session of cocoax; give another path")
        if self.path is None:
            run("PRAGMA journal_mode = MEMORY")
            run("PRAGMA synchronous = OFF")
        else:
            if self.is_new:
                run("PRAGMA auto_vacuum = INCREMENTAL")
            run("PRAGMA journal_mode = WAL")
            run("PRAGMA synchronous = FULL")
            run("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
        if salvage:
            return
        run("BEGIN EXCLUSIVE")
        if not self.is_new:
            run("UPDATE facts SET name = name WHERE FALSE")  # fails if SQLite takes the file for one it may only read
        run("COMMIT")
        if not self.is_new and run("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise SessionError(f"{self.path} is damaged; {ADVICE}")

    def run(self, statement, arguments=()):
        return self._connection.execute(statement, arguments)

    def read(self, query, *arguments, longest: int):
        """Yield rows; no field may be longer than so many bytes, and a longer one is not even read.

        SQLite's `length` would not help: it counts the characters of a text before the first NUL.
        """
        most = self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(longest, _SHORTEST), _LONGEST))
        try:
            for row in self.run(query, arguments):  # noqa: UP028 (`yield from` would close a closed cursor)
                yield row
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise Damaged(str(error)) from None
        finally:
            with contextlib.suppress(sqlite3.Error):
                self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)

    def read_row(self, query, *arguments, longest: int):
        rows = list(self.read(query, *arguments, longest=longest))
        return rows[0] if rows else None

    def creation(self) -> list[Statement]:
        """The statements that make a new file."""
        pragmas = f"PRAGMA application_id = {_APPLICATION}", f"PRAGMA user_version = {_FORMAT}"
        return [(statement, ()) for statement in (*self._schema.values(), *pragmas)]

    def commit(self, statements: Iterable[Statement], failure: str, displaced: Callable[[], str | None]):
        """One transaction. It is on disk when this returns; else it never comes back, and the error says `failure`.

        Not if `displaced()` then says why the file is not this session's any more.
        """
        committing = False
        try:
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)  # an interrupt may have left another
            self.roll_back()  # what an interrupt left open
            self.run("BEGIN IMMEDIATE")
            for statement, arguments in statements:
                self.run(statement, arguments)
            if (reason := displaced()) is not None:
                raise StorageError(reason)
            committing = True
            self.run("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                self.roll_back()
            if not isinstance(error, sqlite3.Error | OSError):
                raise
            name = getattr(error, "sqlite_errorname", "")
            if committing and not name.endswith(("FULL", "WRITE")):  # these happen before the commit is complete
                self._overwrite()
            advice = (
                "open the session again to see" if self.uncertain else "free space or repair the disk and give it again"
            )
            raise StorageError(f"{failure}: {error}; {advice}, all acknowledged rounds are safe") from None

    def roll_back(self):
        if self._connection.in_transaction:
            self.run("ROLLBACK")

    def _overwrite(self):
        """After a failed fsync the log may hold the whole commit, and a crash would bring it back: overwrite it."""
        try:
            self.run("BEGIN IMMEDIATE")
            self.run("UPDATE facts SET name = name")
            self.run("COMMIT")
        except sqlite3.Error:
            self.uncertain = True

    def checkpoint(self):
        """Move the content of the log into the file."""
        with contextlib.suppress(sqlite3.Error):
            self.run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def vacuum(self):
        with contextlib.suppress(sqlite3.Error):  # SQLite reuses the space in any case
            self.run("PRAGMA incremental_vacuum").fetchall()

    def compact(self):
        """Write the file anew, without free pages."""
        try:
            self.run("VACUUM")
        except sqlite3.Error as error:
            raise StorageError(f"{self.path} was not compacted: {error}; free space and try again") from None
        self.checkpoint()

    def free_bytes(self) -> int:
        """In pages that hold nothing."""
        (pages,), (size,) = (self.run(f"PRAGMA {name}").fetchone() for name in ("freelist_count", "page_size"))
        return pages * size

    def check_pages(self):
        """Raise if SQLite finds damage in any page."""
        try:
            said = self.run("PRAGMA integrity_check(1)").fetchone()[0]
        except sqlite3.Error as error:
            said = str(error)
        if said != "ok":
            raise Damaged(str(said).splitlines()[-1])

    def abandon(self):
        """Never touch the files again: closing would write into them and delete the log of their new owner."""
        if self.is_mine:
            self.is_mine = False
            _keep_for_ever(self._connection)

    def close(self):
        if self.is_mine:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()


def checksum(*parts: str | bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)
    return digest.digest()


_open_databases: weakref.WeakSet[Database] = weakref.WeakSet()


def _keep_connections_of_parent():
    """In a child process: SQLite would delete the log that the parent still writes."""
    for database in _open_databases:
        database.abandon()


def _keep_for_ever(connection):
    """The garbage collector does not look into arrays: one that holds itself lives longer than the interpreter. (From
    Python 3.12 on, `Connection.setconfig` could tell SQLite to keep the log.)"""
    cycle = np.empty(2, object)
    cycle[0], cycle[1] = cycle, connection


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_keep_connections_of_parent)


def _connect(path):
    try:
        return sqlite3.connect(
            "" if path is None else path, timeout=0, isolation_level=None, check_same_thread=False, uri=False
        )
    except sqlite3.Error as error:
        raise SessionError(f"cannot open {path}: {error}; give a file in a writable folder") from None


def _unreadable(path, error) -> SessionError:
    if "locked" in str(error) or "busy" in str(error):
        return SessionError(f"{path} is open in another session; close that one first")
    if "not a database" in str(error):
        return SessionError(f"{path} is not a session of cocoax, or its first bytes are damaged; give another path")
    if "readonly" in str(error) or "unable to open" in str(error):
        return SessionError(f"cannot write {path}: {error}; give a writable file")
    return SessionError(f"{path} is damaged ({error}); {ADVICE}")
