"""Budgets of campaigns: what is given, and where they stand."""

import numpy as np

from ..errors import ConflictError, LearnerError, SessionError
from ..learners.budgets import spending
from ..learners.capped import amounts
from . import packing
from .campaigns import Campaigns
from .rows import Picked
from .turn import Turn

_PART = 4096  # campaigns that are looked at together


def checked_budgets(budgets, count: int, each: int) -> np.ndarray:
    """A row of budgets for each name."""
    if not each:
        raise SessionError("budgets= are for learners.Budgeted; this learner has none")
    try:
        if np.asarray(budgets).dtype == bool:
            raise TypeError
        amounts(np.ravel(np.asarray(budgets)), "budgets")
        table = np.asarray(budgets, float)
    except (LearnerError, ValueError, TypeError):
        raise SessionError(f"budgets must be numbers >= 0, got {packing.short(budgets)}") from None
    table = table[..., None] if each == 1 and table.shape in ((), (count,)) else table
    if table.shape not in ((each,), (count, each)):
        raise SessionError(
            f"budgets must have one row of {each} for each of the {count} names, got the shape {table.shape}"
        )
    return np.broadcast_to(table, (count, each)).copy()


def check_same_budgets(campaigns: Campaigns, names: list[str], budgets: np.ndarray):
    """Raise if a campaign that has begun has other budgets than these."""
    if not names:
        return
    rows = np.array([campaigns.rows[name] for name in names])
    states, learner = campaigns.programs.states, campaigns.learner
    words = campaigns.programs.set_budgets(Picked(campaigns.columns["words"][:, 0], rows), budgets)
    as_kept = spending(learner, states.columns(words[:, : states.size])).budget  # rounded as theirs are
    if (differs := (spending(learner, campaigns.states(rows)).budget != as_kept).any(1)).any():
        name = names[int(np.argmax(differs))]
        raise ConflictError(f"{name!r} has begun with other budgets; give change(names, budgets=...)")


def standing_of(campaigns: Campaigns, rows: np.ndarray) -> dict[str, np.ndarray]:
    """budget, planned, spent and reserved of these campaigns, a row each; nothing without budgets."""
    if not campaigns.budgets:
        return {}
    parts = [_standing(campaigns, rows[at : at + _PART]) for at in range(0, len(rows), _PART)]
    names, none = ("budget", "planned", "spent", "reserved"), np.zeros((0, campaigns.budgets))
    return {name: np.concatenate([none, *(part[place] for part in parts)]) for place, name in enumerate(names)}


def _standing(campaigns: Campaigns, rows: np.ndarray) -> tuple[np.ndarray, ...]:
    states, learner = campaigns.programs.states, campaigns.learner
    waiting = Turn(campaigns, rows).reserved()[:, : states.size]
    now, then = spending(learner, campaigns.states(rows)), spending(learner, states.columns(waiting))
    return *now, then.spent - now.spent
