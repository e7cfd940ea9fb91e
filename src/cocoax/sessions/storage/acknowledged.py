"""The small file beside a journal: it counts the acknowledged events, and its lock lets one session open the journal.

SQLite's own lock is not enough: a process loses it when it opens and closes the file a second time, to copy it say. And
some file systems grant every lock: so the session that opened last leaves its token here, and who finds another's token
before an acknowledgement writes no more.
"""

import contextlib
import io
import os
import stat
import struct
from pathlib import Path

from filelock import lock_descriptor

from ...core.files import identity
from ...errors import SessionError
from .database import checksum

_COUNT, _TOKEN = 24, 16  # bytes: a count with its checksum, then the token of the session that has it open


class AcknowledgedCounter:
    """Holds the lock until it is closed, or the process dies. With `read_only` nothing is written, if it must be so."""

    _file: "_File"
    count: int | None = None  # when it was opened

    def __init__(self, journal: Path, *, read_only: bool = False):
        self.path = _beside(journal)
        try:
            file = _open_regular_file(self.path, read_only)
            if file is None:
                return
            self._file = file
            if not _lock(self._file):
                raise SessionError(f"{journal} is open in another session; close that one first")
            self.count = self._read()
            self._id, self._token = identity(self._file.fileno()), os.urandom(_TOKEN)
            if not read_only:
                self._write(b"" if self.count is not None else _with_checksum(0), self._token)
        except BaseException:
            self.close()
            raise

    def _read(self) -> int | None:
        """None if nothing was written yet, -1 if the file is damaged."""
        return _count_in(os.pread(self._file.fileno(), 64, 0))

    def is_mine(self) -> bool:
        """Whether no other session opened the journal since, although this one is locked."""
        try:
            mine = os.pread(self._file.fileno(), _TOKEN, _COUNT) == self._token
        except (OSError, ValueError):  # ValueError: it is closed
            return False
        return mine and identity(self.path) == self._id

    def write(self, count: int):
        """Not forced to disk: after a power cut it can only know too little."""
        with contextlib.suppress(OSError):  # the events are safe without it
            self._write(_with_checksum(count))

    def _write(self, count: bytes, token: bytes = b""):
        os.pwrite(self._file.fileno(), count + token, 0 if count else _COUNT)

    def close(self):
        if not hasattr(self, "_file") or self._file.closed:
            return
        with contextlib.suppress(OSError):
            os.fsync(self._file.fileno())
        with contextlib.suppress(OSError):
            self._file.close()


class _File(io.FileIO):
    """Closed by Python, without a warning, if an interrupt comes before anybody else can do it."""

    __del__ = io.FileIO.close

    def __init__(self, path, mode, flags):
        safe = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        super().__init__(path, mode, opener=lambda name, _: os.open(name, flags | safe, 0o644))


def read_count(journal: Path) -> int | None:
    """The number of acknowledged events of a journal that may be open; None if nobody knows, -1 if it is damaged."""
    try:
        with _File(_beside(journal), "r", os.O_RDONLY) as file:
            return _count_in(file.read(64) or b"")
    except OSError:
        return None


def _beside(journal: Path) -> Path:
    return journal.with_name(journal.name + "-acknowledged")


def _count_in(data: bytes) -> int | None:
    if not data:
        return None
    if len(data) not in (_COUNT, _COUNT + _TOKEN) or data[8:_COUNT] != checksum(data[:8]):
        return -1
    return struct.unpack("<Q", data[:8])[0]


def _with_checksum(count: int) -> bytes:
    data = struct.pack("<Q", count)
    return data + checksum(data)


def _lock(file: _File) -> bool:
    try:
        return lock_descriptor(file.fileno(), blocking=False)
    except OSError:  # a file system without locks
        return False


def _open_regular_file(path, read_only) -> _File | None:
    """No link, which could lead to another's file, and no pipe, which would block."""
    try:
        file = _File(path, "r+", os.O_RDWR | os.O_CREAT)
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        file.close()
        reason = "not a regular file"
    except OSError as error:
        reason = error.strerror
    if read_only:  # nobody can write here, or nobody who may do so has opened it
        with contextlib.suppress(OSError):
            return _File(path, "r", os.O_RDONLY)
        return None
    raise SessionError(f"cannot use {path}: {reason}; give a path in a writable folder")
