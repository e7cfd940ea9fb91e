"""Many states of one learner as rows of words, and the rounds of many campaigns as one compiled loop.

A row holds the bits of a state and of its decision. The loop runs the step of a session, so its bits are those of one.
"""

import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..games.loop import play_rounds
from ..games.state import begin
from .step import compiled_decision, compiled_reservation, compiled_step, words

_SMALLEST, _GROWTH, _LARGEST = 64, 16, 16384  # lengths of loops: each is a program of its own
_SPLIT = 256  # rows from which two loops run beside each other
_NARROW = {1: np.uint8, 2: np.uint16}  # words of smaller types, by bytes


class Layout(NamedTuple):
    """Where in a row each array of a tree is."""

    structure: Any
    kinds: tuple[tuple[tuple[int, ...], Any, Any], ...]  # shape, dtype, and of keys their kind

    @classmethod
    def of(cls, tree: Any) -> "Layout":
        leaves, structure = jax.tree.flatten(tree)
        data = [jax.eval_shape(_data, leaf) for leaf in leaves]
        impls = [jax.random.key_impl(leaf) if _is_key(leaf) else None for leaf in leaves]
        return cls(structure, tuple((one.shape, one.dtype, impl) for one, impl in zip(data, impls)))

    @property
    def size(self) -> int:
        """Words."""
        return self._cuts()[-1]

    def _cuts(self) -> list[int]:
        sizes = [math.prod(shape) * max(1, dtype.itemsize // 4) for shape, dtype, _ in self.kinds]
        return [0, *itertools.accumulate(sizes)]

    def unpack(self, row: Any) -> list:
        """The leaves of one row, in JAX."""
        cuts = self._cuts()
        return [_leaf(row[a:b], *kind) for a, b, kind in zip(cuts, cuts[1:], self.kinds)]

    def columns(self, rows: np.ndarray) -> Any:
        """The tree of many rows, in NumPy, each array with a leading axis."""
        cuts, columns = self._cuts(), []
        for a, b, (shape, dtype, _) in zip(cuts, cuts[1:], self.kinds):
            part = np.ascontiguousarray(rows[:, a:b])
            columns.append(_viewed(part, dtype).reshape(len(rows), *shape))
        return jax.tree.unflatten(self.structure, columns)


def _leaf(part, shape, dtype, impl):
    if jnp.issubdtype(dtype, jnp.bool_):
        array = part.astype(bool).reshape(shape)
    elif dtype.itemsize < 4:
        array = jax.lax.bitcast_convert_type(part.astype(_NARROW[dtype.itemsize]), dtype).reshape(shape)
    else:
        wide = (dtype.itemsize // 4,) if dtype.itemsize > 4 else ()
        array = jax.lax.bitcast_convert_type(part.reshape(*shape, *wide), dtype)
    return array if impl is None else jax.random.wrap_key_data(array, impl=impl)


def _viewed(part: np.ndarray, dtype) -> np.ndarray:
    if np.issubdtype(dtype, np.bool_):
        return part.astype(bool)
    return (part if dtype.itemsize >= 4 else part.astype(_NARROW[dtype.itemsize])).view(dtype)


class Programs:
    """The compiled loops for one problem and learner."""

    def __init__(self, problem, learner, state, horizon, start):
        self._constants, structure = jax.tree.flatten((problem, learner))
        self.states, self.decisions = Layout.of(state), Layout.of(learner.decision(state))
        self._begun = problem, learner, horizon, start
        self._steps, self._answers, self._reservations = _compiled(structure, self.states)

    @property
    def width(self) -> int:
        """Words of a row."""
        return self.states.size + self.decisions.size

    def compile(self, problem: Any, key: Any, like: Any):
        """All programs for few and for some hundred campaigns, with rounds like this one."""
        for count in (1, 2 * _SMALLEST + 1):
            rows = self.first(key, np.zeros((count, 2), np.uint32))
            rounds = jax.tree.map(lambda leaf, n=count: np.broadcast_to(leaf, (n, *leaf.shape)), like)
            answers = None
            if problem.has_requests:
                answers = self.decisions.columns(self.decide(rows, problem.request_of(rounds)))
            self.observe(rows, rounds, answers)

    def first(self, key: Any, halves: np.ndarray) -> np.ndarray:
        """The rows of new campaigns, whose keys have these numbers folded in."""
        first = functools.partial(_first_rows, *self._begun, key)
        return _in_parts(lambda *arguments: (first(*arguments),), len(halves), (halves,))[0]

    def observe(self, rows: np.ndarray, rounds: Any, played: Any) -> tuple[np.ndarray, np.ndarray]:
        """(the rows after these rounds, the outcomes of the rounds, packed). `played` may be None."""
        steps = functools.partial(self._steps, self._constants)
        after, outcomes = _in_parts(steps, len(rows), (rows, rounds, played))
        return after, outcomes

    def decide(self, rows: np.ndarray, requests: Any) -> np.ndarray:
        """The decisions for requests, as rows of words."""
        answers = functools.partial(self._answers, self._constants)
        return _in_parts(lambda *arguments: (answers(*arguments),), len(rows), (rows, requests))[0]

    def reserve(self, rows: np.ndarray, requests: Any, decisions: Any) -> np.ndarray:
        """The rows in which these decisions count as played, at their worst."""
        reservations = functools.partial(self._reservations, self._constants)
        return _in_parts(lambda *arguments: (reservations(*arguments),), len(rows), (rows, requests, decisions))[0]


@jax.jit
def _first_rows(problem, learner, horizon, start, key, halves, count):
    def row(t):
        state = begin(problem, learner, None, folded(key, *halves[t]), horizon, start)
        return words_of((state, learner.decision(state)))

    return _loop(row, count, len(halves))


@functools.lru_cache(maxsize=64)
def _compiled(structure, states: Layout):
    """(rounds of many campaigns, decisions for many requests, their reservations), for a (problem, learner) and states
    of this layout."""
    kinds = compiled_step, compiled_decision, compiled_reservation
    step, decide, reserve = (compiled(structure, states.structure) for compiled in kinds)

    @jax.jit
    def rounds_of(constants, rows, rounds, played, count):
        def row(t):
            round, at = (jax.tree.map(lambda leaf: leaf[t], tree) for tree in (rounds, played))
            state, decision, outcome = step(constants, states.unpack(rows[t]), round, at)
            return words_of((state, decision)), outcome

        return _loop(row, count, len(rows))

    @jax.jit
    def answers_of(constants, rows, requests, count):
        def row(t):
            request = jax.tree.map(lambda leaf: leaf[t], requests)
            return words_of(decide(constants, states.unpack(rows[t]), request))

        return _loop(row, count, len(rows))

    @jax.jit
    def reservations_of(constants, rows, requests, decisions, count):
        def row(t):
            request, decision = (jax.tree.map(lambda leaf: leaf[t], tree) for tree in (requests, decisions))
            state = reserve(constants, states.unpack(rows[t]), request, decision)
            learner = jax.tree.unflatten(structure, constants)[1]
            return words_of((state, learner.decision(jax.tree.unflatten(states.structure, state))))

        return _loop(row, count, len(rows))

    return rounds_of, answers_of, reservations_of


def folded(key: Any, *numbers: Any) -> Any:
    """The key with these numbers folded in."""
    return functools.reduce(jax.random.fold_in, numbers, key)


def words_of(tree: Any) -> jax.Array:
    """The bits of all arrays of a tree."""
    return jnp.concatenate([words(leaf) for leaf in jax.tree.leaves(tree)])


def _loop(row, count, capacity):
    """`row(t)` for t < count, stacked."""
    return play_rounds(lambda nothing, t: (nothing, row(t)), (), count, capacity=capacity)[1]


def _in_parts(program, count: int, trees) -> list[np.ndarray]:
    """What the program gives for all rows: loops beside each other, each padded to a length that has a program."""
    least = 2 if count >= _SPLIT else 1
    parts = np.array_split(np.arange(count), max(least, -(-count // _LARGEST)))
    started = [(len(part), program(*_padded(trees, part), np.int32(len(part)))) for part in parts]
    return [np.concatenate(pieces) for pieces in zip(*([np.asarray(x)[:n] for x in out] for n, out in started))]


def _padded(trees, part):
    length = _SMALLEST
    while length < len(part):
        length *= _GROWTH
    first, last = (part[0], part[-1] + 1) if len(part) else (0, 0)

    def pad(leaf):
        leaf = leaf[first:last]
        padded = np.zeros((length, *leaf.shape[1:]), leaf.dtype)
        padded[: len(leaf)] = leaf
        return padded

    return jax.tree.map(pad, trees)


def _is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _data(leaf):
    return jax.random.key_data(leaf) if _is_key(leaf) else jnp.asarray(leaf)
