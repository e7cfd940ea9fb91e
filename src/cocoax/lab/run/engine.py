"""Playing what a study misses: tasks go to a pool, and what comes back is stored at once."""

import contextlib
import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import polars as pl

from ...errors import CocoaxError, LabError
from ..arguments import error_text
from .pools import Here, completed
from .progress import Reporter
from .tasks import Planned, Task, parts
from .workbench import Answer

if TYPE_CHECKING:
    from ..study import Study

_TRIES = 3  # of a task that fails, for a reason of the pool's


def run(study: "Study", pool: Here, quiet: bool) -> None:
    """Play what is missing. Whatever ends this early, what was finished is stored."""
    missing = study.missing()
    lanes = len({(game.problem, game.learner) for game in missing})
    with Reporter(sum(game.horizon for game in missing), lanes, quiet, _to_compare(study, missing)) as reporter:
        running = _Run(study, pool, reporter, missing)
        with contextlib.closing(completed(pool, running.take, running.submit, running.gone)) as answers:
            for task, future in answers:
                running.keep(future, task)


def _to_compare(study: "Study", missing: list[Planned]) -> int:
    """Rounds of the comparators that are not stored yet."""
    wanted = {(game.problem, game.horizon, game.seed) for game in missing}
    stored = study.store.keys("comparator") if wanted else set()
    problems = {problem for problem, _, _ in wanted}
    keys = {name: study.comparator_keys(name, study.seeds, study.horizons[name]) for name in problems}
    return sum(T for problem, T, seed in wanted if keys[problem][T][seed] not in stored)


class _Run:
    def __init__(self, study: "Study", pool: Here, reporter: Reporter, missing: list[Planned]):
        self.study, self.pool, self.reporter = study, pool, reporter
        self.parts = parts(study, missing, pool.facts["bytes"])
        has_stored = bool(study.store.keys("comparator"))  # which sets damaged ones aside
        self.stored = study.store.read("comparator") if has_stored else pl.DataFrame({"key": []})
        self.ready: list[Task] = []  # a heap

    def take(self) -> Task | None:
        """The next task that can begin."""
        while not self.ready and (part := next(self.parts, None)) is not None:
            self._add(part.playing(self.stored))
            self._add(part.comparing(self.pool.split))  # those that are not stored
        return heapq.heappop(self.ready) if self.ready else None

    def _add(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            heapq.heappush(self.ready, task)

    def submit(self, task: Task) -> Any:
        self.reporter.now(str(task))
        bench, of_games = task.part.bench, ()
        if task.learner is not None:
            of_games = self.study.learner(task.learner, bench.name), task.part.best(task)
        return self.pool.submit(bench, task.lane, "play" if of_games else "compare", task.keys, *of_games)

    def gone(self, name: str) -> None:
        self.reporter.say(f"the worker {name} is gone; what it was doing is done elsewhere")

    def keep(self, future: Any, task: Task) -> None:
        """Store an answer, and see what can be played now."""
        try:
            answer = future.result()
            if answer.batch is not None and not answer.batch.is_whole():
                raise OSError("bytes were lost on the way")
        except CocoaxError:  # the study or a worker must be mended
            raise
        except Exception as error:
            death = self.pool.death(error)
            if death is None and task.failures + 1 < _TRIES:
                self._add([task._replace(failures=task.failures + 1)])
                return
            if death is None or task.learner is None:
                raise LabError(f"{task}: {death or error_text(error)}; what was finished is kept") from error
            answer = Answer(None, death, 0.0, 0.0)
        keys = [key for by_seed in task.keys.values() for key in by_seed.values()]
        if answer.batch is None:
            self.study.refused |= dict.fromkeys(keys, str(answer.reason))
        else:
            self.study.store.append("comparator" if task.learner is None else "game", answer.batch)
        if task.learner is not None:
            lane = task.part.bench.name, task.learner
            self.reporter.advance(lane, task.rounds, len(keys), answer.seconds, answer.playing)
        elif answer.batch is not None:
            self.reporter.advance_comparators(task.rounds, answer.seconds)
            self._add(task.part.playing(answer.batch.rows()))
        self.reporter.now(str(task))
