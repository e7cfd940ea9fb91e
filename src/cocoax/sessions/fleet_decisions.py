"""Decisions of campaigns that wait for their rounds, of late feedback or of requests: old ones, and new ones."""

from typing import Any

import numpy as np

from ..errors import ConflictError
from . import fleet_tickets, packing, slots
from .campaigns import Campaigns
from .requests import request_schema
from .schema import RoundSchema
from .stacked import cast, chosen, first, picked, waves
from .turn import Turn


def cast_requests(
    campaigns: Campaigns, schema: RoundSchema | None, names: list[str], requests: Any
) -> tuple[Campaigns, Any]:
    """(campaigns with a schema of requests, which the first one fixes; requests in it). `schema` is that of rounds."""
    known = campaigns.request_schema
    known = known or request_schema(campaigns.problem, schema, first(requests, "requests"))
    requests = cast(known, requests, names, "requests")
    if campaigns.request_schema is None:
        campaigns = campaigns.fork()  # the request may be refused
        campaigns.fix_requests(known)
    return campaigns, requests


def decided(
    campaigns: Campaigns, names: list[str], rows: np.ndarray, requests: Any, tickets: list[str | None]
) -> tuple[Turn, Any, list[str]]:
    """(the turn, which has events if a decision is new; the decisions, stacked; their tickets)."""
    unique, parts = waves(rows)
    turn, given = Turn(campaigns, unique), [""] * len(names)
    words = np.empty((len(names), campaigns.programs.decisions.size), np.uint32)
    for places, at in parts:
        called = picked(names, places)
        texts = fleet_tickets.named(turn, at, picked(tickets, places)) if campaigns.pending else None
        asked = None if requests is None else chosen(requests, places, len(names))
        slot = _slots(turn, at, called, texts, asked)
        words[places] = turn.columns["answer"][at, slot]
        for place, text in zip(places.tolist(), [] if texts is None else texts.tolist()):
            given[place] = text.decode()
    return turn, campaigns.programs.decisions.columns(words), given


def _slots(turn: Turn, at: np.ndarray, names: list[str], tickets: np.ndarray | None, requests: Any) -> np.ndarray:
    """Where these decisions wait; new ones are taken."""
    slot = slots.find(turn.columns, at, tickets)
    if requests is not None:
        packed = packing.pack_rows(requests, len(at))
        differs = (slot >= 0) & (turn.columns["request"][at, slot] != packed).any(1)
        if differs.any():
            raise ConflictError(_other_request(names[int(np.argmax(differs))], tickets is not None))
    if not len(new := np.flatnonzero(slot < 0)):
        return slot
    if tickets is not None:
        fleet_tickets.check_new(turn, at[new], tickets[new], picked(names, new))
    turn.decide(at[new], None if tickets is None else tickets[new], chosen(requests, new, len(at)))
    return slots.find(turn.columns, at, tickets)


def _other_request(name: str, late: bool) -> str:
    if late:
        return f"a ticket of {name!r} was decided for another request; give that one, or a new ticket"
    return f"the request before of {name!r} is not observed yet; observe its round, or skip it"
