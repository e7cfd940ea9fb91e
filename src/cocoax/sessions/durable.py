"""The state of a session and its journal: an event counts when it is on disk."""

import os
from collections.abc import Iterator

from ..errors import SessionError
from . import packing
from .copies import LearnerCopies
from .recovery import REPLAY, create_or_recover, largest_field, warn
from .schema import RoundSchema
from .storage.database import Damaged
from .storage.events import Event
from .storage.journal import Journal


class DurableState:
    """The learners of a session, as they are after the last event in its journal."""

    def __init__(self, path, copies: LearnerCopies, signature: dict, snapshot_every: int, keep_rounds: bool):
        self.path, self.copies = path, copies
        self._snapshot_every, self._keep_rounds = snapshot_every, keep_rounds
        self._failed_snapshot = 0  # the number of the last event then
        self._closed: str | None = None  # the error of a session that cannot be used any more
        self._process = os.getpid()
        self._journal = Journal(path)
        self.was_new = self._journal.is_new
        try:
            self.schema, self._last_snapshot = create_or_recover(self._journal, copies, signature)
        except Damaged as damage:
            self._journal.close()
            raise SessionError(f"{path} is damaged at {damage}; {REPLAY}") from None
        except BaseException:
            self._journal.close()
            raise

    def check_usable(self):
        if self._closed is not None:
            raise SessionError(self._closed)
        if os.getpid() != self._process:
            raise SessionError("a session belongs to the process that opened it; open it in the one that uses it")

    def commit(self, copies: LearnerCopies, events: list[Event], schema: RoundSchema | None = None):
        """Store events, then let `copies`, which already played them, be the state. On an error nothing changes."""
        self.check_usable()
        if not self._journal.is_in_place():
            self._closed = f"{self.path} was moved or deleted while it was open; restore it and open it again"
            self._journal.close()
            raise SessionError(self._closed)
        last = self._journal.last
        try:
            self._journal.append(events, self._new_facts(copies, schema))
            self.copies, self.schema = copies, self.schema or schema
        except BaseException:
            if not self._journal.take_back(last):
                self._closed = "the session was interrupted while it wrote; open it again"
                self._journal.close()
            raise
        self._journal.acknowledge()
        last_try = max(self._last_snapshot, self._failed_snapshot)
        if self.path is not None and self._journal.last - last_try >= self._snapshot_every:
            self._try_snapshot()

    def _new_facts(self, copies, schema) -> dict | None:
        """The schemas that these events fix."""
        facts = {} if self.schema or schema is None else {"round": schema.json}
        if copies.request_schema is not None and self.copies.request_schema is None:
            facts["request"] = copies.request_schema.json
        return facts or None

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
            self._journal.forget(before)  # the older snapshot needs the rounds after it

    def forget(self):
        self.check_usable()
        if self.path is None:
            self._journal.forget(self._journal.last)
            return
        before = self._last_snapshot
        self._snapshot()
        self._journal.forget(before)

    def last_event_of(self, ticket: str) -> str | None:
        """The kind of the last event of a ticket, if it was ever given."""
        return self._journal.last_of(ticket)

    def observed(self) -> Iterator[Event]:
        """Every observed round from the first on."""
        self.check_usable()
        try:
            yield from self._journal.observed(largest_field(self.schema, self.copies))
        except Damaged as damage:
            raise SessionError(f"{self.path} is damaged at {damage}; {REPLAY}") from None

    def close(self):
        if self._closed is None and os.getpid() == self._process:
            try:
                if self.path is not None and self._journal.last > self._last_snapshot:
                    self._try_snapshot()
            finally:
                self._journal.close()
                self._closed = "the session is closed; open it again"
        self._closed = self._closed or "the session is closed; open it again"
