"""Power cuts without cutting power: record what SQLite writes, then rebuild every disk that a cut may leave.

A disk keeps what was synced. Of what was written since, it may keep all, nothing, or any sectors of 512 bytes; a name
that was made or deleted since may be there or not.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from unittest import mock

import apsw
import numpy as np

from cocoax.core.files import sync_folder
from cocoax.sessions.storage import acknowledged, database, journal

SECTOR = 512
WAYS = "lost", "kept", "writes", "sectors"  # what becomes of what was not synced


class Log(list):
    """`fails` is asked (what, file) before every call, and may raise what `failure` makes.

    Rows (what, file, ...): "create", "write" (place, data), "truncate" (size), "sync", "delete"; "folder", which makes
    names durable; and marks of the test. SQLite syncs the folder of its new files, but can be compiled not to: it is
    relied on while a session is made, when nothing was acknowledged, and not later."""

    def fails(self, what, file):
        pass

    def mark(self, **facts):
        self.append(("mark", None, facts))


def failure(kind, what):
    """The error of a full disk, or of a broken one."""
    if kind == "ENOSPC":
        return apsw.FullError("database or disk is full")
    error = apsw.IOError("disk I/O error")
    error.extendedresult = {  # pyright: ignore[reportAttributeAccessIssue]
        "write": apsw.SQLITE_IOERR_WRITE,
        "sync": apsw.SQLITE_IOERR_FSYNC,
    }.get(what, apsw.SQLITE_IOERR_TRUNCATE)
    return error


class _File(apsw.VFSFile):
    def __init__(self, log, name, flags):
        self._log = log
        self._name = os.path.basename(name.filename() if isinstance(name, apsw.URIFilename) else name)
        is_new = not os.path.exists(name.filename() if isinstance(name, apsw.URIFilename) else name)
        self._syncs_folder = bool(flags[0] & apsw.SQLITE_OPEN_MAIN_JOURNAL)
        super().__init__("", name, flags)
        if is_new:
            log.append(("create", self._name))

    def xWrite(self, data, offset):
        self._log.fails("write", self._name)
        super().xWrite(data, offset)
        self._log.append(("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize):
        self._log.fails("truncate", self._name)
        super().xTruncate(newsize)
        self._log.append(("truncate", self._name, newsize))

    def xSync(self, flags):
        self._log.fails("sync", self._name)
        super().xSync(flags)
        self._log.append(("sync", self._name))
        if self._syncs_folder:
            self._log.append(("folder", self._name))
            self._syncs_folder = False


class _Disk(apsw.VFS):
    def __init__(self, log):
        self._log = log
        super().__init__("recording", "")

    def xOpen(self, name, flags):
        return _File(self._log, name, flags)

    def xDelete(self, filename, syncdir):
        super().xDelete(filename, syncdir)
        self._log.append(("delete", os.path.basename(filename)))


class _Connection:
    """As much of `sqlite3.Connection` as sessions use, over apsw."""

    def __init__(self, path):
        self._connection = apsw.Connection(str(path), vfs="recording")
        self.setlimit = self._connection.limit

    def close(self):
        with contextlib.suppress(apsw.Error):  # Python's own does not tell either
            self._connection.close()

    def execute(self, statement, arguments=()):
        try:
            return self._connection.execute(statement, arguments)
        except apsw.Error as error:
            told = sqlite3.OperationalError(str(error))
            code = getattr(error, "extendedresult", 0) or getattr(error, "result", 0)
            names = apsw.mapping_extended_result_codes, apsw.mapping_result_codes
            told.sqlite_errorname = next((str(each[code]) for each in names if code in each), "")
            raise told from None

    @property
    def in_transaction(self):
        return self._connection.in_transaction


@contextlib.contextmanager
def memory_folder():
    """A folder whose files are in memory, where the system has one: thousands of disks are written there."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        yield Path(folder)


