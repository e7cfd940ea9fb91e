"""What sessions and fleets share: a file, one call at a time, and ways to leave it."""

import os
from pathlib import Path
from typing import Any

from ..learners.base import AbstractLearner
from ..problem.problem import Problem
from . import transfer
from .arguments import as_file
from .durable import DurableState
from .guard import Guard


class Stored:
    """Learners whose events are in one file, or in memory."""

    path: Path | None
    _durable: DurableState
    _guard: Guard

    def export(self, path: str | os.PathLike) -> None:
        """Write the state, without the past rounds, to a new file with a checksum, for `import_`."""
        with self._guard.alone(self):
            self._durable.export(as_file(path))

    @classmethod
    def import_(
        cls, source: Any, problem: Problem, learner: AbstractLearner, path: str | os.PathLike, **options: Any
    ) -> Any:
        """Go on, in a new file, from what `export` wrote, in this or another version of cocoax.

        Problem and learner must be the same, the numbers may be rounded otherwise from here on. The new file has the
        totals of all rounds, and the history of those after the import.
        """
        return transfer.imported(cls, as_file(source), problem, learner, as_file(path), options)

    def close(self) -> None:
        """Write a snapshot, so that it opens fast, and let others open it."""
        with self._guard.alone(self):
            self._durable.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
