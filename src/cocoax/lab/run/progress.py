"""Progress over all workers: a bar in terminals and notebooks, plain lines in logs."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

_SECONDS = 10  # between two lines of a log


class Reporter:
    """Counts the batches that are done, and estimates the time left; a context manager.

    A batch takes its rounds' time, and the first batch of a lane its compilation too; comparators take theirs. All are
    averages over what was done so far, so that the estimate is sensible from the first batch on.
    """

    def __init__(self, rounds: float, lanes: int, quiet: bool = False, compared: float = 0.0):
        self.rounds, self.lanes, self.quiet = max(rounds, 1e-9), lanes, quiet
        self.to_compare, self.compared, self.comparing = compared, 0.0, 0.0  # rounds, rounds done, seconds
        self.done, self.played, self.batches, self.begun = 0.0, 0, 0, set()
        self.playing = self.other = 0.0  # seconds of all workers
        self.began = self.spoke = time.monotonic()
        console = Console(file=sys.stderr)
        self._bar = None
        if not quiet and (console.is_terminal or console.is_jupyter):
            columns = (BarColumn(20), TaskProgressColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("", total=self.rounds)

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
            self._bar.update(self._task, completed=self.done, description=f"{self._so_far()}: {what}")
        elif not self.quiet and time.monotonic() - self.spoke >= _SECONDS:
            self.spoke = time.monotonic()
            print(f"{100 * self.done / self.rounds:3.0f}%, {self._so_far()}: {what}", file=sys.stderr, flush=True)

    def say(self, line: str):
        """A line that stays."""
        if self._bar:
            self._bar.console.print(line, markup=False)
        elif not self.quiet:
            print(line, file=sys.stderr, flush=True)

    def advance(self, lane, rounds: float, games: int, seconds: float, playing: float):
        """A batch is done, which took so many seconds, some of them playing."""
        self.done, self.played, self.batches = self.done + rounds, self.played + games, self.batches + 1
        self.begun.add(lane)
        self.playing, self.other = self.playing + playing, self.other + seconds - playing

    def advance_comparators(self, rounds: float, seconds: float):
        """A batch of comparators of so many rounds is done, which took so many seconds."""
        self.batches += 1
        self.compared, self.comparing = self.compared + rounds, self.comparing + seconds

    def _so_far(self):
        elapsed = max(time.monotonic() - self.began, 1e-9)
        batches = "1 batch" if self.batches == 1 else f"{self.batches} batches"
        return f"{batches}, {self.played / elapsed:.3g} games a second, {self._left(elapsed)}"

    def _left(self, elapsed):
        if not self.done:
            return "time left not known yet"
        work = (self.rounds - self.done) * self.playing / self.done
        work += (self.lanes - len(self.begun)) * self.other / len(self.begun)
        work += max(self.to_compare - self.compared, 0) * self.comparing / max(self.compared, 1)
        at_a_time = max((self.playing + self.other + self.comparing) / elapsed, 1e-9)
        seconds = work / at_a_time
        return f"{seconds:.0f} s left" if seconds < 120 else f"{seconds / 60:.0f} min left"
