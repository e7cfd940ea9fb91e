"""Many games in one compiled call, for any horizon up to a capacity."""

import functools
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core import tree
from ...core.compiling import options
from ...games import loop
from ...games.game import Game
from ...games.movement import as_played
from ...games.state import begin
from ...learners.base import AbstractLearner, Horizon, Outcome
from ..results.rows import MARKS, Played, marks
from ..sources import Drawn, learner_key
from .devices import by_device, device_turn, placed, spread

_MOST_BYTES = 2**32  # of the rounds of one call
_SHARES = 16  # of an accelerator's memory: several processes use it
TOGETHER = 5  # horizons in one call on accelerators, which hardly notice
_SHORT = 1000  # rounds: programs of so few need not be the fastest


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


class Batch:
    """Instances, stacked once for all learners and horizons. With `certify`, their games are certified where that is
    possible: bounds on the regret at the rounds that curves keep are in `Game.certified`."""

    def __init__(self, drawn: Sequence[Drawn], seeds: Sequence[int], *, certify: bool = False):
        games = [(game.problem, game.rounds, learner_key(seed)) for game, seed in zip(drawn, seeds)]
        self._problems = [game.problem for game in drawn]
        alike = len({_signature(game) for game in games}) == 1
        self._parts = [spread(group) for group in ([games] if alike else [[game] for game in games])]
        self._certify = certify and not tree.has_element(self._problems[0].domain.start())

    def play(self, learner: AbstractLearner, *horizons: int) -> list[Played]:
        """Each game as `cx.play` would play it with `Horizon(horizon, capacity_of(horizon))`.

        For one horizon, or at most `TOGETHER` of one capacity."""
        for problem in self._problems:
            learner.check(problem)
        parts = [_call(learner, part, horizons, self._certify) for part in self._parts]
        return [_joined(*zip(*of_horizon)) for of_horizon in zip(*parts)]


def _joined(games, seconds) -> Played:
    return Played(jax.tree.map(lambda *leaves: np.concatenate(leaves), *games), float(np.mean(seconds)))


def _signature(games):
    """What games must share to be played in one call: code, shapes and dtypes."""
    leaves, structure = jax.tree.flatten(games)
    return structure, tuple(map(_type, leaves))


def _type(leaf):
    kind = jax.typeof(leaf)
    return jax.ShapeDtypeStruct(kind.shape, kind.dtype, weak_type=kind.weak_type)


def _prepared(learner, part, horizons, certify):
    """The program, and its arguments. One program has room for one horizon, or for `TOGETHER`."""
    capacity, (problems, rounds, keys) = capacity_of(max(horizons)), part.games
    rounds = jax.tree.map(lambda leaf: _fitted(leaf, capacity), rounds)
    width = 1 if len(horizons) == 1 else TOGETHER
    checked = None
    if certify:  # the rounds that the curves of all these horizons keep
        wanted = np.unique(np.concatenate([marks(horizon) for horizon in horizons]))
        checked = jnp.asarray(np.resize(wanted, width * MARKS), jnp.int32)
    shared = learner, jnp.asarray(np.resize(horizons, width), jnp.int32), checked
    arguments = placed((problems, rounds, keys), shared, part.mesh)
    return _program(*_signature(arguments), capacity, part.mesh), arguments


def _call(learner, part, horizons, certify) -> list[Played]:
    compiled, arguments = _prepared(learner, part, horizons, certify)
    with device_turn():
        began = time.perf_counter()
        outcomes = jax.block_until_ready(compiled(*arguments))
        seconds = (time.perf_counter() - began) / (sum(horizons) * part.number)
    rows = jax.tree.map(lambda leaf: _in_float64(leaf)[: part.number], outcomes)
    names, played = part.games[0].names, []
    for i, horizon in enumerate(horizons):
        outcome, bounds = jax.tree.map(lambda leaf, i=i, horizon=horizon: leaf[:, i, :horizon], rows)
        played.append(Played(Game.of(outcome, names, certified=bounds), seconds))
    return played


def _in_float64(leaf) -> np.ndarray:
    return np.asarray(leaf, np.float64 if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf.dtype)


@functools.lru_cache(maxsize=64)
def _program(structure, types, capacity, mesh) -> Any:
    """Compiled ahead, so that its time is not the games'."""

    def play(games, shared):
        (problems, rounds, keys), (learner, horizons, checked) = games, shared
        return play_all(problems, learner, rounds, keys, horizons, capacity, checked)

    short = capacity <= _SHORT and jax.default_backend() == "gpu"
    lowered = by_device(play, mesh).lower(*jax.tree.unflatten(structure, types))
    return lowered.compile(compiler_options=options(once=True) if short else None)


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

    def one(problem, rounds, key):
        of_one = functools.partial(step, problem, rounds)
        return loop.play_rounds(of_one, first(problem, key, horizons[0]), horizons[0], capacity=length)[1]

    if len(horizons) == 1:  # the same in all games, so that block ends stay branches
        return jax.tree.map(lambda leaf: leaf[:, None], jax.vmap(one)(problems, rounds, keys))
    states = jax.vmap(jax.vmap(first, (None, None, 0)), (0, 0, None))(problems, keys, horizons)
    of_all = functools.partial(jax.vmap(jax.vmap(step, (None, None, 0, None)), (0, 0, 0, None)), problems, rounds)
    rows = loop.play_rounds(of_all, states, jnp.max(horizons), capacity=length)[1]
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 2), rows)


def _bound(problem, state, is_checked):
    """A bound on the regret against what the lab compares with: with requests, that is the best policy."""
    nothing = jnp.full_like(state.minorants.total_loss, jnp.nan)
    return jax.lax.cond(is_checked, lambda: state.regret_bound(problem, policy=True), lambda: nothing)
