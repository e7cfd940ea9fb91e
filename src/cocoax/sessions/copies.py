"""The learner of a session, or independent copies of it, with their pending tickets."""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import SessionError
from ..learners.base import Outcome
from ..learners.budgets import budgeted
from . import blame, outcomes, packing
from .outcomes import LONGEST_REMARKS, Remarks
from .schema import RoundSchema
from .step import compiled_decision, compiled_reservation, compiled_step
from .storage.database import Damaged, checksum
from .storage.events import DECIDED, OBSERVED, SKIPPED, Event
from .totals import RunningTotals

_NOTES, _NOTES_OF_TICKET = 1 << 16, 1 << 12  # the longest notes of a snapshot, in characters


class Ticket(NamedTuple):
    """A decision whose round is not observed yet."""

    which: int  # the index of the copy that decided
    version: int  # how many rounds that copy had observed before
    number: int  # how many tickets were given before
    decision: Any
    request: Any = None  # what was seen of the round, if the problem has requests


class LearnerCopies:
    """Everything in a session that changes with its events."""

    keeps_outcomes = True  # of rounds that are forgotten
    remedy = "cx.Session.replay reads the events before the damage into a new file"
    or_replay = ", or replay the rounds with cx.Session.replay"

    def __init__(self, problem, learner, states, pending: int, expires: int | None):
        self.problem, self.learner, self.constraints = problem, learner, problem.constraints
        self._constants, structure = jax.tree.flatten((problem, learner))
        self._structure = jax.tree.structure(states[0])
        self._step = compiled_step(structure, self._structure)
        self._decide = compiled_decision(structure, self._structure)
        self._reserve = compiled_reservation(structure, self._structure) if budgeted(learner) else None
        self.request_schema: RoundSchema | None = None  # fixed by the first request
        self.states = [[jnp.asarray(leaf) for leaf in jax.tree.leaves(state)] for state in states]
        self.decisions = [jax.tree.map(jnp.asarray, learner.decision(state)) for state in states]
        self.pending, self.expires = pending, expires
        self._has_horizon = self._rounds_left(0) is not None
        self._unchecked = set(range(len(self.states)))  # copies whose rounds left are not known
        self._busy = [0] * len(self.states)  # pending tickets of each copy
        self._reserved: tuple[int, list] | None = None  # a state in which so many of the oldest tickets are reserved
        self.versions = [0] * len(self.states)
        self.tickets: dict[str, Ticket] = {}
        self.given = 0
        self.totals = RunningTotals(self.constraints)

    def state(self, which=0):
        return jax.tree.unflatten(self._structure, self.states[which])

    def expired(self) -> list[str]:
        """The tickets that expire when the next one is given. They are the oldest ones."""
        if self.expires is None:
            return []
        newest = self.given - self.expires
        return [name for name, _ in itertools.takewhile(lambda pair: pair[1].number <= newest, self.tickets.items())]

    def give(self, name: str, request: Any = None) -> Event:
        """Take a decision of the copy with the fewest pending tickets; with requests, the decision for this one."""
        for old in self.expired():
            self._give_up(old)
        which = self._busy.index(min(self._busy))
        decision, data, mark = self.decisions[which], None, None
        if self.problem.has_requests:
            decision = self._decision_for(which, request)
            data, mark = packing.pack(request), checksum(packing.pack(decision))
        self.tickets[name] = Ticket(which, self.versions[which], self.given, decision, request)
        self._busy[which] += 1
        self.given += 1
        return Event(DECIDED, name, data, None, mark)

    def _decision_for(self, which, request):
        decision = blame.of_users(
            lambda: self._decide(self._constants, self._with_reservations(which), request),
            "no decision can be taken for this request",
            "correct it",
        )
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(decision)):
            raise SessionError("the decision for this request is not finite, although its data are; correct it")
        return decision

    def _with_reservations(self, which) -> list:
        """The state while all tickets are pending. Learners that reserve have one copy."""
        if self._reserve is None:
            return self.states[which]
        done, state = self._reserved or (0, self.states[which])
        for ticket in itertools.islice(self.tickets.values(), done, None):
            state = self._reserve(self._constants, state, ticket.request, ticket.decision)
        self._reserved = len(self.tickets), state
        return state

    def _give_up(self, name: str):
        """What it reserved stays reserved: it may have been played all the same."""
        ticket = self._drop(name)
        if self._reserve is not None:
            state = self.states[ticket.which]
            self.states[ticket.which] = self._reserve(self._constants, state, ticket.request, ticket.decision)

    def _drop(self, name: str) -> Ticket:
        ticket = self.tickets.pop(name)
        self._busy[ticket.which] -= 1
        self._reserved = None
        return ticket

    def observe(
        self, name: str | None, round, played, label: str | None = None, keep_decision: bool = False
    ) -> tuple[Outcome, bytes]:
        """Learn from a round; returns its outcome, and that as a journal stores it, with the label and, if it is to be
        kept, the decision. A refused round changes nothing."""
        which = 0 if name is None else self.tickets[name].which
        remarks = Remarks(label)
        if keep_decision:
            decision, other = packing.pack(self._decided(name, round)), None if played is None else packing.pack(played)
            remarks = Remarks(label, decision, other)
        if name is not None and played is None:
            ticket = self.tickets[name]
            if self.problem.has_requests or ticket.version != self.versions[which]:
                played = ticket.decision  # the state does not hold it, or learned from other rounds since then
        state, decision, numbers = blame.of_users(
            lambda: self._step(self._constants, self.states[which], round, played),
            "the loss or a constraint failed on this round",
        )
        numbers = np.asarray(numbers).astype(np.float64)
        outcome = outcomes.unpacked(numbers, self.constraints)
        if not outcome.finite:
            self.check_horizon()
            raise SessionError(blame.not_finite(self.problem, outcome, round))
        self.states[which], self.decisions[which] = state, decision
        self.versions[which] += 1
        self._unchecked.add(which)
        self._reserved = None
        self.totals.add(outcome)
        if name is not None:
            self._drop(name)
        return outcome, outcomes.remarked(numbers.tobytes(), remarks)

    def _decided(self, name, round):
        """The decision of this round."""
        if name is not None:
            return self.tickets[name].decision
        return self._decision_for(0, self.problem.request_of(round)) if self.problem.has_requests else self.decisions[0]

    def check_horizon(self):
        """Raise if a copy with a horizon has no rounds left."""
        if not self._has_horizon:
            return
        self._unchecked = {which for which in self._unchecked if int(self._rounds_left(which)) < 1}
        if self._unchecked:
            raise SessionError(
                "the learner planned for no more rounds; start a session with a larger horizon=, or replay its "
                "rounds with one: cx.Session.replay(..., horizon=...)"
            )

    def _rounds_left(self, which) -> Any:
        return self.learner.rounds_left(self.state(which))

    def compile(self, like: Any):
        """Compile the programs for rounds like this one; nothing is played."""
        state, played = self.states[0], None
        if self.problem.has_requests:
            played, request = self.decisions[0], self.problem.request_of(like)
            self._decide.lower(self._constants, state, request).compile()
            if self._reserve is not None:
                self._reserve.lower(self._constants, state, request, played).compile()
        self._step.lower(self._constants, state, like, played).compile()
        if played is None and self.pending > len(self.states):  # one may learn between a decision and its round
            self._step.lower(self._constants, state, like, self.decisions[0]).compile()

    def skip(self, name: str) -> Event:
        self._give_up(name)
        return Event(SKIPPED, name, None, None, None)

    def play(self, schema: RoundSchema | None, event: Event, *, keep_decisions: bool = False) -> bytes | None:
        """Play a stored event again; returns its outcome as a journal stores it, with decisions if it had them or they
        are to be kept from now on."""
        if event.kind != DECIDED and event.ticket is not None and event.ticket not in self.tickets:
            raise Damaged("a ticket that was never given")
        if event.kind == DECIDED and event.ticket is not None:
            return self.give(event.ticket, self._request_of(event)).outcome
        if event.kind == SKIPPED and event.ticket is not None:
            self.skip(event.ticket)
            return None
        if event.kind != OBSERVED or event.round is None or schema is None:
            raise Damaged("a round that is missing")
        try:
            round, remarks = schema.unpack(event.round), outcomes.split(event.outcome or b"")[1]
            played = None if event.played is None else packing.unpack_like(self.decisions[0], event.played)
        except ValueError:
            raise Damaged("a round of another size") from None
        keep = keep_decisions or remarks.decision is not None
        return self.observe(event.ticket, round, played, remarks.label, keep)[1]

    def _request_of(self, event):
        if not self.problem.has_requests:
            return None
        if event.round is None or self.request_schema is None:
            raise Damaged("a request that is missing")
        try:
            return self.request_schema.unpack(event.round)
        except ValueError:
            raise Damaged("a request of another size") from None

    def largest_field(self, schema: RoundSchema | None) -> int:
        """The largest size of one field of an event, in bytes."""
        outcome = np.float64().nbytes * outcomes.width(self.constraints)
        data = max(0 if one is None else one.size for one in (schema, self.request_schema))
        return max(data, outcome + LONGEST_REMARKS + 2 * packing.size_like(self.decisions[0]))

    @property
    def longest_notes(self) -> int:
        """Characters of `notes`."""
        return _NOTES + _NOTES_OF_TICKET * self.pending

    def copy(self) -> "LearnerCopies":
        """An independent copy; arrays, which never change, are shared."""
        twin = _twin(self)
        twin.states, twin.decisions = list(self.states), list(self.decisions)
        twin.versions, twin.tickets = list(self.versions), dict(self.tickets)
        twin._busy, twin._unchecked = list(self._busy), set(self._unchecked)
        twin.totals = _twin(self.totals)
        return twin

    def notes(self) -> dict:
        """As JSON; with `arrays` it is the whole state."""
        tickets = [[name, ticket.which, ticket.version, ticket.number] for name, ticket in self.tickets.items()]
        return {"tickets": tickets, "given": self.given, "versions": self.versions}

    def arrays(self):
        tickets = self.tickets.values()
        decisions, requests = [ticket.decision for ticket in tickets], [ticket.request for ticket in tickets]
        return self.states, self.decisions, decisions, requests, self.totals.arrays

    def arrays_like(self, notes: dict):
        """Arrays of the shapes that belong to notes, which are not trusted; ValueError if the notes cannot be."""
        match notes:
            case {"tickets": list(tickets), "given": int(), "versions": list(versions)}:
                numbers = [*versions, *(number for ticket in tickets for number in ticket[1:])]
                good = all(type(number) is int for number in numbers) and len(versions) == len(self.states)
                good = good and all(len(ticket) == 4 and isinstance(ticket[0], str) for ticket in tickets)
                if good and all(0 <= copy < len(self.states) for _, copy, _, _ in tickets):
                    request = None if self.request_schema is None else self.request_schema.like
                    decisions, requests = [self.decisions[0]] * len(tickets), [request] * len(tickets)
                    return self.states, self.decisions, decisions, requests, self.totals.arrays
        raise ValueError("not the notes of a session")

    def restore(self, notes: dict, arrays):
        self.states, self.decisions, decisions, requests, self.totals.arrays = arrays
        self.given, self.versions = notes["given"], notes["versions"]
        self.tickets = {
            name: Ticket(which, version, number, decision, request)
            for (name, which, version, number), decision, request in zip(notes["tickets"], decisions, requests)
        }
        self._unchecked, self._reserved = set(range(len(self.states))), None
        self._busy = [0] * len(self.states)
        for ticket in self.tickets.values():
            self._busy[ticket.which] += 1


def _twin(instance):
    """As `copy.copy`, but ten times faster."""
    twin = object.__new__(type(instance))
    twin.__dict__.update(instance.__dict__)
    return twin
