"""Rounds of campaigns that are to be observed: those that count already, and the others."""

import json
import warnings
from typing import Any

import jax
import numpy as np

from ..errors import ConflictError, SessionError, SessionWarning
from . import fleet_tickets, outcomes, packing, slots
from .arguments import OUTSIDE
from .campaign_events import NotFiniteError
from .campaigns import Campaigns
from .outcomes import Remarks
from .requests import completed
from .schema import RoundSchema
from .stacked import cast, chosen, first, picked, waves
from .turn import Turn


def observed(
    campaigns: Campaigns,
    schema: RoundSchema | None,
    names: list[str],
    rows: np.ndarray,
    rounds: Any,
    played: Any,
    at: Any,
    tickets: list[str | None],
    labels: list[str | None],
    keep_decisions: bool,
) -> tuple[Turn, RoundSchema | None, np.ndarray]:
    """(the turn, which has events if a round is new; the schema of rounds; all outcomes, packed)."""
    if at is not None and campaigns.pending:
        raise SessionError("at= counts rounds that come in order; with pending=, tickets= make a call repeatable")
    unique, parts = waves(rows)
    turn, numbers = Turn(campaigns, unique), np.empty((len(names), outcomes.width(campaigns.constraints)))
    counts = None if at is None else _counts(at, len(names))
    for places, where in parts:
        called = picked(names, places)
        texts = fleet_tickets.encoded(picked(tickets, places)) if campaigns.pending else None
        if texts is None:
            fresh = _not_counted(campaigns, called, rows, counts)
            numbers[places] = campaigns.totals.columns["last"][rows[places]]
        else:
            waits = slots.find(turn.columns, where, texts) >= 0
            fresh, old = np.flatnonzero(waits), np.flatnonzero(~waits)
            before = fleet_tickets.outcomes_of(turn, where[old], texts[old], picked(called, old))
            numbers[places[old]] = before
        if not len(fresh):
            continue
        chosen_rounds, chosen_played = chosen((rounds, played), places[fresh], len(names))
        called, where, texts = picked(called, fresh), where[fresh], None if texts is None else texts[fresh]
        whole = like = chosen_rounds
        requests = _open_requests(turn, where, called, texts) if turn.asks else None
        if turn.asks:
            whole, like = completed(campaigns.problem, requests, chosen_rounds, "rounds")
        schema = schema or RoundSchema.of(first(like, "rounds"), "rounds")
        whole = cast(schema, whole, called, "rounds")
        if turn.asks:
            _check_same(campaigns.problem.request_of(whole), requests, called)
        point = None if chosen_played is None else _as_decisions(campaigns, called, chosen_played)
        remarks = _remarks(picked(labels, places[fresh]), keep_decisions)
        try:
            turn.observe(where, texts, whole, point, remarks)
        except NotFiniteError as error:
            raise SessionError(f"the round of {called[error.place]!r} is not finite: {error.reason}") from None
        numbers[places[fresh]] = turn.observed[-1][1]
    return turn, schema, numbers


def _counts(at: Any, count: int) -> np.ndarray:
    try:
        counts = np.broadcast_to(np.asarray(at), count)
        if counts.dtype.kind not in "iu" or (counts < 0).any():
            raise ValueError
        return counts.astype(np.int64)
    except (ValueError, TypeError, OverflowError):
        raise SessionError(f"at= must be a whole number >= 0, or one for each of the {count} names") from None


def _not_counted(campaigns: Campaigns, names: list[str], rows: np.ndarray, at: np.ndarray | None) -> np.ndarray:
    """The places of rounds that do not count yet."""
    if at is None:
        return np.arange(len(rows))
    counts = campaigns.totals.columns["rounds"][rows]
    ahead = counts - at
    if not np.isin(ahead, (0, 1)).all():
        which = int(np.argmin(np.isin(ahead, (0, 1))))
        raise ConflictError(f"{names[which]!r} has {counts[which]} rounds; at= must be that, or one less to repeat")
    return np.flatnonzero(ahead == 0)


def _open_requests(turn: Turn, at: np.ndarray, names: list[str], tickets: np.ndarray | None) -> Any:
    """The requests that were decided, stacked."""
    slot = slots.find(turn.columns, at, tickets)
    if (slot < 0).any():
        raise ConflictError(f"{names[int(np.argmin(slot))]!r} has no open request; decide first")
    return turn.requests(at, slot)


def _check_same(requests: Any, decided: Any, names: list[str]):
    """Raise if a round has another request than was decided."""
    differs = (packing.pack_rows(requests, len(names)) != packing.pack_rows(decided, len(names))).any(1)
    if differs.any():
        name = names[int(np.argmax(differs))]
        raise ConflictError(
            f"the round of {name!r} has another request than decide had; leave its fields out of rounds"
        )


def _as_decisions(campaigns: Campaigns, names: list[str], played: Any) -> Any:
    """What was played, in the form of decisions; points outside the domain are warned of."""
    like = jax.tree.map(lambda leaf: leaf[0], campaigns.decisions(np.zeros(1, np.int64)))
    points = cast(RoundSchema.of(like, "played"), played, names, "played")
    points = jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(points))
    outside = campaigns.programs.outside(campaigns.problem.domain, points, len(names), OUTSIDE)
    if outside.any():
        warnings.warn(
            f"played= of {names[int(np.argmax(outside))]!r} is not a point of the domain: the round counts, but no "
            "guarantee covers it; give what was really played, in the units of a decision, or make the domain larger",
            SessionWarning,
            stacklevel=4,
        )
    return points


def _remarks(labels: list[str | None], keep_decisions: bool) -> Remarks:
    """What is kept of these rounds beside their numbers."""
    label = None if labels.count(None) == len(labels) else json.dumps(labels)
    return Remarks(label, b"" if keep_decisions else None)
