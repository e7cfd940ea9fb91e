"""Checks of the arguments of sessions."""

import os
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..core import check, tree
from ..domains.base import AbstractDomain, Point
from ..errors import DomainError, ProblemError, SessionError, SessionWarning
from ..games.state import begin, checked_start, checked_state
from ..learners.base import Horizon
from ..learners.budgets import budgeted
from ..problem.rounds import as_rounds, number_of_rounds
from . import packing
from .schema import RoundSchema

LONGEST_NAME = 200  # of a ticket or a campaign, in characters
MOST_PENDING, MOST_PENDING_IN_A_FLEET, _MOST_COPIES = 1_000_000, 10_000, 10_000  # each takes memory, used or not


def as_file(path) -> Path:
    """The real path: files beside it are the same ones through every symbolic link."""
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise SessionError(f"path must be the name of a file, got {packing.short(path)}")
    return Path(os.path.realpath(path))


def late_settings(horizon, pending, copies, expires, most: int = MOST_PENDING) -> dict:
    pending = check.whole(pending, "pending", SessionError, low=0, high=most)
    if not pending and (copies is not None or expires is not None):
        raise SessionError("copies= and expires= are for late feedback; give pending= too")
    copies = max(pending, 1) if copies is None else check.whole(copies, "copies", SessionError, low=1)
    if copies > _MOST_COPIES:
        raise SessionError(f"{copies} copies of the learner are too many; give copies=, at most {_MOST_COPIES}")
    if copies > max(pending, 1):
        raise SessionError(f"copies={copies} is more than pending={pending}: some would never play; give fewer copies")
    if expires is not None:
        expires = check.whole(expires, "expires", SessionError, low=1)
    if horizon is not None:
        rounds = horizon.capacity if isinstance(horizon, Horizon) else horizon
        horizon = check.whole(rounds, "horizon", SessionError, low=1)
    return {"pending": pending, "copies": copies, "expires": expires, "horizon": horizon}


def late_settings_of(problem, learner, horizon, pending, copies, expires, most: int = MOST_PENDING) -> dict:
    """As `late_settings`, checked against what the learner and the problem can do."""
    if problem.has_movement and pending:
        raise SessionError("late rounds have no order, so no movement is known; leave out pending=, or previous")
    return late_settings(horizon, pending, one_copy(copies, pending) if budgeted(learner) else copies, expires, most)


def one_copy(copies, pending) -> int | None:
    """The only number of copies for learners whose late rounds share a budget."""
    if copies not in (None, 1):
        raise SessionError("late rounds share one budget, so one copy must take all decisions; give copies=1")
    return 1 if pending else copies


def first_states(problem, learner, key, state, horizon, start, copies) -> list:
    """The states of all copies: new ones, or those of `state`."""
    if state is not None:
        if horizon is not None or start is not None:
            raise SessionError("state= continues with its own start and horizon; leave out start= and horizon=")
        states = list(state) if copies > 1 and type(state) is tuple else [state]
        if len(states) != copies:
            raise SessionError(f"state= must be a tuple of {copies} states, one for each copy; or give copies=1")
        return [checked_state(problem, learner, None, state) for state in states]
    check.random_key(key, "a session", SessionError)
    horizon = horizon if horizon is None or isinstance(horizon, Horizon) else Horizon(horizon)
    start = checked_start(problem, start)
    learner.check(problem)
    keys = [key] if copies == 1 else list(jax.random.split(key, copies))
    return [begin(problem, learner, None, key, horizon, start) for key in keys]


def list_of_rounds(rounds) -> list:
    """A list of rounds, from a list, a frame, or a PyTree with a leading axis."""
    if isinstance(rounds, list | tuple) and not rounds:
        raise SessionError("observe_many needs at least one round")
    if isinstance(rounds, list | tuple) and not all(isinstance(round, int | float | np.ndarray) for round in rounds):
        return list(rounds)
    try:
        columns = jax.tree.map(np.asarray, as_rounds(rounds), is_leaf=lambda node: isinstance(node, list))
        count = number_of_rounds(columns)
    except ProblemError as error:
        raise SessionError(str(error)) from None
    return [jax.tree.map(lambda leaf, i=i: leaf[i], columns) for i in range(count)]


def checked_ticket(ticket, what: str = "a ticket") -> str:
    if not isinstance(ticket, str) or not 0 < len(ticket) <= LONGEST_NAME or not ticket.isprintable():
        raise SessionError(
            f"{what} is a string of 1 to {LONGEST_NAME} printable characters, got {packing.short(ticket)}"
        )
    return ticket


def checked_campaign(name) -> str:
    return checked_ticket(name, "the name of a campaign")


def checked_label(label: Any) -> str | None:
    """A label as text: a text, or a date."""
    text = label.isoformat() if hasattr(label, "isoformat") else label
    text = str(label) if isinstance(label, np.datetime64) else text
    if label is None or (isinstance(text, str) and 0 < len(text) <= LONGEST_NAME and text.isprintable()):
        return text
    raise SessionError(
        f"a label is a date, or a text of 1 to {LONGEST_NAME} printable characters, got {packing.short(label)}"
    )


def checked_labels(labels: Any, count: int) -> list:
    """One label for each round."""
    if labels is None:
        return [None] * count
    if isinstance(labels, str) or not hasattr(labels, "__len__") or len(labels) != count:
        raise SessionError(f"labels must be {count} texts or dates, one for each round")
    return [checked_label(label) for label in labels]


OUTSIDE = 1e-4  # of the size of the set, as for a start


def as_decision(played: Any, like: Point, domain: AbstractDomain) -> Point:
    """What was played, in the form of a decision. Outside the set it counts, since it happened, with a warning."""
    if tree.has_element(like):
        raise SessionError("a session with factored matrices takes no played=; play the decision itself")
    like = to_numpy(like)
    point = RoundSchema.of(like, "played").cast(played, "played")
    point = jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(point))
    try:
        inside = bool(_contains(domain, point))
    except DomainError:  # a domain need not be able to tell
        inside = True
    if not inside:
        warnings.warn(
            "played= is not a point of the domain: the round counts, but no guarantee covers it; give what was really "
            "played, in the units of a decision, or make the domain larger",
            SessionWarning,
            stacklevel=4,
        )
    return point


@jax.jit
def _contains(domain, point):
    return domain.contains(point, OUTSIDE)


def to_numpy(x):
    """A NumPy copy."""
    return np.array(x) if isinstance(x, jax.Array) else jax.tree.map(np.array, x)
