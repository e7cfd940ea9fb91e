"""Running totals of many campaigns at once: the numbers that a session has for each."""

from typing import Any

import numpy as np

from ..core.sums import compensated_add
from ..learners.base import Outcome
from . import outcomes
from .totals import BLOCKS, LONGEST, SHORTEST, growing


class FleetTotals:
    """`columns` is all of it, one row a campaign."""

    def __init__(self, constraints: int):
        self._constraints = constraints
        self.columns = self.empty(0)

    def empty(self, campaigns: int) -> dict[str, np.ndarray]:
        m = self._constraints
        terms = 1 + 2 * m
        return {
            "rounds": np.zeros(campaigns, np.int64),
            "totals": np.zeros((campaigns, terms)),  # of loss, g and [g]_+
            "lost": np.zeros((campaigns, terms)),  # the rounding errors of the totals
            "last": np.zeros((campaigns, outcomes.width(m))),  # the latest outcomes
            "losses": np.tile([np.inf, -np.inf], (campaigns, 1)),  # smallest and largest
            "means": np.zeros((campaigns, BLOCKS, 2, m)),  # of multiplier and g, by blocks of rounds, oldest first
            "sums": np.zeros((campaigns, 2, m)),  # of the block that is not full yet
            "shape": np.tile(np.array([0, 0, SHORTEST]), (campaigns, 1)),  # as in a session
            "alarm": np.zeros((campaigns, m), bool),
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
        for name, first in self.empty(1).items():
            self.columns[name][rows] = first

    def last(self, rows: np.ndarray) -> Outcome:
        """The outcomes of the latest rounds of these campaigns."""
        return outcomes.unpacked(self.columns["last"][rows], self._constraints)

    def add(self, rows: np.ndarray, numbers: np.ndarray):
        """Add a round of each of these campaigns; `numbers` are its outcomes, as `outcomes.packed` gives them."""
        columns, new = self.columns, outcomes.unpacked(numbers, self._constraints)
        terms = np.concatenate([np.reshape(new.loss, (-1, 1)), new.constraint, np.maximum(new.constraint, 0)], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            totals, lost = compensated_add(columns["totals"][rows], columns["lost"][rows], terms)
        columns["totals"][rows], columns["lost"][rows] = totals, lost
        columns["rounds"][rows] += 1
        columns["last"][rows] = numbers
        low, high = columns["losses"][rows].T
        columns["losses"][rows] = np.stack([np.minimum(low, new.loss), np.maximum(high, new.loss)], axis=1)
        columns["sums"][rows] += np.stack([new.multiplier, new.constraint], axis=1)
        shape = columns["shape"][rows]
        shape[:, 1] += 1
        columns["shape"][rows] = shape
        if len(full := rows[shape[:, 1] >= shape[:, 2]]):
            self._end_block(full)

    def _end_block(self, rows: np.ndarray):
        """As `RunningTotals` does, for campaigns whose block is full."""
        columns = self.columns
        blocks, _, length = columns["shape"][rows].T
        longer = (blocks == BLOCKS) & (length < LONGEST)
        if len(some := rows[longer]):  # the block continues, to twice the length
            halves = columns["means"][some].reshape(len(some), BLOCKS // 2, 2, 2, self._constraints)
            columns["means"][some, : BLOCKS // 2] = halves.mean(2)
            columns["shape"][some, 0], columns["shape"][some, 2] = BLOCKS // 2, 2 * length[longer]
        if len(some := rows[(blocks == BLOCKS) & ~longer]):
            columns["means"][some] = np.roll(columns["means"][some], -1, axis=1)
            columns["shape"][some, 0] -= 1
        if len(some := rows[~longer]):
            place, _, length = columns["shape"][some].T
            columns["means"][some, place] = columns["sums"][some] / length[:, None, None]
            columns["sums"][some] = 0
            columns["shape"][some, 0], columns["shape"][some, 1] = place + 1, 0
        blocks = columns["shape"][rows, 0]
        for number in np.unique(blocks):
            some = rows[blocks == number]
            columns["alarm"][some] = growing(columns["means"][some], int(number), columns["losses"][some])

    def alarms(self, row: int, names: Any) -> list[str]:
        """The constraints of this campaign that look infeasible."""
        return [name for name, grows in zip(names, self.columns["alarm"][row]) if grows]

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
