"""The small file beside a journal: it counts the acknowledged events, and its lock lets one session open the journal.

SQLite's own lock is not enough: a process loses it when it opens and closes the file a second time, to copy it say.
"""

import contextlib
import os
import stat
import struct
from pathlib import Path

from filelock import lock_descriptor

from ...errors import SessionError
from .database import checksum


class AcknowledgedCounter:
    """Holds the lock until it is closed, or the process dies."""

    def __init__(self, journal: Path):
        self.path = journal.with_name(journal.name + "-acknowledged")
        self._file = _open_regular_file(self.path)
        if not _lock(self._file):
            os.close(self._file)
            raise SessionError(f"{journal} is open in another session; close that one first")
        self.count = self._read()  # when it was opened

    def _read(self) -> int | None:
        """None if nothing was written yet, -1 if the file is damaged."""
        data = os.pread(self._file, 64, 0)
        if not data:
            return None
        if len(data) != 24 or data[8:] != checksum(data[:8]):
            return -1
        return struct.unpack("<Q", data[:8])[0]

    def write(self, count: int):
        """Not forced to disk: after a power cut it can only know too little."""
        data = struct.pack("<Q", count)
        with contextlib.suppress(OSError):  # the events are safe without it
            os.pwrite(self._file, data + checksum(data), 0)

    def close(self):
        with contextlib.suppress(OSError):
            os.fsync(self._file)
        with contextlib.suppress(OSError):
            os.close(self._file)


def _lock(descriptor) -> bool:
    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError:  # a file system without locks
        return False


def _open_regular_file(path) -> int:
    """No link, which could lead to another's file, and no pipe, which would block."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        reason = "not a regular file"
    except OSError as error:
        reason = error.strerror
    raise SessionError(f"cannot use {path}: {reason}; give a path in a writable folder")
