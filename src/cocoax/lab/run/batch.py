"""Many games in one compiled call, for any horizon up to a capacity."""

import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core import tree
from ...games import loop
from ...games.game import Game
from ...games.movement import as_played
from ...games.state import begin
from ...learners.base import AbstractLearner, Horizon, Outcome
from ..results.rows import MARKS, Played, marks
from ..sources import Drawn, learner_key
from .devices import by_device, placed, spread

_MOST_BYTES = 2**32  # of the rounds of one call
_SHARES = 16  # of an accelerator's memory: several processes use it
_TOGETHER = 5  # horizons in one call on accelerators
SHORT = 1000  # rounds: a search for the fastest kernels would take longer than it saves
_COMPILED_SOON: dict[str, str | bool] = {"xla_gpu_autotune_level": "0", "xla_gpu_enable_triton_gemm": "False"}


def capacity_of(horizon: int) -> int:
    """The power of ten that a learner's arrays are sized by: one compilation serves all horizons up to it."""
    return _power_of_ten(horizon, 1000)


def _power_of_ten(number, at_least):
    while at_least < number:
        at_least *= 10
    return at_least


def most_bytes() -> int:
    """Of the rounds of one call in this process."""
    memory = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit", _SHARES * _MOST_BYTES)
    return min(_MOST_BYTES, memory // _SHARES)


def chunk_size(drawn: Drawn, horizon: int, most: int) -> int:
    """How many games fit into one call, whose rounds are in memory as drawn, stacked, and padded."""
    leaves = jax.tree.leaves(drawn.rounds)
    bytes_each = sum(leaf.size // len(leaf) * leaf.dtype.itemsize for leaf in leaves) * _power_of_ten(horizon, 100)
    return max(1, most // max(3 * bytes_each, 1))


def calls(horizons: list[int], device: str) -> list[list[int]]:
    """Which horizons are played in one call.

    On CPUs each in its own. Accelerators have room for some of nearly the same length, and hardly notice.
    """
    groups, falling = [], sorted(horizons, reverse=True)
    if device == "cpu":
        return [[horizon] for horizon in falling]
    for _, alike in itertools.groupby(falling, capacity_of):
        alike = list(alike)
        groups += [alike[i : i + _TOGETHER] for i in range(0, len(alike), _TOGETHER)]
    return groups


class Batch:
    """Instances, stacked once for all learners and horizons. With `certify`, their games are certified where that is
    possible: bounds on the regret at the rounds that curves keep are in `Game.certified`."""

    def __init__(self, drawn: Sequence[Drawn], seeds: Sequence[int], *, certify: bool = False):
        games = [(game.problem, game.rounds, learner_key(seed)) for game, seed in zip(drawn, seeds)]
        self._problems = [game.problem for game in drawn]
        alike = len({_signature(game) for game in games}) == 1
        self._parts = [spread(group) for group in ([games] if alike else [[game] for game in games])]
        self._certify = certify and not tree.has_element(self._problems[0].domain.start())

    def play(
        self, learner: AbstractLearner, horizons: list[int], device_lock: Callable[[], Any] = contextlib.nullcontext
    ) -> list[Played]:
        """Each game as `cx.play` would play it with `Horizon(horizon, capacity_of(horizon))`, for horizons of one
        capacity, when it is this process's turn."""
        self._check(learner)
        parts = [_call(learner, part, horizons, self._certify, device_lock) for part in self._parts]
        return [_joined(played) for played in zip(*parts)]

    def compile(self, learner: AbstractLearner, horizons: list[int]) -> None:
        """Make ready what `play` runs."""
        self._check(learner)
        for part in self._parts:
            _prepared(learner, part, horizons, self._certify)

    def _check(self, learner):
        for problem in self._problems:
            learner.check(problem)


def _joined(parts) -> Played:
    games, seconds = zip(*parts)
    return Played(jax.tree.map(lambda *leaves: np.concatenate(leaves), *games), float(np.mean(seconds)))


def _signature(games):
    """What games must share to be played in one call: code, shapes and dtypes."""
    leaves, structure = jax.tree.flatten(games)
    return structure, tuple(map(_type, leaves))


def _type(leaf):
    kind = jax.typeof(leaf)
    return jax.ShapeDtypeStruct(kind.shape, kind.dtype, weak_type=kind.weak_type)


def _arguments(learner, games, horizons, certify, mesh):
    problems, rounds, keys = games
    rounds = jax.tree.map(lambda leaf: _fitted(leaf, capacity_of(max(horizons))), rounds)
    width = 1 if len(horizons) == 1 else _TOGETHER
    filled = jnp.asarray((horizons * width)[:width], jnp.int32)
    checked = _checked_rounds(horizons, width) if certify else None
    return placed((problems, rounds, keys), (learner, filled, checked), mesh)


def _checked_rounds(horizons, width):
    """The rounds, counted from 1, that the curves of these horizons keep; 0 fills up what one program has room for."""
    wanted = np.unique(np.concatenate([marks(horizon) for horizon in horizons]))
    return jnp.asarray(np.pad(wanted, (0, width * MARKS - len(wanted))), jnp.int32)


def _prepared(learner, part, horizons, certify):
    """The program, and its arguments."""
    arguments = _arguments(learner, part.games, horizons, certify, part.mesh)
    return _program(*_signature(arguments), capacity_of(max(horizons)), part.mesh), arguments


def _call(learner, part, horizons, certify, device_lock) -> list[Played]:
    compiled, arguments = _prepared(learner, part, horizons, certify)
    with device_lock():
        began = time.perf_counter()
        outcomes = jax.block_until_ready(compiled(*arguments))
        seconds = (time.perf_counter() - began) / (sum(horizons) * part.number)
    rows = jax.tree.map(lambda leaf: _in_float64(leaf)[: part.number], outcomes)
    names, games = part.games[0].names, []
    for i, T in enumerate(horizons):
        of_horizon, bounds = jax.tree.map(lambda leaf, i=i, T=T: leaf[:, i, :T], rows)
        games.append(Played(Game.of(of_horizon, names, certified=bounds), seconds))
    return games


def _in_float64(leaf) -> np.ndarray:
    return np.asarray(leaf, np.float64 if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf.dtype)


@functools.lru_cache(maxsize=64)
def _program(structure, types, capacity, mesh) -> Any:
    """Compiled ahead, so that its time is not the games'."""

    def play(games, shared):
        (problems, rounds, keys), (learner, horizons, checked) = games, shared
        return play_all(problems, learner, rounds, keys, horizons, capacity, checked)

    short = capacity <= SHORT and jax.default_backend() == "gpu"
    lowered = by_device(play, mesh).lower(*jax.tree.unflatten(structure, types))
    return lowered.compile(compiler_options=_COMPILED_SOON if short else None)


def _fitted(leaf, capacity):
    """A power of ten of rounds, and no more than are played; what is missing is never read."""
    length = min(capacity, _power_of_ten(leaf.shape[1], 100))
    missing = length - leaf.shape[1]
    if missing <= 0:
        return leaf if missing == 0 else leaf[:, :length]
    return jnp.pad(leaf, [(0, 0), (0, missing)] + [(0, 0)] * (leaf.ndim - 2))


@functools.partial(jax.jit, static_argnames="capacity")
def play_all(problems, learner, rounds, keys, horizons, capacity, checked=None) -> tuple[Outcome, Any]:
    """Outcomes of all games, (games, horizons, rounds, ...); what follows a game's own horizon means nothing.

    And a bound on their regret after each of the rounds `checked`, NaN after others; None if there are none to check.
    """
    length = min(leaf.shape[1] for leaf in jax.tree.leaves(rounds))
    learner = as_played(problems, learner, certify=checked is not None)

    def first(problem, key, horizon):
        return begin(problem, learner, None, key, Horizon(horizon, capacity), None)

    def step(problem, rounds, state, t):
        state, _, outcome = loop.play_round(problem, learner, state, loop.at(rounds, t))
        return state, (outcome, None if checked is None else _bound(problem, state, jnp.any(checked == t + 1)))

    def outcomes(horizon, step, state):
        return loop.play_rounds(step, state, horizon, capacity=length)[1]

    def one(problem, rounds, key):
        return outcomes(horizons[0], functools.partial(step, problem, rounds), first(problem, key, horizons[0]))

    if len(horizons) == 1:  # the same in all games, so that block ends stay branches
        return jax.tree.map(lambda leaf: leaf[:, None], jax.vmap(one)(problems, rounds, keys))
    # one loop around all games is traced sooner than a loop in each
    states = jax.vmap(jax.vmap(first, (None, None, 0)), (0, 0, None))(problems, keys, horizons)
    of_all = jax.vmap(jax.vmap(step, (None, None, 0, None)), (0, 0, 0, None))
    all_games = functools.partial(jax.jit(of_all), problems, rounds)
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 2), outcomes(jnp.max(horizons), all_games, states))


def _bound(problem, state, is_checked):
    """A bound on the regret against what the lab compares with: with requests, that is the best policy."""
    nothing = jnp.full_like(state.minorants.total_loss, jnp.nan)
    return jax.lax.cond(is_checked, lambda: state.regret_bound(problem, policy=True), lambda: nothing)
