"""The state of a session and its journal: an event counts when it is on disk."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from ..errors import SessionError, StorageError
from . import packing, transfer
from .campaigns import Campaigns
from .copies import LearnerCopies
from .identity import Identity
from .recovery import create_or_recover, warn
from .schema import RoundSchema
from .storage.database import Damaged
from .storage.events import OBSERVED, Event
from .storage.journal import Journal

Learners = TypeVar("Learners", LearnerCopies, Campaigns)


class _State(NamedTuple, Generic[Learners]):
    """Changed by one assignment, so that no interrupt comes between."""

    copies: Learners
    schema: RoundSchema | None
    last: int  # the number of the event that it is after


class DurableState(Generic[Learners]):
    """The learners of a session, or the campaigns of a fleet, as they are after the last event in their journal."""

    def __init__(
        self,
        path,
        copies: Learners,
        identity: Identity,
        snapshot_every: int,
        keep_rounds: bool,
        mark: str | None = None,
        other_rounding: bool = False,
    ):
        self.path = path
        self._snapshot_every, self._keep_rounds = snapshot_every, keep_rounds
        self._failed_snapshot = 0  # the number of the last event then
        self._closed: str | None = None  # the error of a session that cannot be used any more
        self._process = os.getpid()
        self._unsettled = False  # an event may be in the journal and not in the state
        self._journal = Journal(path)
        try:
            self.was_new = self._journal.is_new
            self.identity = identity
            found = create_or_recover(self._journal, copies, identity, mark, other_rounding)
            self._last_snapshot = found.snapshot
            self._state = _State(copies, found.schema, self._journal.last)
            if found.is_foreign:
                self._snapshot()  # the state as it is computed now
                for name, fact in self._facts_of(found.schema).items():
                    self._journal.replace_fact(name, fact)
            self._recorded = {name for name in ("round", "request") if self._journal.fact(name) is not None}
        except Damaged as damage:
            self._journal.close()
            raise SessionError(f"{path} is damaged at {damage}; {copies.remedy}") from None
        except BaseException:
            self._journal.close()
            raise

    @property
    def copies(self) -> Learners:
        return self._state.copies

    @property
    def schema(self) -> RoundSchema | None:
        return self._state.schema

    def check_usable(self):
        if os.getpid() != self._process:
            raise SessionError("a session belongs to the process that opened it; open it in the one that uses it")
        if self._unsettled:
            self._settle()
        if self._closed is not None:
            raise StorageError(self._closed)

    def commit(
        self,
        copies: Learners,
        events: list[Event],
        schema: RoundSchema | None = None,
        apply: Callable[[], None] = lambda: None,
    ):
        """Store events, then let `copies`, which already played them or do so by `apply`, be the state.

        On an error nothing changes; but an interrupt inside `apply` closes the session.
        """
        self.check_usable()
        self._unsettled = True  # until the state has what the journal has, whatever comes between
        try:
            if (reason := self._journal.displaced()) is not None:
                raise StorageError(reason)
            facts = self._new_facts(copies, schema)
            self._journal.append(events, facts)
            self._recorded |= set(facts or ())
            apply()
            self._state = _State(copies, self.schema or schema, self._journal.last)
            self._unsettled = False
        except BaseException:
            self._settle()
            raise
        self._journal.acknowledge()
        last_try = max(self._last_snapshot, self._failed_snapshot)
        if self.path is not None and self._journal.last - last_try >= self._snapshot_every:
            self._try_snapshot()

    def _settle(self):
        """After an error or interrupt: let journal and state be after the same event, or close."""
        closed = self._journal.displaced()
        if closed is None and not self._journal.settle(self._state.last):
            closed = "the session was interrupted while it wrote; open it again"
        if closed is not None:
            self._closed = self._closed or closed
            self._journal.close()
        self._unsettled = False

    def _facts_of(self, schema: RoundSchema | None) -> dict:
        """What the session is recognised by, in rounds of this form."""
        programs = {} if schema is None else {"programs": self.identity.programs(schema.like)}
        return {"signature": self.identity.signature} | programs

    def _new_facts(self, copies, schema) -> dict | None:
        """The schemas that these events fix, and what is computed then."""
        schemas = {"round": schema, "request": copies.request_schema}
        new = {name: one.json for name, one in schemas.items() if one and name not in self._recorded}
        return (new | {"programs": self.identity.programs(schema.like)} if schema and "round" in new else new) or None

    def _try_snapshot(self):
        try:
            self._snapshot()
        except SessionError as error:  # the events are safe without it; only opening takes longer
            self._failed_snapshot = self._journal.last
            warn(f"{self.path}: {error}")

    def _snapshot(self):
        before = self._last_snapshot
        self._journal.snapshot(self.copies.notes(), packing.pack(self.copies.arrays()))
        self._last_snapshot = self._journal.last
        if not self._keep_rounds:
            self._forget(before)  # the older snapshot needs the rounds after it

    def _forget(self, event: int, history: bool = False):
        """Drop the rounds up to an event; of `history`, and of fleets, also their outcomes."""
        if history or not self.copies.keeps_outcomes:
            self._journal.drop(event)
        else:
            self._journal.forget(event)

    def forget(self, history: bool = False):
        self.check_usable()
        before = self._journal.last
        if self.path is not None:
            before = self._last_snapshot
            self._snapshot()
        self._forget(before, history)

    def export(self, path):
        """Write the state to a file of its own."""
        self.check_usable()
        facts = {name: self._journal.fact(name) for name in transfer.FACTS}
        transfer.write(path, facts, self.copies.notes(), packing.pack(self.copies.arrays()))

    def complete(self, mark: str):
        """Drop the fact that marks the file as incomplete."""
        self._journal.drop_fact(mark)

    def last_event_of(self, ticket: str) -> str | None:
        """The kind of the last event of a ticket, if it was ever given."""
        return self._journal.last_of(ticket)

    def outcome_of(self, ticket: str | None) -> bytes | None:
        """The outcome of the last observed round, or of the one with this ticket, as stored."""
        self.check_usable()
        return self._journal.outcome_of(ticket, self.copies.largest_field(self.schema))

    def observed(self) -> Iterator[Event]:
        """Every observed round from the first on."""
        return (event for event in self.past() if event.kind == OBSERVED)

    def past(self, alone: Callable[[], Any] = contextlib.nullcontext) -> Iterator[Event]:
        """Every event so far, from the first on. Other calls may come between, if `alone` is how they are kept out."""

        @contextlib.contextmanager
        def turn():
            with alone():
                self.check_usable()
                yield

        try:
            yield from self._journal.past(self.copies.largest_field(self.schema), turn)
        except Damaged as damage:
            raise SessionError(f"{self.path} is damaged at {damage}; {self.copies.remedy}") from None

    def close(self):
        if self._closed is None and os.getpid() == self._process:
            if self._unsettled:
                self._settle()
            try:
                if self._closed is None and self.path is not None and self._journal.last > self._last_snapshot:
                    self._try_snapshot()
            finally:
                self._journal.close()
                self._closed = "the session is closed; open it again"
        self._closed = self._closed or "the session is closed; open it again"
