"""The series of the arena of 2026, real and synthetic; their rounds are frozen by a hash."""

import functools
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ... import data
from ...errors import LabError
from ...problem.problem import Problem
from ...problems import Instance, real
from ...problems.real.portfolios import LIMITS
from . import tuning
from .problems import ARENA

TUNING = 0.3  # of each series; the rest is scored
_SEED, _ROUNDS = 2026, 3000  # of the synthetic ones
_DIGITS = 5  # that are hashed: the last ones may differ between machines
_of = functools.partial


class Entry(NamedTuple):
    """Where a series comes from."""

    make: Callable[..., Instance]  # of a key, if it is synthetic
    needs: str | None = None  # the data set that must have been fetched
    rounds: int | None = None  # all that were recorded, by default


def _synthetic(name):
    return Entry(ARENA[name], rounds=_ROUNDS)


def _stocks(name, *limits):
    return Entry(_of(real.portfolio, data=name, **{limit: LIMITS[name][limit] for limit in limits}), name)


SYNTHETIC: dict[str, Entry] = {
    name: _synthetic(name)
    for name in (
        "linear",
        "quadratic, 3 constraints",
        "pacing, budget 20%",
        "shortest path",
        "l1 regression",
        "volatility",
        "seasons",
        "hinge",
    )
}
"""By name; eight of the arena's families, with one seed that no rival was tuned on."""

REAL: dict[str, Entry] = {
    "stocks 1962-1984, volatility": _stocks("nyse_o", "volatility"),
    "stocks 1962-1984, CVaR": _stocks("nyse_o", "cvar"),
    "stocks 1990-2022, volatility": _stocks("sp500", "volatility"),
    "stocks 1990-2022, CVaR": _stocks("sp500", "cvar"),
    "backbone, Abilene": Entry(_of(real.telecom, data="abilene"), "abilene"),
    "income, fair": Entry(_of(real.fair_classification, data="adult"), "adult"),
    "releases, fair": Entry(_of(real.fair_classification, data="arrests"), "arrests"),
    "cars, carbon": Entry(_of(real.ev_charging, requests=False)),
}
"""By name; recorded, in the order of time where that is known."""

SERIES = REAL | SYNTHETIC
"""All of them, by name. To add one: an entry here, and `python -m benchmarks.tune arena-2026 NAME`."""


class Series(NamedTuple):
    """A problem, and its rounds in NumPy (float64)."""

    problem: Problem
    rounds: Any
    length: int
    digest: str  # of all rounds, and of the loss and the constraint

    def part(self, first: int, last: int) -> Any:
        """The rounds from `first` up to, but not including, `last`."""
        return jax.tree.map(lambda column: column[first:last], self.rounds)

    @property
    def tuning(self) -> int:
        """How many rounds, from the first, rivals are tuned on."""
        return int(TUNING * self.length)


def series(name: str) -> Series:
    """The series with this name. Its rounds are drawn in float64, whatever JAX is set to."""
    entry = SERIES[name]
    with jax.enable_x64(True):
        if entry.rounds is None:
            instance = entry.make()
            rounds = cast(real.RealInstance, instance).recorded
        else:
            instance_key, rounds_key = jax.random.split(jax.random.key(_SEED))
            instance = entry.make(instance_key)
            rounds = instance.rounds(entry.rounds, rounds_key)
        rounds = jax.tree.map(np.asarray, rounds)
        digest = _digest(instance.problem, rounds)
        problem = jax.tree.map(np.asarray, instance.problem)
    return Series(jax.tree.map(jnp.asarray, problem), rounds, len(jax.tree.leaves(rounds)[0]), digest)


def frozen(name: str) -> Series:
    """The series with this name; raises `LabError` unless its hash is the one that was published."""
    found, pinned = series(name), tuned().get(name, {}).get("hash")
    if found.digest != pinned:
        raise LabError(
            f"the series {name!r} is not the frozen one ({pinned}); tables of other rounds cannot be compared"
        )
    return found


def _digest(problem, rounds) -> str:
    """SHA-256 of the rounds, and of losses and constraints at the start, all rounded to five digits."""
    start = problem.domain.start()
    values = jax.jit(jax.vmap(lambda r: problem.values(start, r)))(rounds)
    seen = hashlib.sha256()
    for leaf in jax.tree.leaves((rounds, values)):
        seen.update(_rounded(np.asarray(leaf)).tobytes())
    return seen.hexdigest()[:16]


def _rounded(numbers) -> np.ndarray:
    """(2, n) integers: the exponent and the leading digits of each number."""
    numbers = numbers.astype(np.float64).ravel()
    power = np.floor(np.log10(np.where(numbers == 0, 1, np.abs(numbers))))
    return np.stack([power, np.round(numbers / 10.0 ** (power - _DIGITS + 1))]).astype("<i8")


def missing_data(names) -> list[str]:
    """The data sets that these series need and that are not here."""
    needed = {entry.needs for name in names if (entry := SERIES[name]).needs}
    return sorted(name for name in needed if not data.is_here(name))


def tuned() -> dict[str, dict]:
    """By series: its hash, and by family what `python -m benchmarks.tune arena-2026` found."""
    return tuning.tuned("tuned_2026.json", "series")
