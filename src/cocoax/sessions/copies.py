"""The learner of a session, or independent copies of it, and the tickets that they wait for."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import CocoaxError, SessionError
from .step import compiled_step
from .storage.events import DECIDED, SKIPPED, Event
from .totals import Ledger


class Ticket(NamedTuple):
    """A decision that was given, and whose round is to come."""

    which: int  # of the copies decided
    version: int  # how many rounds that copy had observed by then
    number: int  # how many tickets there were before
    decision: Any


class Players:
    """Everything of a session that changes with its events."""

    def __init__(self, problem, learner, states, pending: int, expires: int | None):
        self.problem, self.learner = problem, learner
        self._constants, structure = jax.tree.flatten((problem, learner))
        self._of_state = jax.tree.structure(states[0])
        self._step = compiled_step(structure, self._of_state)
        self.states = [[jnp.asarray(leaf) for leaf in jax.tree.leaves(state)] for state in states]
        self.decisions = [jax.tree.map(jnp.asarray, learner.decision(state)) for state in states]
        self.pending, self.expires = pending, expires
        self._plans = self._left(0) is not None
        self.versions = [0] * len(self.states)
        self.tickets: dict[str, Ticket] = {}
        self.given = 0
        self.ledger = Ledger(problem.constraints)

    def state(self, which=0):
        return jax.tree.unflatten(self._of_state, self.states[which])

    def live(self) -> dict[str, Ticket]:
        """The tickets that the next one to be given leaves."""
        if self.expires is None:
            return self.tickets
        return {name: each for name, each in self.tickets.items() if each.number > self.given - self.expires}

    def give(self, name: str) -> Event:
        """A decision of the copy that waits for the fewest rounds."""
        self.tickets = dict(self.live())
        waiting = [ticket.which for ticket in self.tickets.values()]
        which = min(range(len(self.states)), key=waiting.count)
        self.tickets[name] = Ticket(which, self.versions[which], self.given, self.decisions[which])
        self.given += 1
        return Event(DECIDED, name, None, None, None)

    def observe(self, name: str | None, round, played) -> np.ndarray:
        """What it came to, see `_stepping.figures`; a round that is refused changes nothing."""
        which = 0 if name is None else self.tickets[name].which
        if name is not None and played is None and self.tickets[name].version != self.versions[which]:
            played = self.tickets[name].decision  # the learner has moved on since
        try:
            state, decision, found = self._step(self._constants, self.states[which], round, played)
        except CocoaxError:
            raise
        except Exception as error:  # of any kind: it is a user's function
            text = f"{type(error).__name__}: {error}".split("\n")[0]
            raise SessionError(f"the loss or a constraint failed on this round ({text}); mend or drop it") from error
        outcome = np.asarray(found).astype(np.float64)
        if not outcome[-3]:
            self.check_plan()
            raise SessionError(self._complaint(outcome))
        self.states[which], self.decisions[which] = state, decision
        self.versions[which] += 1
        self.ledger.add(outcome)
        if name is not None:
            del self.tickets[name]
        return outcome

    def check_plan(self):
        """Whether every copy has rounds left, where learners plan for a number of them."""
        if self._plans and any(int(self._left(which)) < 1 for which in range(len(self.states))):
            raise SessionError(
                "the learner planned for no more rounds; begin a session with a larger horizon=, or have these rounds "
                "played again with one: cx.Session.replay(..., horizon=...)"
            )

    def _left(self, which) -> Any:
        return self.learner.rounds_left(self.state(which))

    def _complaint(self, outcome) -> str:
        constraints = self.problem.constraints
        for name, values in (("loss", outcome[:1]), ("constraint", outcome[1 : 1 + constraints])):
            if not np.isfinite(values).all():
                return f"the {name} is not finite in this round, although its data are; mend or drop it"
        return "a gradient, or the decision that it leads to, is not finite in this round; mend or drop it"

    def skip(self, name: str) -> Event:
        del self.tickets[name]
        return Event(SKIPPED, name, None, None, None)

    def copy(self) -> "Players":
        """As it is now, whatever happens to the other."""
        twin = _twin(self)
        twin.states, twin.decisions = list(self.states), list(self.decisions)
        twin.versions, twin.tickets = list(self.versions), dict(self.tickets)
        twin.ledger = _twin(self.ledger)
        return twin

    def notes(self) -> dict:
        """With `arrays`, all that changes."""
        tickets = [[name, each.which, each.version, each.number] for name, each in self.tickets.items()]
        return {"tickets": tickets, "given": self.given, "versions": self.versions}

    def arrays(self):
        return self.states, self.decisions, [each.decision for each in self.tickets.values()], self.ledger.arrays

    def arrays_like(self, notes: dict):
        """The form that `arrays` has where these notes, which may come from anybody, were taken; else ValueError."""
        match notes:
            case {"tickets": list(tickets), "given": int(), "versions": list(versions)}:
                whole = [*versions, *(number for each in tickets for number in each[1:])]
                good = all(type(number) is int for number in whole) and len(versions) == len(self.states)
                good = good and all(len(each) == 4 and isinstance(each[0], str) for each in tickets)
                if good and all(0 <= copy < len(self.states) for _, copy, _, _ in tickets):
                    return self.states, self.decisions, [self.decisions[0]] * len(tickets), self.ledger.arrays
        raise ValueError("no notes of a session")

    def restore(self, notes: dict, arrays):
        self.states, self.decisions, given, self.ledger.arrays = arrays
        self.given, self.versions = notes["given"], notes["versions"]
        self.tickets = {
            name: Ticket(which, version, number, decision)
            for (name, which, version, number), decision in zip(notes["tickets"], given)
        }


def _twin(instance):
    """As `copy.copy`, which takes ten times longer."""
    twin = object.__new__(type(instance))
    twin.__dict__.update(instance.__dict__)
    return twin
