"""Tickets, the names of rounds whose feedback is late: which one is next, and why one is refused."""

from ..errors import SessionError
from .arguments import checked_ticket
from .copies import LearnerCopies
from .durable import DurableState
from .storage.events import DECIDED, OBSERVED, SKIPPED

OPEN = ""  # the ticket of the request that was decided last, in a session without late feedback


def named(durable: DurableState[LearnerCopies], ticket: str | None) -> str:
    """The name of the round to decide: the ticket, or else the first number that was never given."""
    if not durable.copies.pending:
        return OPEN
    if ticket is not None:
        return checked_ticket(ticket)
    number = durable.copies.given
    while durable.last_event_of(str(number)) is not None:
        number += 1
    return str(number)


def check_new(durable: DurableState[LearnerCopies], name: str):
    """Raise if no round with this name can begin."""
    copies = durable.copies
    if name == OPEN:
        return
    if len(copies.tickets) - len(copies.expired()) >= copies.pending:
        raise SessionError(
            f"{len(copies.tickets)} rounds are pending already; observe or skip one, for example "
            f"{next(iter(copies.tickets))!r}, or start with a larger pending="
        )
    if durable.last_event_of(name) is not None:
        raise SessionError(_not_pending(durable, name))


def check_pending(durable: DurableState[LearnerCopies], copies: LearnerCopies, ticket: str | None):
    """Raise if the round of this ticket cannot be observed, after what `copies` have played already."""
    if (ticket is None) != (copies.pending == 0):
        raise SessionError(
            "a ticket names a round of late feedback: give observe(round, ticket=...) if the session was started "
            "with pending=, and only then"
        )
    if ticket is not None and checked_ticket(ticket) not in copies.tickets:
        raise SessionError(_not_pending(durable, ticket))


def _not_pending(durable, ticket) -> str:
    reasons = {
        None: "was never given; ask decide for it first",
        DECIDED: "has expired; its round does not count",
        OBSERVED: "was observed already; its round counts once",
        SKIPPED: "was skipped; its round does not count",
    }
    return f"the ticket {ticket!r} {reasons.get(durable.last_event_of(ticket), 'is not known')}"
