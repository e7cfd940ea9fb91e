"""Progress with the time left: a bar in terminals and notebooks, plain lines in logs."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

_SECONDS = 10  # between two lines of a log


class Reporter:
    """Counts the work that is done; a context manager."""

    def __init__(self, total: float, quiet: bool = False):
        self.total, self.quiet, self.done = max(total, 1e-9), quiet, 0.0
        self.began = self.spoke = time.monotonic()
        console = Console(file=sys.stderr)
        self._bar = None
        if not quiet and (console.is_terminal or console.is_jupyter):
            columns = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("", total=self.total)

    def __enter__(self):
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_):
        if self._bar:
            self._bar.stop()

    def now(self, what: str):
        """Say what is being done."""
        if self._bar:
            self._bar.update(self._task, description=what)
        elif not self.quiet and time.monotonic() - self.spoke >= _SECONDS:
            self.spoke = time.monotonic()
            print(f"{100 * self.done / self.total:3.0f}%, {self._left()} left: {what}", file=sys.stderr, flush=True)

    def advance(self, work: float):
        self.done += work
        if self._bar:
            self._bar.update(self._task, completed=self.done)

    def _left(self):
        if not self.done:
            return "unknown time"
        seconds = (time.monotonic() - self.began) * (self.total - self.done) / self.done
        return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
