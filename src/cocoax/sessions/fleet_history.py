"""The past rounds of one campaign of a fleet."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from . import packing
from .campaign_events import BEGAN, ENDED
from .schema import RoundSchema
from .storage.events import OBSERVED, Event


def rounds_of(
    name: str, row: int | None, events: Iterable[Event], schema: RoundSchema | None, keep_rounds: bool
) -> tuple[list[np.ndarray], list | None]:
    """(outcomes, rounds) of a campaign since it last began. `row` is its own until an event says another."""
    outcomes, data = [], []
    for event in events:
        if event.kind in (BEGAN, ENDED):
            row, began = _row_after(event, name, row)
            outcomes, data = ([], []) if began else (outcomes, data)
        elif event.kind == OBSERVED and row is not None and schema is not None:
            count = len(event.round or b"") // (4 + schema.size)
            rows = np.frombuffer(event.round or b"", np.int32, count)
            for place in np.flatnonzero(rows == row):
                outcomes.append(np.frombuffer(event.outcome or b"").reshape(count, -1)[place])
                if keep_rounds:
                    data.append(_one(schema, (event.round or b"")[4 * count :], count, place))
    return outcomes, data if keep_rounds else None


def _row_after(event: Event, name: str, row: int | None) -> tuple[int | None, bool]:
    """(the row of the campaign after this event, whether the event began it)."""
    names, rows = json.loads(event.round or b"")
    if name not in names:
        return row, False
    return (rows[names.index(name)], True) if event.kind == BEGAN else (None, False)


def _one(schema: RoundSchema, data: bytes, count: int, place: Any) -> Any:
    size = len(data) // count
    return packing.unpack_like(schema.like, data[place * size : (place + 1) * size])
