"""The comparators of a study's games, each computed once and kept in the store."""

import time
from collections.abc import Callable, Mapping

import polars as pl

from ...comparators.comparator import Comparator
from ...errors import CocoaxError
from ..results.rows import comparator_row, stored_comparator
from ..results.store import Memory, Store
from ..sources import Drawn

_PATIENCE = 20.0  # seconds without a new comparator until a process stops waiting

Which = tuple[int, int]  # seed, horizon


def comparators(
    store: Store | Memory,
    keys: Mapping[Which, str],
    drawn: Mapping[int, Drawn],
    tol: float,
    report: Callable[[int], None],
) -> dict[Which, Comparator | str]:
    """By seed and horizon, from the store where possible; a text says why there is none."""
    store.keys("comparator")  # which sets damaged ones aside
    stored = {}
    for horizon in dict.fromkeys(horizon for _, horizon in keys):
        here = {seed: key for (seed, length), key in keys.items() if length == horizon}
        if not stored.keys() >= set(here.values()):  # another process may have stored them
            stored = {row["key"]: row for row in store.read("comparator").iter_rows(named=True)}
        rows = []
        for seed, key in here.items():
            if key in stored:
                continue
            report(horizon)
            try:
                best = drawn[seed].comparator(horizon, tol)
            except CocoaxError as error:  # no decision meets the constraints, or a round is not finite
                best = str(error)
            rows.append(comparator_row(key, best))
        if rows:
            frame = pl.concat(rows, how="diagonal_relaxed")
            store.append("comparator", frame)
            stored |= {row["key"]: row for row in frame.iter_rows(named=True)}
    return {which: stored_comparator(stored[key]) for which, key in keys.items()}


def wait_for(store: Store | Memory, keys: set[str]) -> None:
    """Wait until other processes have stored all of these, or nothing new for a while."""
    count, since = -1, time.monotonic()
    while not keys <= (stored := store.keys("comparator")) and time.monotonic() - since < _PATIENCE:
        if len(stored) > count:
            count, since = len(stored), time.monotonic()
        time.sleep(0.05)
