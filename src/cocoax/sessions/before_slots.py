"""Snapshots of fleets from before late feedback: a campaign had one open request, and no table of slots."""

import numpy as np

from . import slots


def columns_then(rows: int, width: int, request: int, answer: int) -> slots.Columns:
    """What such a snapshot has of so many campaigns. Sizes: of a request in bytes, the others in words."""
    return {
        "words": np.zeros((rows, width), np.uint32),
        "open": np.zeros(rows, bool),  # whether a request was decided and not observed
        "request": np.zeros((rows, request), np.uint8),
        "answer": np.zeros((rows, answer), np.uint32),
    }


def columns_now(then: slots.Columns, asks: bool) -> slots.Columns:
    """The same with one slot, or none if there are no requests."""
    words = {"words": then["words"][:, None]}
    if not asks:
        return words
    is_open = then["open"]
    number = np.where(is_open, 0, slots.FREE).astype(np.int64)[:, None]
    waiting = {name: then[name][:, None] for name in ("request", "answer")}
    return words | waiting | {"given": is_open.astype(np.int64), "number": number}
