"""The past rounds of one campaign of a fleet."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from . import outcomes
from .campaign_events import BEGAN, ENDED, names_and_rows, rows_and_data
from .campaigns import Campaigns
from .outcomes import Remarks
from .storage.database import Damaged
from .storage.events import OBSERVED, Event


class Past(NamedTuple):
    """The observed rounds of a campaign since it last began."""

    numbers: list[np.ndarray]  # packed outcomes
    remarks: list[Remarks]
    rounds: list | None  # their data, if they are wanted


def past_of(
    name: str, row: int | None, events: Iterable[Event], campaigns: Campaigns, schema: Any, keep_rounds: bool
) -> Past:
    """All that these events have of them. `row` is that of the campaign until an event says another."""
    numbers, remarks, data = [], [], []
    for event in events:
        if event.kind in (BEGAN, ENDED):
            row, began = _row_after(event, name, row, campaigns.budgets)
            numbers, remarks, data = ([], [], []) if began else (numbers, remarks, data)
        elif event.kind == OBSERVED and row is not None and schema is not None:
            rows, _, rest = rows_and_data(event.round or b"", schema.size, bool(campaigns.pending))
            for place in np.flatnonzero(rows == row):
                outcome, remark = _outcome(event, len(rows), int(place))
                numbers.append(outcome)
                remarks.append(remark)
                if keep_rounds:
                    data.append(schema.unpack(_part(rest, len(rows), int(place))))
    return Past(numbers, remarks, data if keep_rounds else None)


def _row_after(event: Event, name: str, row: int | None, budgets: int) -> tuple[int | None, bool]:
    """(the row of the campaign after this event, whether the event began it)."""
    names, rows, *_ = names_and_rows(event, budgets)
    if name not in names:
        return row, False
    return (rows[names.index(name)], True) if event.kind == BEGAN else (None, False)


def _outcome(event: Event, count: int, place: int) -> tuple[np.ndarray, Remarks]:
    """The numbers and remarks of one of the rounds of an event."""
    try:
        numbers, kept = outcomes.split(event.outcome or b"")
        label = None if kept.label is None else json.loads(kept.label)[place]
    except (ValueError, TypeError, IndexError):
        raise Damaged("the outcomes of its rounds") from None
    points = [None if part is None else _part(part, count, place) for part in (kept.decision, event.played)]
    return numbers.reshape(count, -1)[place], Remarks(label, points[0], points[1] if points[0] is not None else None)


def _part(data: bytes, count: int, place: int) -> bytes:
    size = len(data) // count
    return data[place * size : (place + 1) * size]
