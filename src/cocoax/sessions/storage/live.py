"""A copy of a journal that may be open in another process, which keeps all readers out of its files."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ...errors import SessionError
from .acknowledged import read_count

_TRIES, _PAUSE = 20, 0.05  # seconds
_HEADER = 32  # bytes of a log that change when it begins anew


@contextlib.contextmanager
def live_copy(source: Path, folder: Path | None = None) -> Iterator[tuple[Path, int | None]]:
    """(a copy in a temporary folder, how many events were acknowledged before it was made: None if nobody knows).

    Between two checkpoints the database and the log after it are one state, while more is appended to the log. So a
    copy is good if the log did not begin anew meanwhile. SQLite ignores a last transaction that is not whole.
    """
    if not source.is_file():
        raise SessionError(f"there is no session in {source}; give the path of one")
    try:
        temporary = tempfile.TemporaryDirectory(dir=folder, prefix=".copy-")
    except OSError as error:
        where = folder or tempfile.gettempdir()
        raise SessionError(f"{where} cannot hold a copy of {source}: {error.strerror}; give another folder") from None
    with temporary:
        copy = Path(temporary.name, source.name)
        yield copy, _copy(source, copy)


def _copy(source: Path, to: Path) -> int | None:
    log, log_to = (path.with_name(path.name + "-wal") for path in (source, to))
    for _ in range(_TRIES):
        try:
            acknowledged, before = read_count(source), _mark(source, log)
            shutil.copyfile(source, to)
            log_to.unlink(missing_ok=True)
            if log.is_file():
                shutil.copyfile(log, log_to)
            if _mark(source, log) == before:
                return acknowledged
        except FileNotFoundError:  # it was closed meanwhile
            pass
        except OSError as error:
            raise SessionError(f"{source} cannot be copied: {error.strerror}; free space, or ask who may") from None
        time.sleep(_PAUSE)
    raise SessionError(f"{source} changes too fast to be copied; try again when less is written")


def _mark(source: Path, log: Path) -> tuple:
    status, header = os.stat(source), None
    with contextlib.suppress(FileNotFoundError):
        if log.is_file():  # a pipe would block
            with open(log, "rb") as file:
                header = file.read(_HEADER)
    return status.st_ino, status.st_size, status.st_mtime_ns, header
