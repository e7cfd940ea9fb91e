"""Sums over the rounds of a session that do not drift, and a sign of infeasible budgets."""

import math
from typing import Any

import numpy as np

from ..core.sums import compensated_add
from ..learners.base import Outcome

BLOCKS = 16  # the newest blocks; each holds means over equally many rounds
_WATCHED = 8  # an alarm needs a sign in each of so many blocks
SHORTEST, LONGEST = 32, 4096  # rounds in a block
_TOO_DEAR = 3  # times the range of the losses: feasible pacing problems reached 2.4 at most (DPP, 12 games)


class RunningTotals:
    """Totals, multipliers and block means. `arrays` is all of it, for snapshots. No value is changed in place, so a
    shallow copy is independent."""

    def __init__(self, constraints: int):
        self._constraints = constraints
        self.rounds = 0
        self._totals = np.zeros(1 + 2 * constraints)  # of loss, g and [g]_+
        self._lost = np.zeros(1 + 2 * constraints)  # the rounding errors of the totals
        self._losses = math.inf, -math.inf  # smallest and largest
        self._multiplier = [0.0] * constraints
        self._means = np.zeros((BLOCKS, 2, constraints))  # of multiplier and g, oldest first
        self._sums = [0.0] * (2 * constraints)  # of the block that is not full yet
        self._blocks = 0, 0, SHORTEST  # full blocks, rounds in the next one, rounds in a full one

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "rounds": np.array(self.rounds, np.int64),
            "totals": np.array([self._totals, self._lost]),
            "losses": np.array(self._losses),
            "multiplier": np.array(self._multiplier),
            "means": self._means,
            "sums": np.array(self._sums).reshape(2, -1),
            "shape": np.array(self._blocks, np.int64),
        }

    @arrays.setter
    def arrays(self, arrays):
        self.rounds, self._means = int(arrays["rounds"]), arrays["means"]
        self._totals, self._lost = arrays["totals"]
        self._losses, self._blocks = tuple(arrays["losses"].tolist()), tuple(arrays["shape"].tolist())
        self._multiplier, self._sums = arrays["multiplier"].tolist(), arrays["sums"].ravel().tolist()

    def add(self, outcome: Outcome):
        """Add a round."""
        loss, values, multiplier = outcome.loss, outcome.constraint.tolist(), outcome.multiplier.tolist()
        self.rounds += 1
        terms = np.array([loss, *values, *(max(g, 0.0) for g in values)])
        with np.errstate(over="ignore", invalid="ignore"):
            self._totals, self._lost = compensated_add(self._totals, self._lost, terms)
        self._losses = min(self._losses[0], loss), max(self._losses[1], loss)
        self._multiplier = multiplier
        self._add_to_block([*multiplier, *values])

    def _add_to_block(self, pair):
        self._sums = [total + x for total, x in zip(self._sums, pair)]
        full, inside, length = self._blocks
        if inside + 1 < length:
            self._blocks = full, inside + 1, length
            return
        means = self._means.copy()
        if full == BLOCKS and length < LONGEST:
            means[: BLOCKS // 2] = means.reshape(BLOCKS // 2, 2, *means.shape[1:]).mean(1)
            self._means, self._blocks = means, (BLOCKS // 2, inside + 1, 2 * length)
            return  # the block continues, to twice the length
        if full == BLOCKS:
            means, full = np.roll(means, -1, axis=0), BLOCKS - 1
        means[full] = np.array(self._sums).reshape(2, -1) / length
        self._means, self._sums, self._blocks = means, [0.0] * len(pair), (full + 1, 0, length)

    def growing(self) -> np.ndarray:
        """For each constraint, whether it looks infeasible."""
        return growing(self._means, self._blocks[0], self._losses)

    def summary(self, names) -> dict:
        loss, *rest = self._totals.tolist()
        violation, hard = rest[: len(names)], rest[len(names) :]
        return {
            "rounds": self.rounds,
            "loss": loss,
            "mean_loss": loss / self.rounds if self.rounds else None,
            "violation": dict(zip(names, violation)),
            "hard_violation": dict(zip(names, hard)),
            "multiplier": dict(zip(names, self._multiplier)),
        }


def growing(means: np.ndarray, full: int, losses: Any) -> np.ndarray:
    r"""For each constraint, whether it is exceeded at too high a price while its multiplier rises in every block.

    If x is feasible, no regret against $f_t + \lambda_t g_t$ bounds $\sum\lambda_t g_t(x_t)$ by
    $\sum (f_t(x) - f_t(x_t))$, at most the range of the losses a round: more is a sign that no x is feasible. Of many
    campaigns along leading axes.
    """
    if full < _WATCHED:
        return np.zeros((*means.shape[:-3], means.shape[-1]), bool)
    multiplier, values = np.moveaxis(means[..., full - _WATCHED : full, :, :], (-2, -3), (0, 1))
    price = multiplier[_WATCHED // 2 :].mean(0) * values[_WATCHED // 2 :].mean(0)
    low, high = np.moveaxis(np.asarray(losses), -1, 0)[..., None]
    return (np.diff(multiplier, axis=0) > 0).all(0) & (values > 0).all(0) & (price > _TOO_DEAR * (high - low))
