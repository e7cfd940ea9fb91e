"""The tasks of a study: each is one batch that will be stored, and games wait for their comparators."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from ..results.store import Packed, packed
from .batch import calls, chunk_size
from .workbench import Keys, Workbench

if TYPE_CHECKING:
    from ..study import Study


class Planned(NamedTuple):
    """One game of a study, and the key of its result in the store."""

    problem: str
    learner: str
    horizon: int
    seed: int
    key: str


class Task(NamedTuple):
    """One batch that will be stored: comparators, or the games of one learner in one call. Or a program to compile."""

    order: tuple[int, ...]  # of the part, the kind of task, the lane, and the place in it
    part: "Part"
    what: str  # a method of Workbench: compare, play, or prepare
    learner: str
    keys: Keys

    @property
    def lane(self) -> int:
        return self.order[2]

    def __str__(self):
        doing = {"compare": "best decision in hindsight", "prepare": f"compiling {self.learner}"}
        return f"{self.part.bench.name}: {doing.get(self.what, self.learner)}, T = {', '.join(map(str, self.keys))}"


class Part:
    """Instances of one problem that fit into memory together, and what is missing of their games."""

    def __init__(self, number: int, bench: Workbench, games: list[Planned], comparators: Keys, device: str):
        self.number, self.bench, self.comparators = number, bench, comparators
        self._found: dict[str, pl.DataFrame] = {}  # rows of comparators by key
        self._unknown = {T: set(by_seed.values()) for T, by_seed in comparators.items()}
        self._waiting = [
            Task((number, 2, lane, place), self, "play", learner, {T: keys[T] for T in horizons})
            for lane, ((learner, _), keys) in enumerate(_by_lane(games).items())
            for place, horizons in enumerate(calls(list(keys), device))
        ]

    def comparing(self, split: int | None) -> Iterator[Task]:
        """Tasks for comparators, of a few seeds each. Each lane begins with another horizon, which it compiles."""
        seeds = list(dict.fromkeys(seed for by_seed in self.comparators.values() for seed in by_seed))
        horizons, size = sorted(self.comparators, reverse=True), split or len(seeds)
        for lane, first in enumerate(range(0, len(seeds), size)):
            turn = lane % len(horizons)
            for place, T in enumerate(horizons[turn:] + horizons[:turn]):
                keys = {seed: self.comparators[T].get(seed, "") for seed in seeds[first : first + size]}
                missing = {seed: key for seed, key in keys.items() if key in self._unknown[T]}
                if missing:
                    yield Task((self.number, 0, lane, place), self, "compare", "", {T: missing})

    def preparing(self) -> list[Task]:
        """One task for each lane, which can begin before any comparator is known."""
        first = {task.lane: task for task in reversed(self._waiting)}
        return [task._replace(order=(self.number, 1, lane, 0), what="prepare") for lane, task in first.items()]

    def playing(self, comparators: pl.DataFrame) -> list[Task]:
        """The games that can be played now that these comparators are known, too."""
        wanted = set().union(*self._unknown.values())
        for (key,), row in comparators.filter(pl.col("key").is_in(wanted)).group_by("key"):
            self._found[str(key)] = row
        for unknown in self._unknown.values():
            unknown.difference_update(self._found)
        ready = [task for task in self._waiting if not any(self._unknown[T] for T in task.keys)]
        self._waiting = [task for task in self._waiting if any(self._unknown[T] for T in task.keys)]
        return ready

    def best(self, task: Task) -> Packed:
        """The comparators of a task's games, in their order."""
        keys = [self.comparators[T][seed] for T, by_seed in task.keys.items() for seed in by_seed]
        return packed(pl.concat([self._found[key] for key in keys], how="diagonal_relaxed"))


def parts(study: "Study", missing: list[Planned], most_bytes: int) -> Iterator[Part]:
    """The missing games by problem, and by as many instances as fit into memory. All problems are built first."""
    numbers, benches = itertools.count(), _checked(study, missing, most_bytes)
    for name, bench in benches.items():
        games = [game for game in missing if game.problem == name]
        for first in range(0, len(study.seeds), bench.most):
            chunk = set(study.seeds[first : first + bench.most])
            here = [game for game in games if game.seed in chunk]
            if here:
                seeds, horizons = sorted({game.seed for game in here}), sorted({game.horizon for game in here})
                yield Part(next(numbers), bench, here, study.comparator_keys(name, seeds, horizons), study.device)


def _checked(study: "Study", missing: list[Planned], most_bytes: int) -> dict[str, Workbench]:
    """Every problem, built once before the first game: one that fails would fail after hours otherwise."""
    benches = {}
    for game in missing:
        if game.problem not in benches:
            longest = max(study.horizons[game.problem])
            arguments = game.problem, study.sources[game.problem], longest, study.tol, study.certify
            most = chunk_size(Workbench(*arguments).draw(game.seed), longest, most_bytes)
            benches[game.problem] = Workbench(*arguments, most)  # another one, which has drawn nothing yet
    return benches


def _by_lane(games: list[Planned]) -> dict[tuple[str, tuple[int, ...]], Keys]:
    """Keys by learner and seeds: the horizons of a learner that miss the same seeds share a batch and a program."""
    by_learner_and_horizon: dict[tuple[str, int], dict[int, str]] = {}
    for game in games:
        by_learner_and_horizon.setdefault((game.learner, game.horizon), {})[game.seed] = game.key
    lanes: dict[tuple[str, tuple[int, ...]], Keys] = {}
    for (learner, horizon), by_seed in by_learner_and_horizon.items():
        lanes.setdefault((learner, tuple(sorted(by_seed))), {})[horizon] = dict(sorted(by_seed.items()))
    return lanes
