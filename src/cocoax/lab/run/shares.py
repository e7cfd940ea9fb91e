"""Work that several processes share: which part is whose, and whose turn it is."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

try:
    import fcntl
except ImportError:  # on Windows nobody waits
    fcntl = None

_PATIENCE = 20.0  # seconds
_OFTEN = 0.005


class Share(NamedTuple):
    """Every n-th item from one of the first n on."""

    first: int
    among: int

    def of(self, items) -> list:
        return list(items)[self.first :: self.among]


@contextlib.contextmanager
def turn(folder: Path) -> Iterator[None]:
    """One process at a time: an accelerator that several use at once makes each wait longer than for its turn.

    Whoever dies loses it. Where files cannot be locked, and after a while, a process goes on without it: only time is
    lost.
    """
    with contextlib.ExitStack() as until:
        with contextlib.suppress(OSError):
            _wait_for(until.enter_context(open(folder / ".turn", "w")))
        yield


def _wait_for(file):
    since = time.monotonic()
    while fcntl is not None and time.monotonic() - since < _PATIENCE:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until the file is closed
            return
        except BlockingIOError:
            time.sleep(_OFTEN)
