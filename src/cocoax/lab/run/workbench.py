"""What one task does, in whatever process: a batch of comparators or of games, up to the bytes that are stored."""

import functools
import os
import pickle
import platform
import threading
import time
from typing import Any, NamedTuple

import jax

from ...core.fingerprint import library
from ...errors import CocoaxError, LabError
from ...learners.base import AbstractLearner
from ..arguments import check_rounds, error_text, naming_problem
from ..results.rows import comparator_row, game_rows, stored_comparator
from ..results.store import Packed, packed, together
from ..sources import Drawn, Source
from .batch import Batch, most_bytes

SETTINGS = ("jax_enable_x64", "jax_default_prng_impl", "jax_threefry_partitionable", "jax_default_matmul_precision")

Keys = dict[int, dict[int, str]]  # of results in the store, by horizon and seed


class Answer(NamedTuple):
    """A batch as it is stored, or the reason why there is none."""

    batch: Packed | None
    reason: str | None
    seconds: float  # of the task
    playing: float  # of these, in compiled games


class Workbench:
    """One problem of a study, whose instances are drawn once for many tasks of a process."""

    def __init__(self, name: str, source: Source, longest: int, tol: float, certify: bool = False, most: int = 1):
        self.name, self.source, self.longest, self.tol, self.certify = name, source, longest, tol, certify
        self.most = most  # instances that fit into memory
        self._drawn: dict[int, Drawn] = {}
        self._stacked: tuple[Any, Any] = None, None

    def __reduce__(self):
        return Workbench, (self.name, self.source, self.longest, self.tol, self.certify, self.most)

    def draw(self, seed: int) -> Drawn:
        """The instance of a seed with all its rounds."""
        if seed not in self._drawn:
            with naming_problem(self.name):
                drawn = self.source.draw(seed, self.longest)
            check_rounds(self.name, drawn, self.longest)
            while len(self._drawn) >= self.most:
                self._drawn.pop(next(iter(self._drawn)))  # the oldest
            self._drawn[seed] = drawn
        return self._drawn[seed]

    def compare(self, keys: Keys) -> Answer:
        """The comparators of some horizons and seeds."""
        began, rows = time.perf_counter(), []
        for horizon, seed, key in ((T, *of_seed) for T, by_seed in keys.items() for of_seed in by_seed.items()):
            try:
                best = self.draw(seed).comparator(horizon, self.tol)
            except LabError:
                raise
            except CocoaxError as error:  # no decision meets the constraints, or a round is not finite
                best = str(error)
            rows.append(comparator_row(key, best))
        return Answer(packed(together(rows)), None, time.perf_counter() - began, 0.0)

    def play(self, keys: Keys, learner: AbstractLearner, comparators: Packed) -> Answer:
        """The games of one learner, with the same seeds for all horizons; comparators in the order of the keys."""
        began, seeds = time.perf_counter(), tuple(next(iter(keys.values())))
        if self._stacked[0] != seeds:
            self._stacked = seeds, Batch([self.draw(seed) for seed in seeds], seeds, certify=self.certify)
        try:
            played = self._stacked[1].play(learner, *keys)
        except Exception as error:  # of this learner or problem: the others go on
            return Answer(None, error_text(error), time.perf_counter() - began, 0.0)
        best = map(stored_comparator, comparators.rows().iter_rows(named=True))
        rows = [game_rows(by_seed.values(), each, best) for by_seed, each in zip(keys.values(), played)]
        playing = played[0].seconds * sum(keys) * len(seeds)
        return Answer(packed(together(rows)), None, time.perf_counter() - began, playing)


def settings() -> dict[str, Any]:
    """What processes must share, so that all would come to the same bits."""
    return {
        "cocoax": library(),
        "JAX": jax.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: getattr(jax.config, name) for name in SETTINGS},
    }


def facts() -> dict[str, Any]:
    """What a study wants to know of a process before it plays there."""
    device = jax.devices()[0]
    return settings() | {
        "device": jax.default_backend(),
        "host": platform.node(),
        "kind": f"{device.platform}: {device.device_kind}, {os.cpu_count()} CPU cores, {platform.platform()}",
        "bytes": most_bytes(),
    }


def work(expected: dict[str, Any], bench: bytes, what: str, keys: Keys, *more: Any) -> Answer:
    """A task in another process, if that process is like the study's; a learner comes as bytes."""
    check_settings(expected, settings() | {"device": jax.default_backend()}, platform.node())
    with _one_at_a_time:
        more = tuple(_learner(part) if isinstance(part, bytes) else part for part in more)
        return getattr(_bench(bench), what)(keys, *more)


def check_settings(expected: dict[str, Any], there: dict[str, Any], where: str) -> None:
    """Refuse a worker that is not like the study's process."""
    for name, value in expected.items():
        if there.get(name) != value:
            raise LabError(
                f"the worker {where} has {name} {there.get(name)}, but the study has {value}; make them alike, "
                "since results could differ"
            )


# The same object again for the same bytes, so that nothing is drawn or compiled twice.
_learner = functools.lru_cache(maxsize=64)(pickle.loads)
_bench = functools.lru_cache(maxsize=2)(pickle.loads)
_one_at_a_time = threading.Lock()  # on CPUs, two programs that run at once can deadlock
