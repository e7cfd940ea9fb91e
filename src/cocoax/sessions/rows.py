"""The rounds of many campaigns as one compiled loop, over rows of words.

A row holds the bits of a state and of its decision. The loop runs the step of a session, so its bits are those of one.
"""

import functools
from typing import Any

import jax
import numpy as np

from ..errors import DomainError
from ..games.loop import play_rounds
from ..games.state import begin
from ..learners.budgets import updated
from .layout import Layout, words_of
from .step import compiled_decision, compiled_reservation, compiled_step

_SMALLEST, _GROWTH, _LARGEST = 64, 8, 4096  # lengths of loops: each is a program of its own
_SPLIT = 256  # rows from which two loops run beside each other
SIZES = 1, 2 * _SMALLEST + 1  # calls of so many campaigns need all programs that up to 1,024 campaigns need


class Picked:
    """Some rows of a table of words, which are copied when a program needs them."""

    def __init__(self, table: np.ndarray, index: np.ndarray):
        self._table, self._index = table, index

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, places: Any) -> "Picked":
        return Picked(self._table, self._index[places])

    def copy(self) -> np.ndarray:
        return self._table[self._index]

    def padded(self, length: int) -> np.ndarray:
        rows = np.empty((length, self._table.shape[1]), self._table.dtype)
        np.take(self._table, self._index, axis=0, out=rows[: len(self)], mode="clip")
        return rows


class Programs:
    """The compiled loops for one problem and learner, of which each campaign has so many copies."""

    def __init__(self, problem, learner, state, horizon, start, copies: int = 1):
        self._constants, structure = jax.tree.flatten((problem, learner))
        self.states, self.decisions = Layout.of(state), Layout.of(learner.decision(state))
        self._begun, self._copies = (problem, learner, horizon, start), copies
        self._steps, self._answers, self._reservations, self._reserved = _compiled(structure, self.states)
        self._budgets = _budgets_of(structure, self.states)

    @property
    def width(self) -> int:
        """Words of a row."""
        return self.states.size + self.decisions.size

    def first(self, key: Any, halves: np.ndarray) -> np.ndarray:
        """The rows of all copies of new campaigns, whose keys have these numbers folded in."""
        first = functools.partial(_first_rows, *self._begun, self._copies, key)
        return _in_parts(lambda *arguments: (first(*arguments),), len(halves), (halves,))[0]

    def observe(self, rows: Picked, rounds: Any, played: Any) -> tuple[np.ndarray, np.ndarray]:
        """(the rows after these rounds, the outcomes of the rounds, packed). `played` may be None."""
        steps = functools.partial(self._steps, self._constants)
        after, outcomes = _in_parts(steps, len(rows), (rows, rounds, played))
        return after, outcomes

    def decide(self, rows: Picked, requests: Any) -> np.ndarray:
        """The decisions for requests, as rows of words."""
        return self._one(self._answers, rows, requests)

    def reserve(self, rows: Picked, requests: Any, decisions: Any) -> np.ndarray:
        """The rows in which these decisions count as played, at their worst."""
        return self._one(self._reservations, rows, requests, decisions)

    def reserve_all(self, rows: Picked, requests: Any, decisions: Any, counts: np.ndarray) -> np.ndarray:
        """As `reserve`, for the first `counts` of several decisions of each row, along a second axis."""
        return self._one(self._reserved, rows, requests, decisions, counts)

    def set_budgets(self, rows: Picked, budgets: np.ndarray) -> np.ndarray:
        """The rows with other budgets, whose float64 numbers are kept in two parts."""
        dtype = jax.dtypes.canonicalize_dtype(float)
        near = budgets.astype(dtype)
        return self._one(self._budgets, rows, near, (budgets - near.astype(float)).astype(dtype))

    def outside(self, domain: Any, points: Any, count: int, tolerance: float) -> np.ndarray:
        """Which points do not lie in the domain; none where it cannot tell."""
        try:
            program = functools.partial(_outside, domain, tolerance)
            return _in_parts(lambda *arguments: (program(*arguments),), count, (points,))[0]
        except DomainError:
            return np.zeros(count, bool)

    def _one(self, program, rows, *trees) -> np.ndarray:
        call = functools.partial(program, self._constants)
        return _in_parts(lambda *arguments: (call(*arguments),), len(rows), (rows, *trees))[0]


@functools.partial(jax.jit, static_argnums=4)
def _first_rows(problem, learner, horizon, start, copies, key, halves, count):
    def first(key):
        state = begin(problem, learner, None, key, horizon, start)
        return words_of((state, learner.decision(state)))

    def row(t):
        own = folded(key, *halves[t])
        keys = own[None] if copies == 1 else jax.random.split(own, copies)  # as in a session
        return jax.lax.map(first, keys)

    return _loop(row, count, len(halves))


@functools.partial(jax.jit, static_argnums=1)
def _outside(domain, tolerance, points, count):
    def row(t):
        return ~domain.contains(jax.tree.map(lambda leaf: leaf[t], points), tolerance)

    return _loop(row, count, len(jax.tree.leaves(points)[0]))


@functools.lru_cache(maxsize=64)
def _compiled(structure, states: Layout):
    """(rounds of many campaigns, decisions for many requests, one reservation of each, several of each), for a
    (problem, learner) and states of this layout."""
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
            return _row_of(structure, states, constants, reserve(constants, states.unpack(rows[t]), request, decision))

        return _loop(row, count, len(rows))

    @jax.jit
    def all_reservations_of(constants, rows, requests, decisions, counts, count):
        def row(t):
            def one(j, state):
                request, decision = (jax.tree.map(lambda leaf: leaf[t, j], tree) for tree in (requests, decisions))
                return reserve(constants, state, request, decision)

            state = jax.lax.fori_loop(np.int32(0), counts[t], one, states.unpack(rows[t]))
            return _row_of(structure, states, constants, state)

        return _loop(row, count, len(rows))

    return rounds_of, answers_of, reservations_of, all_reservations_of


@functools.lru_cache(maxsize=64)
def _budgets_of(structure, states: Layout):
    """`budgets(constants, rows, near, beyond, count)`: rows with other budgets."""

    @jax.jit
    def budgets_of(constants, rows, near, beyond, count):
        def row(t):
            learner = jax.tree.unflatten(structure, constants)[1]
            state = jax.tree.unflatten(states.structure, states.unpack(rows[t]))

            def with_budget(keeper, state):
                return keeper.with_budget(state, near[t], beyond[t])

            return _row_of(structure, states, constants, updated(learner, state, with_budget))

        return _loop(row, count, len(rows))

    return budgets_of


def _row_of(structure, states: Layout, constants, state) -> jax.Array:
    """The words of a state, or of its leaves, and its decision."""
    state = jax.tree.unflatten(states.structure, jax.tree.leaves(state))
    return words_of((state, jax.tree.unflatten(structure, constants)[1].decision(state)))


def folded(key: Any, *numbers: Any) -> Any:
    """The key with these numbers folded in."""
    return functools.reduce(jax.random.fold_in, numbers, key)


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
        if isinstance(leaf, Picked):
            return leaf.padded(length)
        padded = np.zeros((length, *leaf.shape[1:]), leaf.dtype)
        padded[: len(leaf)] = leaf
        return padded

    return jax.tree.map(pad, trees)
