"""The small file beside a journal: it counts the events that were acknowledged, and only one process can hold it.

SQLite's own lock is not enough: it is lost when its process opens and closes the file a second time, to copy it say.
"""

import contextlib
import os
import stat
import struct
from pathlib import Path

from ...errors import SessionError
from .database import checksum

try:
    import fcntl
except ImportError:  # on Windows SQLite's lock has to do
    fcntl = None


class Witness:
    """Holds the file until it is closed, or the process dies."""

    def __init__(self, journal: Path):
        self.path = journal.with_name(journal.name + "-acknowledged")
        self._file = _plain_file(self.path)
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(self._file)
                raise SessionError(f"{journal} is open in another session; close that one first") from None
        self.count = self._read()  # when it was opened

    def _read(self) -> int | None:
        """None where nothing was written yet, -1 where it is damaged."""
        data = os.pread(self._file, 64, 0)
        if not data:
            return None
        if len(data) != 24 or data[8:] != checksum(data[:8]):
            return -1
        return struct.unpack("<Q", data[:8])[0]

    def write(self, count: int):
        """Not forced to disk: after a power cut it can only know too little."""
        data = struct.pack("<Q", count)
        with contextlib.suppress(OSError):  # it is a witness, and the events are safe without
            os.pwrite(self._file, data + checksum(data), 0)

    def close(self):
        with contextlib.suppress(OSError):
            os.fsync(self._file)
        with contextlib.suppress(OSError):
            os.close(self._file)


def _plain_file(path) -> int:
    """A link could lead to a file of another's, and a pipe would be waited for."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        reason = "not a plain file"
    except OSError as error:
        reason = error.strerror
    raise SessionError(f"cannot use {path}: {reason}; give a path in a folder that can be written")
