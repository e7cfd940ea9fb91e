"""Running totals of many campaigns at once: the numbers that a session has for each."""

from typing import Any

import numpy as np

from ..core.sums import compensated_add
from ..learners.base import Outcome
from . import outcomes


class FleetTotals:
    """`columns` is all of it, one row a campaign."""

    def __init__(self, constraints: int):
        self._constraints = constraints
        self.columns = self.empty(0)

    def empty(self, campaigns: int) -> dict[str, np.ndarray]:
        terms = 1 + 2 * self._constraints
        return {
            "rounds": np.zeros(campaigns, np.int64),
            "totals": np.zeros((campaigns, terms)),  # of loss, g and [g]_+
            "lost": np.zeros((campaigns, terms)),  # the rounding errors of the totals
            "last": np.zeros((campaigns, outcomes.width(self._constraints))),  # the latest outcomes
        }

    @property
    def rounds(self) -> int:
        """Of all campaigns."""
        return int(self.columns["rounds"].sum())

    def grow(self, campaigns: int):
        more = self.empty(campaigns)
        for name, column in self.columns.items():
            more[name][: len(column)] = column
        self.columns = more

    def clear(self, rows: np.ndarray):
        for column in self.columns.values():
            column[rows] = 0

    def last(self, rows: np.ndarray) -> Outcome:
        """The outcomes of the latest rounds of these campaigns."""
        return outcomes.unpacked(self.columns["last"][rows], self._constraints)

    def add(self, rows: np.ndarray, numbers: np.ndarray):
        """Add a round of each of these campaigns; `numbers` are its outcomes, as `outcomes.packed` gives them."""
        columns, new = self.columns, outcomes.unpacked(numbers, self._constraints)
        terms = np.concatenate([np.c_[new.loss], new.constraint, np.maximum(new.constraint, 0)], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            totals, lost = compensated_add(columns["totals"][rows], columns["lost"][rows], terms)
        columns["totals"][rows], columns["lost"][rows] = totals, lost
        columns["rounds"][rows] += 1
        columns["last"][rows] = numbers

    def summary(self, row: int, names: Any) -> dict:
        """As that of a session."""
        rows = np.array([row])
        return self.whole(rows, names) | {"multiplier": dict(zip(names, self.last(rows).multiplier[0].tolist()))}

    def multipliers(self, rows: np.ndarray, names: Any) -> dict:
        """Their means and largest values over these campaigns."""
        last = self.last(rows).multiplier if len(rows) else np.zeros((1, self._constraints))
        means, largest = last.mean(0).tolist(), last.max(0).tolist()
        return {"mean_multiplier": dict(zip(names, means)), "largest_multiplier": dict(zip(names, largest))}

    def whole(self, rows: np.ndarray, names: Any) -> dict:
        """Sums over these campaigns."""
        rounds, m = int(self.columns["rounds"][rows].sum()), self._constraints
        loss, *rest = self.columns["totals"][rows].sum(0).tolist()
        return {
            "rounds": rounds,
            "loss": loss,
            "mean_loss": loss / rounds if rounds else None,
            "violation": dict(zip(names, rest[:m])),
            "hard_violation": dict(zip(names, rest[m:])),
        }
