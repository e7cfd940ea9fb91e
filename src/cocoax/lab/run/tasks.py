"""The tasks of a study: each is one batch that will be stored, and games wait for their comparators."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from ..results.store import Packed, packed
from .batch import TOGETHER, capacity_of, chunk_size
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
    """One batch that will be stored: comparators, or the games of one learner in one call."""

    order: tuple[int, ...]  # of the part, games after comparators, the lane, and the place in it; no two are the same
    part: "Part"
    learner: str | None  # None for comparators
    keys: Keys
    failures: int = 0

    @property
    def lane(self) -> int:
        """Tasks of one lane share compiled programs."""
        return self.order[2]

    @property
    def rounds(self) -> int:
        return sum(T * len(by_seed) for T, by_seed in self.keys.items())

    def __str__(self):
        doing = self.learner or "best decision in hindsight"
        return f"{self.part.bench.name}: {doing}, T = {', '.join(map(str, self.keys))}"


class Part:
    """Instances of one problem that fit into memory together, and what is missing of their games."""

    def __init__(self, number: int, bench: Workbench, games: list[Planned], comparators: Keys, device: str):
        self.number, self.bench, self._comparators = number, bench, comparators
        self._known = pl.DataFrame({"key": []}, {"key": pl.String})  # the rows of those that were found
        keys: dict[str, Keys] = {}
        for game in games:
            keys.setdefault(game.learner, {}).setdefault(game.horizon, {})[game.seed] = game.key
        self._waiting = [
            Task((number, 1, lane, place), self, learner, call)
            for lane, (learner, by_horizon) in enumerate(keys.items())
            for place, call in enumerate(_calls(by_horizon, device))
        ]

    def comparing(self, split: int | None) -> Iterator[Task]:
        """Tasks for comparators, of a few seeds each. Each lane begins with another horizon, which it compiles."""
        known, horizons = set(self._known["key"]), sorted(self._comparators, reverse=True)
        seeds = list(self._comparators[horizons[0]])
        size = split or len(seeds)
        for lane, first in enumerate(range(0, len(seeds), size)):
            turn = lane % len(horizons)
            for place, T in enumerate(horizons[turn:] + horizons[:turn]):
                keys = {seed: self._comparators[T][seed] for seed in seeds[first : first + size]}
                missing = {seed: key for seed, key in keys.items() if key not in known}
                if missing:
                    yield Task((self.number, 0, lane, place), self, None, {T: missing})

    def playing(self, comparators: pl.DataFrame) -> list[Task]:
        """The games that can be played now that these comparators are known, too."""
        wanted = [key for by_seed in self._comparators.values() for key in by_seed.values()]
        found = comparators.filter(pl.col("key").is_in(wanted))
        self._known = pl.concat([self._known, found], how="diagonal_relaxed")
        known = set(self._known["key"])
        have = {T for T, by_seed in self._comparators.items() if known.issuperset(by_seed.values())}
        ready = [task for task in self._waiting if have.issuperset(task.keys)]
        self._waiting = [task for task in self._waiting if not have.issuperset(task.keys)]
        return ready

    def best(self, task: Task) -> Packed:
        """The comparators of a task's games, in their order."""
        keys = [self._comparators[T][seed] for T, by_seed in task.keys.items() for seed in by_seed]
        return packed(pl.DataFrame({"key": keys}).join(self._known, on="key", maintain_order="left"))


def _calls(keys: Keys, device: str) -> Iterator[Keys]:
    """What is played in one call: on CPUs one horizon; on accelerators some that share seeds and capacity."""
    most = 1 if device == "cpu" else TOGETHER
    falling = sorted(keys, reverse=True)
    for _, alike in itertools.groupby(falling, lambda T: (capacity_of(T), tuple(keys[T]))):
        horizons = list(alike)
        for first in range(0, len(horizons), most):
            yield {T: keys[T] for T in horizons[first : first + most]}


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
