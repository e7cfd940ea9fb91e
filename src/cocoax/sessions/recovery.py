"""Opening a journal: restore its newest whole snapshot, then play the events after it, with the same outcomes."""

import warnings

from ..errors import SessionError, SessionWarning
from . import identity, packing
from .campaigns import Campaigns
from .copies import LearnerCopies
from .schema import RoundSchema
from .storage.database import Damaged
from .storage.journal import Journal

REPLAYING = "replaying"  # the fact that marks a file until its replay is complete


def create_or_recover(
    journal: Journal, copies: LearnerCopies | Campaigns, facts: dict, other_rounding: bool = False
) -> tuple[RoundSchema | None, int]:
    """Write a new journal with these facts, or bring `copies` to the state after the last event of an old one.

    Returns the schema of the rounds, if there were any, and the number of the event before the newest snapshot. With
    `other_rounding`, events after the snapshot may have other outcomes than before.
    """
    acknowledged = journal.acknowledged_before
    if journal.is_new:
        if acknowledged:
            raise SessionError(
                f"{journal.path} is damaged: it is empty, but {journal.counter_name} counts events; restore it, or "
                "delete both to start again"
            )
        journal.create(facts, copies.notes(), packing.pack(copies.arrays()))
        return None, 0
    check_complete(journal, journal.path)
    is_empty = acknowledged == 0 and all(journal.fact(name) is None for name in ("round", "request"))
    recorded = journal.fact("signature")
    identity.compare(recorded, facts["signature"], journal.path, any_version=other_rounding, is_empty=is_empty)
    schema, copies.request_schema = recorded_schema(journal), recorded_schema(journal, "request")
    snapshot = _restore_snapshot(journal, copies)
    for event in journal.follow(copies.largest_field(schema)):
        if copies.play(schema, event) != event.outcome and not other_rounding:
            raise SessionError(
                f"{journal.path}: round {copies.totals.rounds} gives another outcome than before, because another "
                f"machine, device or version of JAX rounds otherwise; continue where it was played{copies.or_replay}, "
                "or accept it with other_rounding=True"
            )
    if schema is None and copies.totals.rounds:
        raise Damaged("the schema of its rounds")
    if acknowledged is not None:
        _warn_of_loss(journal, acknowledged, copies.totals.rounds)
    journal.acknowledge()
    return schema, snapshot


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
