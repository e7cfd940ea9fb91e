"""All campaigns of a fleet, and what events do to them."""

import json
from typing import Any

import jax
import numpy as np

from ..errors import SessionError
from . import blame, outcomes, packing
from .arguments import LONGEST_NAME
from .campaign_events import (
    BEGAN,
    ENDED,
    LONGEST_EVENT,
    MOST,
    MOST_ROWS,
    NewRounds,
    NotFiniteError,
    halves,
    names_and_rows,
    of_users,
    row_of,
)
from .fleet_totals import FleetTotals
from .rows import Programs, folded
from .schema import RoundSchema
from .storage.database import Damaged, checksum
from .storage.events import DECIDED, OBSERVED, SKIPPED, Event


class Campaigns:
    """One row each; everything in a fleet that changes with its events."""

    keeps_outcomes = False  # of rounds that are forgotten
    remedy = "restore it from a backup"
    or_replay = ""  # a fleet cannot be replayed

    def __init__(self, problem, learner, key, horizon, start, example):
        self.problem, self.learner, self.constraints, self.key = problem, learner, problem.constraints, key
        self.programs = Programs(problem, learner, example, horizon, start)
        self.rows: dict[str, int] = {}
        self._free: list[int] = []  # rows of campaigns that ended, the last one first
        self.totals = FleetTotals(self.constraints)
        self.request_schema: RoundSchema | None = None  # fixed by the first request
        self.columns = self._empty(0, False)

    def _empty(self, rows: int, with_requests: bool) -> dict[str, np.ndarray]:
        size = self.request_schema.size if with_requests and self.request_schema is not None else 0
        return {
            "words": np.zeros((rows, self.programs.width), np.uint32),
            "open": np.zeros(rows, bool),  # whether a request was decided and not observed
            "request": np.zeros((rows, size), np.uint8),
            "answer": np.zeros((rows, self.programs.decisions.size if with_requests else 0), np.uint32),
        }

    @property
    def capacity(self) -> int:
        return len(self.columns["open"])

    def _grow(self, rows: int):
        more = self._empty(rows, self.request_schema is not None)
        for name, column in self.columns.items():
            more[name][: len(column)] = column if column.shape[1:] == more[name].shape[1:] else 0
        self.columns = more
        self.totals.grow(rows)

    def fix_requests(self, schema: RoundSchema):
        """From now on every request has this schema."""
        self.request_schema = schema
        self._grow(self.capacity)

    def key_of(self, name: str) -> Any:
        """The key of a campaign: that of a session that takes the same decisions."""
        return folded(self.key, *halves(name))

    def compile(self, like: Any):
        """Compile the programs for rounds like this one; nothing changes."""
        of_users(lambda: self.programs.compile(self.problem, self.key, like), "the loss or a constraint failed")

    def begin_event(self, names: list[str]) -> Event:
        """The event of campaigns that begin, in rows that ended or new ones."""
        fresh = range(self.capacity_used, self.capacity_used + len(names))
        rows = [*reversed(self._free), *fresh][: len(names)]
        return Event(BEGAN, None, json.dumps([names, rows]).encode(), None, None)

    @property
    def capacity_used(self) -> int:
        return len(self.rows) + len(self._free)

    def begin(self, event: Event):
        names, rows = names_and_rows(event)
        used = set(self._free)
        expected = iter(range(self.capacity_used, MOST_ROWS))
        if any(name in self.rows for name in names) or any(row not in used and row != next(expected) for row in rows):
            raise Damaged("campaigns that begin twice")
        if max(rows) >= self.capacity:
            self._grow(max(64, 2 * self.capacity, max(rows) + 1))
        numbers = np.array([halves(name) for name in names], np.uint32)
        self.columns["words"][rows] = self.programs.first(self.key, numbers)
        self.columns["open"][rows] = False
        self.totals.clear(np.array(rows))
        taken = set(rows)
        self._free = [row for row in self._free if row not in taken]
        self.rows.update(zip(names, rows))

    def end_event(self, names: list[str]) -> Event:
        return Event(ENDED, None, json.dumps([names, [self.rows[name] for name in names]]).encode(), None, None)

    def end(self, event: Event):
        names, rows = names_and_rows(event)
        if [self.rows.get(name) for name in names] != rows:
            raise Damaged("campaigns that end without a beginning")
        for name in names:
            self._free.append(self.rows.pop(name))

    def decisions(self, rows: np.ndarray) -> Any:
        """In NumPy, each array with a leading axis."""
        return self.programs.decisions.columns(self.columns["words"][rows, self.programs.states.size :])

    def answers(self, rows: np.ndarray) -> Any:
        """Those that were given to open requests."""
        return self.programs.decisions.columns(self.columns["answer"][rows])

    def requests(self, schema: RoundSchema, rows: np.ndarray) -> Any:
        return packing.unstack_like(schema.like, self.columns["request"][rows].tobytes(), len(rows))

    def decide_event(self, rows: np.ndarray, requests: Any) -> tuple[Event, np.ndarray]:
        """(the event of these requests, their answers as words)."""
        answers = of_users(lambda: self.programs.decide(self.columns["words"][rows], requests), "no decision is taken")
        columns = self.programs.decisions.columns(answers)
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(columns)):
            raise SessionError("a decision for these requests is not finite, although their data are; correct them")
        data = rows.astype(np.int32).tobytes() + packing.pack_rows(requests, len(rows)).tobytes()
        return Event(DECIDED, None, data, None, checksum(answers.tobytes())), answers

    def decide(self, rows: np.ndarray, requests: Any, answers: np.ndarray):
        self.columns["open"][rows] = True
        self.columns["request"][rows] = packing.pack_rows(requests, len(rows))
        self.columns["answer"][rows] = answers

    def skip_event(self, rows: np.ndarray) -> tuple[Event, np.ndarray]:
        """(the event of open requests that are given up, the words after it): what they reserved stays reserved."""
        after, mark, schema = self.columns["words"][rows], None, self.request_schema
        if self.learner.reserves and schema is not None:
            after = self.programs.reserve(after, self.requests(schema, rows), self.answers(rows))
            mark = checksum(after.tobytes())
        return Event(SKIPPED, None, rows.astype(np.int32).tobytes(), None, mark), after

    def skip(self, rows: np.ndarray, after: np.ndarray):
        self.columns["words"][rows] = after
        self.columns["open"][rows] = False

    def observe_event(self, rows: np.ndarray, rounds: Any, played: Any) -> tuple[Event, NewRounds]:
        """(the event of these rounds, what they do); an error if one of them is bad."""
        words = self.columns["words"][rows]
        at = self.answers(rows) if played is None and self.problem.has_requests else played
        after, numbers = of_users(
            lambda: self.programs.observe(words, rounds, at), "the loss or a constraint failed on these rounds"
        )
        numbers = numbers.astype(np.float64)
        outcome = outcomes.unpacked(numbers, self.constraints)
        if not np.all(outcome.finite):
            place = int(np.argmin(outcome.finite))
            raise NotFiniteError(place, self._why_not_finite(words[place], numbers[place], row_of(rounds, place)))
        data = rows.astype(np.int32).tobytes() + packing.pack_rows(rounds, len(rows)).tobytes()
        played_data = None if played is None else packing.pack_rows(played, len(rows)).tobytes()
        return Event(OBSERVED, None, data, played_data, numbers.tobytes()), NewRounds(rows, after, numbers)

    def _why_not_finite(self, words, numbers, round) -> str:
        state = jax.tree.map(
            lambda leaf: leaf[0], self.programs.states.columns(words[None, : self.programs.states.size])
        )
        left = self.learner.rounds_left(state)
        if left is not None and int(left) < 1:
            return "it has no rounds left; begin a fleet with a larger horizon="
        return blame.not_finite(self.problem, outcomes.unpacked(numbers, self.constraints), round)

    def observe(self, new: NewRounds):
        self.columns["words"][new.rows] = new.after
        self.columns["open"][new.rows] = False
        self.totals.add(new.rows, new.numbers)

    def play(self, schema: RoundSchema | None, event: Event) -> bytes | None:
        """Play a stored event again; returns its outcome as a journal stores it."""
        if event.round is None:
            raise Damaged("a round that is missing")
        if event.kind in (BEGAN, ENDED):
            (self.begin if event.kind == BEGAN else self.end)(event)
            return None
        if event.kind == SKIPPED:
            rows, _ = self._rows_in(event.round, 0)
            again, after = self.skip_event(rows)
            self.skip(rows, after)
            return again.outcome
        schema = self.request_schema if event.kind == DECIDED else schema
        if event.kind not in (DECIDED, OBSERVED) or schema is None:
            raise Damaged("an event of an unknown kind")
        rows, rest = self._rows_in(event.round, schema.size)
        data = packing.unstack_like(schema.like, rest, len(rows))
        if event.kind == DECIDED:
            again, answers = self.decide_event(rows, data)
            self.decide(rows, data, answers)
            return again.outcome
        played = None if event.played is None else self._played_in(event.played, len(rows))
        again, new = self.observe_event(rows, data, played)
        self.observe(new)
        return again.outcome

    def _rows_in(self, data: bytes, size: int) -> tuple[np.ndarray, bytes]:
        """(rows, the other bytes) of an event with `size` bytes a row beside its number."""
        count, left = divmod(len(data), 4 + size)
        rows = np.frombuffer(data, np.int32, count).astype(np.int64)
        live = np.isin(rows, np.fromiter(self.rows.values(), np.int64, len(self.rows)))
        if left or not count or not live.all() or len(np.unique(rows)) < count:
            raise Damaged("rounds of campaigns that are not there")
        return rows, data[4 * count :]

    def _played_in(self, data: bytes, count: int) -> Any:
        like = jax.tree.map(lambda leaf: leaf[0], self.decisions(np.zeros(1, np.int64)))
        if len(data) != count * packing.size_like(like):
            raise Damaged("decisions of another size")
        return packing.unstack_like(like, data, count)

    def largest_field(self, schema: RoundSchema | None) -> int:
        """The largest size of one field of an event, in bytes."""
        sizes = [0 if one is None else one.size for one in (schema, self.request_schema)]
        widest = max(*sizes, 8 * outcomes.width(self.constraints), 8 * self.programs.decisions.size)
        return max(MOST * (4 + widest), LONGEST_EVENT)

    longest_notes = 1 << 12

    def notes(self) -> dict:
        """As JSON; with `arrays` it is the whole state."""
        return {"rows": self.capacity, "names": len(self._names()), "requests": self.request_schema is not None}

    def _names(self) -> bytes:
        return json.dumps([self.rows, self._free]).encode()

    def arrays(self):
        names = np.frombuffer(self._names(), np.uint8)
        return names, jax.random.key_data(self.key), self.columns, self.totals.columns

    def arrays_like(self, notes: dict):
        """Arrays of the shapes that belong to notes, which are not trusted; ValueError if the notes cannot be."""
        match notes:
            case {"rows": int(rows), "names": int(names), "requests": bool(asked)} if 0 <= rows <= MOST_ROWS:
                if 0 <= names <= 64 + rows * (6 * LONGEST_NAME + 16):
                    none = self._empty(0, asked), self.totals.empty(0)
                    like = jax.tree.map(lambda leaf: packing.nothing((rows, *leaf.shape[1:]), leaf.dtype), none)
                    return packing.nothing((names,), np.uint8), jax.random.key_data(self.key), *like
        raise ValueError("not the notes of a fleet")

    def restore(self, notes: dict, arrays):
        names, key, self.columns, self.totals.columns = arrays
        try:
            self.rows, self._free = json.loads(names.tobytes())
        except (ValueError, TypeError, RecursionError):
            raise Damaged("the names of its campaigns") from None
        self.key = jax.random.wrap_key_data(key, impl=jax.random.key_impl(self.key))
        if self.request_schema is not None and not notes["requests"]:  # fixed after that snapshot
            self._grow(self.capacity)
