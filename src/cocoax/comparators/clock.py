"""The time that a search may take, and word of how far it is."""

import sys
import time

_SILENT = 2.0  # seconds before the first word
_SEARCH = 0.95  # of the time that is given; what is left is for the answer
_TERMINAL, _LOG = 0.5, 10.0  # seconds between two words


class Stopped(Exception):
    """A search must end; carries why."""


class OutOfTime(Stopped):
    """The time that was given is over."""

    def __init__(self):
        super().__init__("its time is over")


class Clock:
    """Counts down; a context manager, which clears its line in a terminal at the end."""

    def __init__(self, seconds: float = float("inf"), progress: bool = True):
        self.began = time.monotonic()
        self.deadline = self.began + _SEARCH * seconds
        self.compilation = 0.0  # seconds that a program takes to compile, as far as is known
        self.progress = progress
        self._every = _TERMINAL if sys.stderr.isatty() else _LOG
        self._next, self._written = self.began + max(_SILENT, self._every if self._every == _LOG else 0.0), 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._written:
            print("\r" + " " * self._written + "\r", end="", file=sys.stderr, flush=True)

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    def measure_compilation(self):
        """What was compiled so far takes about as long as what a method compiles, and as what the answer does."""
        self.compilation = time.monotonic() - self.began
        self.deadline -= self.compilation

    def allows_compilation(self) -> bool:
        return self.left > self.compilation

    def check(self, text):
        """Raise `OutOfTime` if it is; now and then, say `text()`."""
        now = time.monotonic()
        if now >= self.deadline:
            raise OutOfTime
        if self.progress and now >= self._next:
            self._next = now + self._every
            self._say(f"hindsight, {now - self.began:.0f} s: {text()}")

    def is_over(self, text: str) -> bool:
        """The same, as an answer."""
        try:
            self.check(lambda: text)
        except OutOfTime:
            return True
        return False

    def _say(self, line):
        if self._every == _LOG:
            print(line, file=sys.stderr, flush=True)
        else:
            print("\r" + line.ljust(self._written), end="", file=sys.stderr, flush=True)
            self._written = len(line)
