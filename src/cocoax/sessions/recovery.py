"""Opening a journal: restore its newest whole snapshot, then play the events after it, with the same outcomes."""

import warnings
from typing import NamedTuple

from ..errors import SessionError, SessionWarning
from . import packing
from .campaigns import Campaigns
from .copies import LearnerCopies
from .identity import Identity, compare
from .schema import RoundSchema
from .storage.database import Damaged
from .storage.journal import Journal

REPLAYING = "replaying"  # the fact that marks a file until its replay is complete


class Recovered(NamedTuple):
    """How a journal was found."""

    schema: RoundSchema | None = None  # of its rounds, if there were any
    snapshot: int = 0  # the number of the event before the newest one
    is_foreign: bool = False  # other code wrote it, or it is rounded otherwise from here on


def create_or_recover(
    journal: Journal,
    copies: LearnerCopies | Campaigns,
    identity: Identity,
    mark: str | None = None,
    other_rounding: bool = False,
) -> Recovered:
    """Write a new journal, with a mark until it is complete, or bring `copies` to the state after an old one's last
    event. With `other_rounding`, events after the snapshot may have other outcomes than before.
    """
    acknowledged = journal.acknowledged_before
    if journal.is_new:
        if acknowledged:
            raise SessionError(
                f"{journal.path} is damaged: it is empty, but {journal.counter_name} counts events; restore it, or "
                "delete both to start again"
            )
        facts = {"signature": identity.signature} | ({} if mark is None else {mark: True})
        journal.create(facts, copies.notes(), packing.pack(copies.arrays()))
        return Recovered()
    check_complete(journal, journal.path)
    is_empty = acknowledged == 0 and all(journal.fact(name) is None for name in ("round", "request"))
    schema, copies.request_schema = recorded_schema(journal), recorded_schema(journal, "request")
    like, recorded = None if schema is None else schema.like, (journal.fact("signature"), journal.fact("programs"))
    other = compare(*recorded, identity, like, journal.path, is_empty=is_empty)
    snapshot = _restore_snapshot(journal, copies)
    for event in journal.follow(copies.largest_field(schema)):
        if copies.play(schema, event) != event.outcome and not other_rounding:
            because = f"it was {other}" if other else "another machine rounds otherwise"
            raise SessionError(
                f"{journal.path}: round {copies.totals.rounds} gives another outcome than before, because {because}; "
                f"continue where it was played{copies.or_replay}, or accept it with other_rounding=True"
            )
    if schema is None and copies.totals.rounds:
        raise Damaged("the schema of its rounds")
    if acknowledged is not None:
        _warn_of_loss(journal, acknowledged, copies.totals.rounds)
    journal.acknowledge()
    if other and not other_rounding:
        warn(
            f"{journal.path} was {other}: its form and numbers fit, so it goes on, but it may decide otherwise; to be "
            f"sure, open it where it was written{copies.or_replay}"
        )
    return Recovered(schema, snapshot, other_rounding or other is not None)


def check_complete(journal: Journal, path):
    """Raise if a replay into this file was cut short: it would open as if it had all rounds."""
    if journal.fact(REPLAYING) is not None:
        raise SessionError(f"{path} is a replay that was interrupted, without all rounds; delete it and replay again")


def _restore_snapshot(journal, copies) -> int:
    """Restore the newest whole snapshot; returns the number of its event."""
    damaged = None
    for event in journal.snapshots():
        try:
            notes, state = journal.rewind(
                event, lambda notes: packing.size_like(copies.arrays_like(notes)), copies.longest_notes
            )
        except Damaged as damage:
            damaged = damage
            continue
        copies.restore(notes, packing.unpack_like(copies.arrays_like(notes), state))
        if damaged:
            warn(f"{journal.path}: {damaged} is damaged; the state is brought back from the one before")
        return event
    raise damaged or Damaged("its snapshots, of which there is none")


def _warn_of_loss(journal, acknowledged, rounds):
    lost = acknowledged - journal.last
    if acknowledged < 0:
        warn(f"{journal.path}: {journal.counter_name} is damaged: it is not known whether rounds are missing")
    elif lost > 0:
        warn(f"{journal.path}: its log is damaged and the last {lost} event(s) are lost; it has {rounds} rounds now")


def recorded_schema(journal: Journal, name: str = "round") -> RoundSchema | None:
    json = journal.fact(name)
    try:
        return None if json is None else RoundSchema(json)
    except (ValueError, TypeError, RecursionError):
        raise Damaged(f"the schema of its {name}s") from None


def warn(text):
    warnings.warn(text, SessionWarning, stacklevel=2)
