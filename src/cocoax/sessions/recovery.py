"""Players whose every event is in a journal before it counts, and who are brought back from there."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ..errors import SessionError, SessionWarning
from . import identity, packing
from .copies import Players
from .schema import Form
from .step import figures
from .storage.database import Damaged
from .storage.events import DECIDED, OBSERVED, SKIPPED, Event
from .storage.journal import Journal

_NOTES, _NOTE = 1 << 16, 1 << 12  # bytes that a snapshot's notes may take, and for each pending ticket
_REPLAY = "cx.Session.replay reads what is before that into a new file"


class Durable:
    """Begins in a new journal, or goes on in an old one."""

    def __init__(self, path, players: Players, signature: dict, every: int, keep_rounds: bool):
        self.path, self.players = path, players
        self.form: Form | None = None  # of a round, once there was one
        self._every, self._keep_rounds = every, keep_rounds
        self._snapshot_at = self._failed_at = 0
        self._closed: str | None = None
        self._process = os.getpid()
        self._journal = Journal(path)
        try:
            self._open(signature)
        except Damaged as damage:
            self._journal.close()
            raise SessionError(f"{path} is damaged at {damage}; {_REPLAY}") from None
        except BaseException:
            self._journal.close()
            raise

    def _open(self, signature):
        journal, before = self._journal, self._journal.acknowledged_before
        self.was_there = not journal.is_new
        if journal.is_new:
            if before:
                raise SessionError(
                    f"{self.path} is damaged: nothing is left in it, but {journal.witness_name} knows of events; "
                    "bring it back, or delete both to begin anew"
                )
            journal.create({"signature": signature}, self.players.notes(), packing.pack(self.players.arrays()))
            return
        identity.compare(journal.fact("signature"), signature, self.path)
        self.form = recorded_form(journal)
        self._rewind()
        for event in journal.follow(largest_field(self.form, self.players)):
            self._again(event)
        if self.form is None and self.players.ledger.rounds:
            raise Damaged("the form of its rounds")
        if before is not None:
            self._tell_what_is_missing(before)
        journal.acknowledge()

    def _rewind(self):
        """To the newest snapshot that is whole."""
        damaged = None
        for event in self._journal.snapshots():
            try:
                notes, state = self._journal.rewind(event, self._snapshot_size, _NOTES + _NOTE * self.players.pending)
            except Damaged as damage:
                damaged = damage
                continue
            self.players.restore(notes, packing.unpack_like(self.players.arrays_like(notes), state))
            self._snapshot_at = event
            if damaged:
                _warn(f"{self.path}: {damaged} is damaged; it is brought back from the one before")
            return
        raise damaged or Damaged("its snapshots, of which there is none")

    def _snapshot_size(self, notes) -> int:
        return packing.size_like(self.players.arrays_like(notes))

    def _again(self, event: Event):
        """Play an event of the journal: it must come to what it came to."""
        if play_event(self.players, self.form, event) != event.outcome:
            raise SessionError(
                f"{self.path}: round {self.players.ledger.rounds} does not come to what it came to before, because "
                "another machine, device or version of JAX rounds otherwise; go on where it was played, or have the "
                "rounds played again with cx.Session.replay"
            )

    def _tell_what_is_missing(self, before):
        lost = before - self._journal.last
        if before < 0:
            _warn(f"{self.path}: {self._journal.witness_name} is damaged: whether rounds are missing cannot be told")
        elif lost > 0:
            after = f"it goes on after {self.players.ledger.rounds} rounds"
            _warn(f"{self.path}: its log is damaged and the last {lost} event(s) are lost; {after}")

    def check_usable(self):
        if self._closed is not None:
            raise SessionError(self._closed)
        if os.getpid() != self._process:
            raise SessionError("a session belongs to the process that opened it; open it in the one that uses it")

    def commit(self, change: Callable[[Players], Iterable[Event]], form: Form | None = None):
        """Play on a copy, store what happened, and only then let the copy count; `form` is that of the new rounds."""
        self.check_usable()
        if not self._journal.is_in_place():
            self._closed = f"{self.path} was moved or deleted while it was open; bring it back and open it again"
            self._journal.close()
            raise SessionError(self._closed)
        players, last = self.players.copy(), self._journal.last
        try:
            self._journal.append(change(players), None if self.form or form is None else {"round": form.json})
            self.players, self.form = players, self.form or form
        except BaseException:
            if not self._journal.take_back(last):
                self._closed = "the session was interrupted while it wrote; open it again"
                self._journal.close()
            raise
        self._journal.acknowledge()
        if self.path is not None and self._journal.last - max(self._snapshot_at, self._failed_at) >= self._every:
            self._snapshot_now_or_later()

    def _snapshot_now_or_later(self):
        try:
            self.snapshot()
        except SessionError as error:  # the events are safe without; reopening takes longer
            self._failed_at = self._journal.last
            _warn(f"{self.path}: {error}")

    def snapshot(self):
        before = self._snapshot_at
        self._journal.snapshot(self.players.notes(), packing.pack(self.players.arrays()))
        self._snapshot_at = self._journal.last
        if not self._keep_rounds:
            self._journal.forget(before)  # from there it could still be brought back

    def forget(self):
        self.check_usable()
        if self.path is None:
            self._journal.forget(self._journal.last)
            return
        before = self._snapshot_at
        self.snapshot()
        self._journal.forget(before)

    def fate(self, ticket: str) -> str | None:
        """What became of a ticket that is not pending."""
        return self._journal.last_of(ticket)

    def observed(self) -> Iterator[Event]:
        """Every round from the first on."""
        self.check_usable()
        try:
            yield from self._journal.observed(largest_field(self.form, self.players))
        except Damaged as damage:
            raise SessionError(f"{self.path} is damaged at {damage}; {_REPLAY}") from None

    def close(self):
        if self._closed is None and os.getpid() == self._process:
            try:
                if self.path is not None and self._journal.last > self._snapshot_at:
                    self._snapshot_now_or_later()
            finally:
                self._journal.close()
                self._closed = "the session is closed; open it again"
        self._closed = self._closed or "the session is closed; open it again"


def play_event(players: Players, form: Form | None, event: Event) -> bytes | None:
    """What an event comes to, which is what a journal has as its outcome."""
    if event.kind != DECIDED and event.ticket is not None and event.ticket not in players.tickets:
        raise Damaged("a ticket that was never given")
    if event.kind == DECIDED and event.ticket is not None:
        players.give(event.ticket)
        return None
    if event.kind == SKIPPED and event.ticket is not None:
        players.skip(event.ticket)
        return None
    if event.kind != OBSERVED or event.round is None or form is None:
        raise Damaged("a round that is missing")
    try:
        round = form.unpack(event.round)
        played = None if event.played is None else packing.unpack_like(players.decisions[0], event.played)
    except ValueError:
        raise Damaged("a round of another size") from None
    return players.observe(event.ticket, round, played).tobytes()


def recorded_form(journal: Journal) -> Form | None:
    form = journal.fact("round")
    try:
        return None if form is None else Form(form)
    except (ValueError, TypeError, RecursionError):
        raise Damaged("the form of its rounds") from None


def largest_field(form: Form | None, players: Players) -> int:
    """What one field of an event may take, in bytes."""
    outcome = np.float64().nbytes * figures(players.problem.constraints)
    return max(0 if form is None else form.size, packing.size_like(players.decisions[0]), outcome)


def _warn(text):
    warnings.warn(text, SessionWarning, stacklevel=2)
