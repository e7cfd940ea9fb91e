"""One call of a fleet, played on copies of the rows that it names: they count when its events are on disk."""

from typing import Any

import jax
import numpy as np

from ..errors import SessionError
from . import outcomes, packing, slots
from .blame import of_users
from .campaign_events import CHANGED, NotFiniteError, row_of
from .outcomes import Remarks
from .rows import Picked
from .storage.database import checksum
from .storage.events import DECIDED, OBSERVED, SKIPPED, Event


class Turn:
    """The campaigns of a call, each once. Methods take places among them (`at`), each once in a method's call."""

    def __init__(self, campaigns, rows: np.ndarray):
        self._campaigns, self._programs, self.rows = campaigns, campaigns.programs, rows
        self.most_waiting, self.expires = campaigns.most_waiting, campaigns.expires
        self.asks = campaigns.problem.has_requests
        self.columns = {name: column[rows] for name, column in campaigns.columns.items() if name != "words"}
        self._words: np.ndarray | None = None  # of all copies, once one has changed
        self.events: list[Event] = []
        self.observed: list[tuple[np.ndarray, np.ndarray]] = []  # rows and numbers, for the totals

    def words(self, at: np.ndarray, which: Any = 0) -> Picked:
        """The rows of one copy of each."""
        table, rows = (self._campaigns.columns["words"], self.rows[at]) if self._words is None else (self._words, at)
        copies = table.shape[1]
        return Picked(table.reshape(len(table) * copies, -1), rows * copies + which)

    def _store(self, at: np.ndarray, which: Any, words: np.ndarray):
        if self._words is None:
            if self._campaigns.copies == 1 and len(at) == len(self.rows) and (at == np.arange(len(at))).all():
                self._words = words[:, None]
                return
            self._words = self._campaigns.columns["words"][self.rows]
        self._words[at, which] = words  # pyright: ignore[reportOptionalSubscript]

    def changed(self) -> slots.Columns:
        """The columns to store."""
        return self.columns if self._words is None else self.columns | {"words": self._words}

    def answers(self, at: np.ndarray, slot: np.ndarray) -> Any:
        """The decisions that wait there, in NumPy, with a leading axis."""
        return self._programs.decisions.columns(self.columns["answer"][at, slot])

    def requests(self, at: np.ndarray, slot: np.ndarray) -> Any:
        """Requests, along as many axes as `slot` has."""
        data = self.columns["request"][at.reshape(-1, *[1] * (slot.ndim - 1)), slot]
        like = self._campaigns.request_schema.like
        flat = packing.unstack_like(like, data.tobytes(), slot.size)
        return jax.tree.map(lambda leaf: leaf.reshape(*slot.shape, *leaf.shape[1:]), flat)

    def decide(self, at: np.ndarray, tickets: np.ndarray | None, requests: Any):
        """Give new tickets, or open requests; what expires by that is given up first."""
        columns = self.columns
        while self.expires is not None and ((slot := slots.expired(columns, at, self.expires)) >= 0).any():
            self._give_up(at[slot >= 0], slot[slot >= 0])
        which, slot = slots.idle_copy(columns, at), slots.free(columns, at)
        data = None
        if requests is None:
            answers = self.words(at, which).copy()[:, self._programs.states.size :]
        else:
            answers = of_users(lambda: self._programs.decide(self._reserved(at), requests), "no decision is taken")
            decisions = self._programs.decisions.columns(answers)
            if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(decisions)):
                raise SessionError("a decision for these requests is not finite, although their data are; correct them")
            data = packing.pack_rows(requests, len(at))
        slots.give(columns, at, slot, which, tickets, data, answers)
        self._add(DECIDED, at, tickets, data, mark=checksum(np.ascontiguousarray(answers).tobytes()))

    def _reserved(self, at: np.ndarray) -> Picked:
        """The states while all their tickets wait. Learners that reserve have one copy."""
        words = self.words(at, slots.idle_copy(self.columns, at))
        order, counts = slots.oldest_first(self.columns, at)
        if not self._campaigns.budgets or not counts.any():
            return words
        requests, answers = self.requests(at, order), self.columns["answer"][at[:, None], order]
        flat = self._programs.decisions.columns(answers.reshape(order.size, -1))
        decisions = jax.tree.map(lambda leaf: leaf.reshape(*order.shape, *leaf.shape[1:]), flat)
        return Picked(self._programs.reserve_all(words, requests, decisions, counts), np.arange(len(at)))

    def reserved(self) -> np.ndarray:
        """The states of all, while their tickets wait."""
        at = np.arange(len(self.rows))
        return (self._reserved(at) if self.most_waiting else self.words(at)).copy()

    def observe(self, at: np.ndarray, tickets: np.ndarray | None, rounds: Any, played: Any, remarks: Remarks):
        """Learn from a round of each, whose tickets, or requests, wait; an error if one of them is bad.

        If `remarks` have a decision, it is replaced by those of these rounds, and kept.
        """
        columns, campaigns, which, slot, answers = self.columns, self._campaigns, 0, None, None
        late = np.zeros(len(at), bool)  # their state does not hold the decision, or learned from other rounds since
        if self.most_waiting:
            slot = slots.find(columns, at, tickets)
            answers, late[:] = self.answers(at, slot), self.asks
        if tickets is not None:
            which = columns["copy"][at, slot]
            late |= columns["version"][at, slot] != columns["versions"][at, which]
        words, point = self.words(at, which), answers if played is None and late.any() else played
        failed = "the loss or a constraint failed on these rounds"
        if played is None and late.any() and not late.all():
            after, numbers = of_users(lambda: self._in_two(late, words, rounds, answers), failed)
        else:
            after, numbers = of_users(lambda: self._programs.observe(words, rounds, point), failed)
        numbers = numbers.astype(np.float64)
        outcome = outcomes.unpacked(numbers, campaigns.constraints)
        if not np.all(outcome.finite):
            place = int(np.argmin(outcome.finite))
            raise NotFiniteError(
                place, campaigns.why_not_finite(words[[place]].copy()[0], numbers[place], row_of(rounds, place))
            )
        if remarks.decision is not None:
            held = words.copy()[:, self._programs.states.size :] if slot is None else columns["answer"][at, slot]
            remarks = remarks._replace(decision=np.ascontiguousarray(held).tobytes())
        self._store(at, which, after)
        if tickets is not None:
            columns["versions"][at, which] += 1
        if slot is not None:
            slots.drop(columns, at, slot, numbers)
        self.observed.append((self.rows[at], numbers))
        data = packing.pack_rows(rounds, len(at))
        played_data = None if played is None else packing.pack_rows(played, len(at)).tobytes()
        self._add(OBSERVED, at, tickets, data, played_data, outcomes.remarked(numbers.tobytes(), remarks))

    def _in_two(self, late, words, rounds, answers):
        """Rounds of decisions that the state holds, and others: two programs, as a session has for them."""
        after, numbers = np.empty((len(words), self._programs.width), np.uint32), None
        for part, played in ((np.flatnonzero(~late), None), (np.flatnonzero(late), answers)):
            chosen = jax.tree.map(lambda leaf, part=part: leaf[part], (rounds, played))
            after[part], some = self._programs.observe(words[part], *chosen)
            numbers = np.empty((len(words), some.shape[1]), some.dtype) if numbers is None else numbers
            numbers[part] = some
        return after, numbers

    def skip(self, at: np.ndarray, tickets: np.ndarray | None):
        """Give up tickets, or open requests, that wait."""
        self._give_up(at, slots.find(self.columns, at, tickets))
        mark = checksum(self.words(at).copy().tobytes()) if self._campaigns.budgets else None
        self._add(SKIPPED, at, tickets, None, mark=mark)

    def _give_up(self, at, slot):
        """What they reserved stays reserved: they may have been played all the same."""
        if self._campaigns.budgets:
            words = self._programs.reserve(self.words(at), self.requests(at, slot), self.answers(at, slot))
            self._store(at, 0, words)
        slots.drop(self.columns, at, slot, np.nan)

    def change(self, at: np.ndarray, budgets: np.ndarray):
        """Give these campaigns other budgets."""
        self._store(at, 0, self._programs.set_budgets(self.words(at), budgets))
        self._add(
            CHANGED, at, None, packing.pack_rows(budgets, len(at)), mark=checksum(self.words(at).copy().tobytes())
        )

    def _add(self, kind, at, tickets, data, played=None, mark=None):
        """An event: rows, tickets and data of all campaigns, one after another."""
        parts = self.rows[at].astype(np.int32), tickets, data
        content = b"".join(np.ascontiguousarray(part).tobytes() for part in parts if part is not None)
        self.events.append(Event(kind, None, content, played, mark))