@contextlib.contextmanager
def recorded():
    """The log of all that sessions write to files meanwhile."""
    log, connect = Log(), database._connect
    disk, write, close = _Disk(log), acknowledged.AcknowledgedCounter._write, acknowledged.AcknowledgedCounter.close

    def counted(counter, count, token=b""):
        write(counter, count, token)
        log.append(("write", counter.path.name, 0 if count else acknowledged._COUNT, count + token))

    def closed(counter):
        close(counter)
        log.append(("sync", counter.path.name))

    def synced(folder):
        sync_folder(folder)
        log.append(("folder", ""))

    with (
        mock.patch.object(journal, "sync_folder", synced),
        mock.patch.object(database, "_connect", lambda path: connect(path) if path is None else _Connection(path)),
        mock.patch.object(acknowledged.AcknowledgedCounter, "_write", counted),
        mock.patch.object(acknowledged.AcknowledgedCounter, "close", closed),
    ):
        yield log
    disk.unregister()


class _OnDisk:
    """One file: its synced bytes, whether its name is known to be on disk, and what came since.

    `old` is what its name still stands for on the disk if the file there was deleted, and the new one synced."""

    def __init__(self):
        self.synced, self.named, self.since, self.old = b"", False, [], None

    def add(self, row):
        if row[0] == "sync":
            if self.named and self.old is None and any(what == "delete" for what, *_ in self.since):
                self.old = self.synced
            self.synced, self.since = self._after("kept", None) or b"", []
        else:
            self.since.append(row)

    def sync_name(self):
        self.old = None
        deletions = [place for place, row in enumerate(self.since) if row[0] == "delete"]
        if deletions:
            self.synced, self.since = b"", self.since[deletions[-1] + 1 :]
        self.named = bool(self.since) or not deletions

    def after(self, way, draw):
        """Its bytes after a cut, or None if it is not there."""
        is_there = self.named or way == "kept" or (way != "lost" and draw.random() < 0.5)
        if self.old is not None and (way == "lost" or (way != "kept" and draw.random() < 0.5)):
            return self.old
        return self._after(way, draw) if is_there else None

    def _after(self, way, draw):
        data = bytearray(self.synced)
        for what, _, *rest in self.since:
            if way == "lost" or (way == "writes" and draw.random() < 0.5):
                continue
            torn = way == "sectors"
            if what == "delete":
                data = data if torn and draw.random() < 0.5 else None
                continue
            data = bytearray() if data is None else data
            if what == "create":
                continue
            if what == "write":
                _write(data, rest[0], rest[1], draw if torn else None)
            elif len(data) > rest[0] and not (torn and draw.random() < 0.5):
                del data[rest[0] :]
        return data


def _write(data, place, new, draw):
    """All of it, or each sector by chance."""
    end = place + len(new)
    for start in range(place - place % SECTOR, end, SECTOR):
        if draw is None or draw.random() < 0.5:
            first, last = max(start, place), min(start + SECTOR, end)
            if len(data) < first:
                data.extend(bytes(first - len(data)))
            data[first:last] = new[first - place : last - place]


def disks(log, folder, cuts, seed=0):
    """Write each disk into the folder and yield the marks before it: about `cuts` of them, at every place of the log
    in turn, in all ways."""
    folder, draw, files, marks = Path(folder), np.random.default_rng(seed), {}, {}
    places = sum(row[0] != "mark" for row in log)
    ways = WAYS * -(-cuts // (places * len(WAYS)))
    stride, number = max(places * len(ways) // cuts, 1), 0
    for row in log:
        if row[0] == "mark":
            marks |= row[2]
            continue
        if row[0] == "folder":
            for file in files.values():
                file.sync_name()
        else:
            files.setdefault(row[1], _OnDisk()).add(row)
        for way in ways:
            number += 1
            if (number + number // len(ways)) % stride:  # so that no way is left out
                continue
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name, file in files.items():
                data = file.after(way, draw)
                if data is not None:
                    (folder / name).write_bytes(data)
            yield dict(marks)
