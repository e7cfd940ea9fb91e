"""SQLite, as a journal needs it: whole transactions that are on disk when they end, and errors in one sentence."""

import contextlib
import ctypes
import hashlib
import os
import sqlite3
import struct
from pathlib import Path

from ...errors import SessionError

ADVICE = "cx.Session.replay reads what can be read of it into a new file"
_APPLICATION, _FORMAT = 0x636F636F, 1  # "coco"


class Damaged(Exception):
    """What was read is not what was written."""


class Database:
    """One file with the tables of `schema`, or a private temporary one without a path."""

    def __init__(self, path: Path | None, schema: dict, salvage: bool):
        self.path, self._schema = path, schema
        self._process = os.getpid()
        self.uncertain = False  # whether a transaction failed of which nobody knows whether it is on disk
        self._connection = _connect(path)
        try:
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
        found = {name: sql for name, sql in run("SELECT name, sql FROM sqlite_schema") if sql is not None}
        kind = run("PRAGMA application_id").fetchone()[0], run("PRAGMA user_version").fetchone()[0]
        self.is_new = not found
        if not self.is_new and (found != self._schema or kind != (_APPLICATION, _FORMAT)):
            raise SessionError(f"{self.path} is no session of cocoax; give another path")
        if self.path is None:
            run("PRAGMA journal_mode = MEMORY")
            run("PRAGMA synchronous = OFF")
        else:
            if self.is_new:
                run("PRAGMA auto_vacuum = INCREMENTAL")
            run("PRAGMA journal_mode = WAL")
            run("PRAGMA synchronous = FULL")
        if salvage:
            return
        run("BEGIN EXCLUSIVE")
        run("COMMIT")
        if not self.is_new and run("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise SessionError(f"{self.path} is damaged; {ADVICE}")

    def run(self, statement, arguments=()):
        return self._connection.execute(statement, arguments)

    def read(self, query, *arguments):
        """Row by row; the arguments of a query stand in its order, or are one dict by name."""
        named = arguments[0] if arguments and isinstance(arguments[0], dict) else arguments
        try:
            for row in self.run(query, named):  # noqa: UP028 (it would close what is closed)
                yield row
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise Damaged(str(error)) from None

    def read_row(self, query, *arguments):
        return next(self.read(query, *arguments), None)

    def create(self):
        """Within a transaction."""
        for statement in self._schema.values():
            self.run(statement)
        self.run(f"PRAGMA application_id = {_APPLICATION}")
        self.run(f"PRAGMA user_version = {_FORMAT}")

    @contextlib.contextmanager
    def transaction(self, failed):
        """On disk when it ends; or, with an error that says what `failed`, not there, and never to come back."""
        committing = False
        try:
            self.run("BEGIN IMMEDIATE")
            yield
            committing = True
            self.run("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self.run("ROLLBACK")
            if not isinstance(error, sqlite3.Error | OSError):
                raise
            name = getattr(error, "sqlite_errorname", "")
            if committing and not name.endswith(("FULL", "WRITE")):  # those come before the commit is whole
                self._overwrite()
            again = (
                "open the session again to see" if self.uncertain else "make room or mend the disk and give it again"
            )
            raise SessionError(f"{failed}: {error}; {again}, all that was acknowledged is safe") from None

    def _overwrite(self):
        """A commit whose fsync failed may be whole in the log, and come back after a crash: put another over it."""
        try:
            self.run("BEGIN IMMEDIATE")
            self.run("UPDATE facts SET name = name")
            self.run("COMMIT")
        except sqlite3.Error:
            self.uncertain = True

    def settle(self):
        """Bring what is in the log into the file."""
        with contextlib.suppress(sqlite3.Error):
            self.run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def vacuum(self):
        with contextlib.suppress(sqlite3.Error):  # the space is used again all the same
            self.run("PRAGMA incremental_vacuum").fetchall()

    def is_mine(self) -> bool:
        """Whether this process opened it."""
        return os.getpid() == self._process

    def close(self):
        if not self.is_mine():  # in a child, to close would clear away the log that its parent writes
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            return
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()


def checksum(*parts: str | bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)
    return digest.digest()


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
    return SessionError(f"{path} is damaged ({error}); {ADVICE}")
