"""Many games in one compiled call, for any horizon up to a capacity."""

import functools
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._state import begin
from ..learners.base import AbstractLearner, Horizon
from .sources import Drawn, learner_key

_MOST_BYTES = 2**32  # of the rounds of one call


class Record(NamedTuple):
    """What games came to, as NumPy arrays of float64 with a leading axis of games, and T rounds."""

    loss: np.ndarray  # (games, T)
    constraint: np.ndarray  # (games, T, m)
    multiplier: np.ndarray  # (games, T, m)
    lmo_calls: np.ndarray  # (games, T)
    gradient_calls: np.ndarray  # (games, T)
    bad_round: np.ndarray  # (games,): the first that was not finite, or -1
    seconds: float  # a game and round, without compilation


def capacity_of(horizon: int) -> int:
    """The power of ten that arrays are sized by: one compilation serves all horizons up to it."""
    capacity = 100
    while capacity < horizon:
        capacity *= 10
    return capacity


def chunk_size(drawn: Drawn, horizon: int) -> int:
    """How many games fit into one call, whose rounds are in memory as drawn, stacked, and padded."""
    leaves = jax.tree.leaves(drawn.rounds)
    bytes_each = sum(leaf.size // len(leaf) * leaf.dtype.itemsize for leaf in leaves) * capacity_of(horizon)
    return max(1, _MOST_BYTES // max(3 * bytes_each, 1))


class Batch:
    """Instances, stacked once for all learners and horizons."""

    def __init__(self, drawn: list[Drawn], seeds: list[int]):
        games = [(each.problem, each.rounds, learner_key(seed)) for each, seed in zip(drawn, seeds)]
        self._problems = [each.problem for each in drawn]
        alike = len({_form(game) for game in games}) == 1
        self._parts = [_stacked(group) for group in ([games] if alike else [[game] for game in games])]

    def play(self, learner: AbstractLearner, horizon: int) -> Record:
        """Each game as `play` would play it with `Horizon(horizon, capacity_of(horizon))`."""
        for problem in self._problems:
            learner.check(problem)
        *arrays, seconds = zip(*(_call(learner, part, horizon) for part in self._parts))
        return Record(*map(np.concatenate, arrays), seconds=float(np.mean(seconds)))


def _form(game):
    """What games must share to be played in one call: code, shapes and dtypes."""
    leaves, structure = jax.tree.flatten(game)
    return structure, tuple(map(jax.typeof, leaves))


def _stacked(games):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *games)


def _call(learner, games, horizon) -> Record:
    problems, rounds, keys = games
    capacity = capacity_of(horizon)
    rounds = jax.tree.map(lambda leaf: _fitted(leaf, capacity), rounds)
    arguments = (problems, learner, rounds, keys, jnp.asarray(horizon, jnp.int32))
    compiled = _compiled(*_form(arguments), capacity)
    began = time.perf_counter()
    outcomes = jax.block_until_ready(compiled(*arguments))
    seconds = (time.perf_counter() - began) / (horizon * len(keys))
    found = jax.tree.map(lambda leaf: np.asarray(leaf)[:, :horizon], outcomes)
    bad = ~found.finite
    return Record(
        loss=np.asarray(found.loss, np.float64),
        constraint=np.asarray(found.constraint, np.float64),
        multiplier=np.asarray(found.multiplier, np.float64),
        lmo_calls=found.lmo_calls,
        gradient_calls=found.gradient_calls,
        bad_round=np.where(bad.any(1), bad.argmax(1), -1),
        seconds=seconds,
    )


@functools.lru_cache(maxsize=64)
def _compiled(structure, types, capacity):
    """Compiled ahead, so that its time is not the games'."""
    return _play.lower(*jax.tree.unflatten(structure, types), capacity=capacity).compile()


@functools.partial(jax.jit, static_argnames="capacity")
def _play(problems, learner, rounds, keys, horizon, capacity):
    """T is traced and the same in all games, so block ends stay branches; rounds are read one at a time."""

    def one(problem, rounds, key):
        state = begin(problem, learner, None, key, Horizon(horizon, capacity), None)

        def outcome_of(state):
            return learner.observe(problem, state, jax.tree.map(lambda leaf: leaf[0], rounds))[1]

        def one_round(t, carry):
            state, record = carry
            state, outcome = learner.observe(problem, state, jax.tree.map(lambda leaf: leaf[t], rounds))
            return state, jax.tree.map(lambda kept, new: kept.at[t].set(new), record, outcome)

        empty = jax.tree.map(
            lambda leaf: jnp.ones((capacity, *leaf.shape), leaf.dtype), jax.eval_shape(outcome_of, state)
        )
        return jax.lax.fori_loop(0, horizon, one_round, (state, empty))[1]

    return jax.vmap(one)(problems, rounds, keys)


def _fitted(leaf, capacity):
    """Exactly `capacity` rounds; what is missing is never read."""
    missing = capacity - leaf.shape[1]
    if missing <= 0:
        return leaf if missing == 0 else leaf[:, :capacity]
    return jnp.pad(leaf, [(0, 0), (0, missing)] + [(0, 0)] * (leaf.ndim - 2))
