"""Tickets of campaigns: which one is next, and why one is refused."""

import numpy as np

from ..errors import ConflictError
from . import slots
from .turn import Turn


def named(turn: Turn, at: np.ndarray, tickets: list[str | None]) -> np.ndarray:
    """The names of the rounds to decide: the tickets, or else how many were given before."""
    given = turn.columns["given"][at]
    texts = [str(number) if ticket is None else ticket for ticket, number in zip(tickets, given.tolist())]
    return encoded(texts)


def encoded(tickets: list) -> np.ndarray:
    """As a column has them."""
    return np.array([ticket.encode() for ticket in tickets], f"S{slots.LONGEST_TICKET}")


def check_waits(turn: Turn, at: np.ndarray, tickets: np.ndarray | None, names: list[str]):
    """Raise if one of these tickets, or open requests, does not wait."""
    waits = slots.find(turn.columns, at, tickets) >= 0 if turn.most_waiting else np.zeros(len(at), bool)
    for place in np.flatnonzero(~waits):
        if tickets is None:
            raise ConflictError("skip is for campaigns with an open request; decide first, or leave out the others")
        over = slots.find_over(turn.columns, at[[place]], tickets[[place]])[0]
        raise ConflictError(_over(turn, at[place], over, tickets[place].decode(), names[place]))


def check_new(turn: Turn, at: np.ndarray, tickets: np.ndarray, names: list[str]):
    """Raise if a ticket that does not wait cannot be given."""
    given, waits = turn.columns["given"][at], turn.columns["number"][at]
    kept = (waits != slots.FREE) & (True if turn.expires is None else waits > given[:, None] - turn.expires)
    for place in np.flatnonzero(kept.sum(1) >= turn.most_waiting)[:1]:
        raise ConflictError(
            f"{turn.most_waiting} rounds of {names[place]!r} are pending already; observe or skip one, or begin a fleet"
            " with a larger pending="
        )
    over = slots.find_over(turn.columns, at, tickets)
    for place in np.flatnonzero((over >= 0) | (given.astype(tickets.dtype) != tickets)):  # the next numbers are right
        text, number = tickets[place].decode(), int(given[place])
        if over[place] >= 0 or (_is_number(text) and int(text) < number):
            raise ConflictError(_over(turn, at[place], over[place], text, names[place]))
        if _is_number(text) and int(text) > number:
            raise ConflictError(
                f"the next number of {names[place]!r} is {number}, got the ticket {text!r}; give that, or a word"
            )


def outcomes_of(turn: Turn, at: np.ndarray, tickets: np.ndarray, names: list[str]) -> np.ndarray:
    """The outcomes of tickets that were observed before; an error for others that do not wait."""
    over = slots.find_over(turn.columns, at, tickets)
    numbers = turn.columns["over_outcome"][at, over]
    for place in np.flatnonzero((over < 0) | np.isnan(numbers).any(1)):
        text = tickets[place].decode()
        raise ConflictError(_over(turn, at[place], over[place], text, names[place]))
    return numbers


def _over(turn: Turn, row: int, place: int, text: str, name: str) -> str:
    """Why a ticket does not wait."""
    if place >= 0:
        given_up = np.isnan(turn.columns["over_outcome"][row, place]).any()
        reason = "was skipped, or has expired; its round does not count" if given_up else "counts already, once"
    elif _is_number(text) and int(text) < turn.columns["given"][row]:
        reason = "is over; its round counts once, or not at all"
    else:
        reason = "was never given, or is over since long ago; ask decide for a new one"
    return f"the ticket {text!r} of {name!r} {reason}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and (text == "0" or text[0] != "0") and len(text) < 19
