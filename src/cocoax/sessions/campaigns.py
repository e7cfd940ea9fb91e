"""All campaigns of a fleet, and what events do to them."""

import copy
import json
from typing import Any

import jax
import numpy as np

from ..errors import SessionError
from ..learners.budgets import budget_count
from . import blame, outcomes, packing, slots
from .arguments import LONGEST_NAME
from .campaign_events import (
    BEGAN,
    CHANGED,
    ENDED,
    LONGEST_EVENT,
    LONGEST_NUMBER,
    MOST,
    MOST_ROWS,
    halves,
    names_and_rows,
    rows_and_data,
)
from .fleet_totals import FleetTotals
from .outcomes import LONGEST_REMARKS, split
from .rows import Picked, Programs, folded
from .schema import RoundSchema
from .storage.database import Damaged
from .storage.events import DECIDED, OBSERVED, SKIPPED, Event
from .turn import Turn


class Campaigns:
    """One row each; everything in a fleet that changes with its events."""

    keeps_outcomes = False  # of rounds that are forgotten
    remedy = "restore it from a backup"
    or_replay = ""  # a fleet cannot be replayed

    def __init__(self, problem, learner, key, horizon, start, example, *, pending=0, copies=1, expires=None):
        self.problem, self.learner, self.constraints, self.key = problem, learner, problem.constraints, key
        self.pending, self.copies, self.expires = pending, copies, expires
        self.budgets = budget_count(learner)
        self.programs = Programs(problem, learner, example, horizon, start, copies)
        self.rows: dict[str, int] = {}
        self._free: list[int] = []  # rows of campaigns that ended, the last one first
        self.totals = FleetTotals(self.constraints)
        self.request_schema: RoundSchema | None = None  # fixed by the first request
        self.columns = self._empty(0, False)
        slots.check_size(self.columns, pending, copies)

    @property
    def most_waiting(self) -> int:
        """How many decisions of a campaign may wait for their rounds."""
        return self.pending or int(self.problem.has_requests)

    def _empty(self, rows: int, with_requests: bool) -> slots.Columns:
        request = self.request_schema.size if with_requests and self.request_schema is not None else 0
        sizes = request, self.programs.decisions.size, outcomes.width(self.constraints)
        words = np.zeros((rows, self.copies, self.programs.width), np.uint32)
        return {"words": words} | slots.empty(rows, self.most_waiting, self.copies, bool(self.pending), *sizes)

    @property
    def capacity(self) -> int:
        return len(self.columns["words"])

    def _grow(self, rows: int):
        more = self._empty(rows, self.request_schema is not None)
        for name, column in self.columns.items():
            more[name][: len(column)] = column if column.shape[1:] == more[name].shape[1:] else 0
        self.columns = more
        self.totals.grow(rows)

    def fork(self) -> "Campaigns":
        """The same campaigns, in which others may begin, and requests get a schema, without a change here.

        Rows that are in use are the same ones. Others may be written to: a campaign that begins clears its own.
        """
        other = copy.copy(self)
        other.rows, other._free, other.totals = dict(self.rows), list(self._free), copy.copy(self.totals)
        return other

    def fix_requests(self, schema: RoundSchema):
        """From now on every request has this schema."""
        self.request_schema = schema
        self._grow(self.capacity)

    def key_of(self, name: str) -> Any:
        """The key of a campaign: that of a session that takes the same decisions."""
        return folded(self.key, *halves(name))

    def begin_event(self, names: list[str], budgets: np.ndarray | None = None) -> Event:
        """The event of campaigns that begin, in rows that ended or new ones; with budgets of their own, or without."""
        fresh = range(self.capacity_used, self.capacity_used + len(names))
        rows = [*reversed(self._free), *fresh][: len(names)]
        own = [] if budgets is None else [budgets.tolist()]
        return Event(BEGAN, None, json.dumps([names, rows, *own]).encode(), None, None)

    @property
    def capacity_used(self) -> int:
        return len(self.rows) + len(self._free)

    def begin(self, event: Event):
        names, rows, *budgets = names_and_rows(event, self.budgets)
        used = set(self._free)
        expected = iter(range(self.capacity_used, MOST_ROWS))
        if any(name in self.rows for name in names) or any(row not in used and row != next(expected) for row in rows):
            raise Damaged("campaigns that begin twice")
        if max(rows) >= self.capacity:
            self._grow(max(64, 2 * self.capacity, max(rows) + 1))
        numbers = np.array([halves(name) for name in names], np.uint32)
        for column, first in self._empty(1, self.request_schema is not None).items():
            self.columns[column][rows] = first
        self.columns["words"][rows] = self.programs.first(self.key, numbers)
        if budgets:
            words = Picked(self.columns["words"][:, 0], np.array(rows))
            self.columns["words"][rows, 0] = self.programs.set_budgets(words, budgets[0])
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

    def rows_of(self, names: list[str]) -> np.ndarray:
        """The rows of these campaigns; an error if one is not there."""
        try:
            return np.fromiter(map(self.rows.__getitem__, names), np.int64, len(names))
        except KeyError as unknown:
            raise SessionError(f"there is no campaign {unknown.args[0]!r}; it has not begun, or has ended") from None

    def decisions(self, rows: np.ndarray) -> Any:
        """In NumPy, each array with a leading axis."""
        return self.programs.decisions.columns(self.columns["words"][rows, 0, self.programs.states.size :])

    def states(self, rows: np.ndarray, copy: int = 0) -> Any:
        """In NumPy, each array with a leading axis."""
        return self.programs.states.columns(self.columns["words"][rows, copy, : self.programs.states.size])

    def store(self, turn: Turn):
        """Let a call count."""
        for name, column in turn.changed().items():
            self.columns[name][turn.rows] = column
        for rows, numbers in turn.observed:
            self.totals.add(rows, numbers)

    def why_not_finite(self, words, numbers, round) -> str:
        size = self.programs.states.size
        state = jax.tree.map(lambda leaf: leaf[0], self.programs.states.columns(words[None, :size]))
        left = self.learner.rounds_left(state)
        if left is not None and int(left) < 1:
            return "it has no rounds left; begin a fleet with a larger horizon="
        return blame.not_finite(self.problem, outcomes.unpacked(numbers, self.constraints), round)

    def play(self, schema: RoundSchema | None, event: Event) -> bytes | None:
        """Play a stored event again; returns its outcome as a journal stores it."""
        if event.round is None:
            raise Damaged("a round that is missing")
        if event.kind in (BEGAN, ENDED):
            (self.begin if event.kind == BEGAN else self.end)(event)
            return None
        like = self._like(schema, event.kind)
        rows, tickets, rest = rows_and_data(event.round, packing.size_like(like), self._has_tickets(event.kind))
        live = np.isin(rows, np.fromiter(self.rows.values(), np.int64, len(self.rows)))
        if not live.all() or len(np.unique(rows)) < len(rows):
            raise Damaged("rounds of campaigns that are not there")
        turn, data = Turn(self, rows), None if like is None else packing.unstack_like(like, rest, len(rows))
        self._again(turn, event, tickets, data)
        self.store(turn)
        return turn.events[0].outcome

    def _has_tickets(self, kind: str) -> bool:
        return bool(self.pending) and kind != CHANGED

    def _like(self, schema: RoundSchema | None, kind: str) -> Any:
        """What an event has of each campaign beside its row and ticket."""
        if kind == CHANGED and self.budgets:
            return np.zeros(self.budgets)
        asks = self.problem.has_requests
        if self.most_waiting and (kind == SKIPPED or (kind == DECIDED and not asks)):
            return None
        known = schema if kind == OBSERVED else self.request_schema if kind == DECIDED and asks else None
        if known is None:
            raise Damaged("an event of an unknown kind")
        return known.like

    def _again(self, turn: Turn, event: Event, tickets, data):
        """Play an event on these campaigns."""
        at = np.arange(len(turn.rows))
        if event.kind == CHANGED:
            return turn.change(at, data)
        if self.most_waiting:
            waits = slots.find(turn.columns, at, tickets) >= 0
            if waits.any() if event.kind == DECIDED else not waits.all():
                raise Damaged("a ticket that was never given, or was given twice")
        if event.kind == DECIDED:
            return turn.decide(at, tickets, data)
        if event.kind == SKIPPED:
            return turn.skip(at, tickets)
        try:
            remarks = split(event.outcome or b"")[1]
        except ValueError:
            raise Damaged("the outcomes of its rounds") from None
        played = None if event.played is None else self._played_in(event.played, len(at))
        turn.observe(at, tickets, data, played, remarks)

    def _played_in(self, data: bytes, count: int) -> Any:
        like = jax.tree.map(lambda leaf: leaf[0], self.decisions(np.zeros(1, np.int64)))
        if len(data) != count * packing.size_like(like):
            raise Damaged("decisions of another size")
        return packing.unstack_like(like, data, count)

    def largest_field(self, schema: RoundSchema | None) -> int:
        """The largest size of one field of an event, in bytes."""
        sizes = [0 if one is None else one.size for one in (schema, self.request_schema)]
        outcome = 8 * (outcomes.width(self.constraints) + self.programs.decisions.size) + 6 * LONGEST_NAME
        widest = max(*sizes, outcome, 8 * self.budgets)
        began = LONGEST_EVENT + MOST * self.budgets * LONGEST_NUMBER
        return max(MOST * (4 + slots.LONGEST_TICKET + widest) + LONGEST_REMARKS, began)

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
