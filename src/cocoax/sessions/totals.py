"""What a session's rounds came to so far, in sums that do not drift, and whether a budget looks infeasible."""

import math

import numpy as np

_BLOCKS = 16  # the newest, of which each holds means over equally many rounds
_WATCHED = 8  # of the blocks: an alarm needs all of them to say so
_SHORTEST, _LONGEST = 32, 4096  # rounds in a block
_DEAR = 3  # times the range of the losses: feasible pacing problems came to 2.4 at most (DPP, 12 games)


class Ledger:
    """All that it knows is in `arrays`, which a snapshot keeps. In plain numbers, for speed; none is changed in place,
    so that a copy stays as it was."""

    def __init__(self, constraints: int):
        self._constraints = constraints
        self.rounds = 0
        self._totals = [0.0] * (1 + 2 * constraints)  # of loss, g and [g]_+
        self._lost = [0.0] * (1 + 2 * constraints)  # what rounding lost of them
        self._losses = math.inf, -math.inf  # the smallest and the largest
        self._multiplier = [0.0] * constraints
        self._means = np.zeros((_BLOCKS, 2, constraints))  # of multiplier and g, oldest first
        self._sums = [0.0] * (2 * constraints)  # in the block that is not full yet
        self._blocks = 0, 0, _SHORTEST  # full ones, rounds in the one that is not, rounds in a full one

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
        self._totals, self._lost = arrays["totals"].tolist()
        self._losses, self._blocks = tuple(arrays["losses"].tolist()), tuple(arrays["shape"].tolist())
        self._multiplier, self._sums = arrays["multiplier"].tolist(), arrays["sums"].ravel().tolist()

    def add(self, outcome: np.ndarray):
        """A round: (loss, g, multiplier, ...)."""
        loss, *rest = outcome[: 1 + 2 * self._constraints].tolist()
        values, multiplier = rest[: self._constraints], rest[self._constraints :]
        self.rounds += 1
        found = [x - lost for x, lost in zip([loss, *values, *(max(g, 0.0) for g in values)], self._lost)]
        totals = [total + x for total, x in zip(self._totals, found)]
        self._lost = [(new - old) - x for new, old, x in zip(totals, self._totals, found)]
        self._totals = totals
        self._losses = min(self._losses[0], loss), max(self._losses[1], loss)
        self._multiplier = multiplier
        self._watch([*multiplier, *values])

    def _watch(self, pair):
        self._sums = [total + x for total, x in zip(self._sums, pair)]
        full, inside, length = self._blocks
        if inside + 1 < length:
            self._blocks = full, inside + 1, length
            return
        means = self._means.copy()
        if full == _BLOCKS and length < _LONGEST:
            means[: _BLOCKS // 2] = means.reshape(_BLOCKS // 2, 2, *means.shape[1:]).mean(1)
            self._means, self._blocks = means, (_BLOCKS // 2, inside + 1, 2 * length)
            return  # the block goes on, to twice the length
        if full == _BLOCKS:
            means, full = np.roll(means, -1, axis=0), _BLOCKS - 1
        means[full] = np.array(self._sums).reshape(2, -1) / length
        self._means, self._sums, self._blocks = means, [0.0] * len(pair), (full + 1, 0, length)

    def growing(self) -> np.ndarray:
        r"""For each constraint, whether it is exceeded at too high a price, while its multiplier rises block by block.

        Where x is feasible, no regret against $f_t + \lambda_t g_t$ makes $\sum\lambda_t g_t(x_t)$ at most
        $\sum (f_t(x) - f_t(x_t))$, which is at most the range of the losses a round: more speaks against any such x.
        """
        full = self._blocks[0]
        if full < _WATCHED:
            return np.zeros(self._constraints, bool)
        multiplier, values = np.moveaxis(self._means[full - _WATCHED : full], 1, 0)
        price = multiplier[_WATCHED // 2 :].mean(0) * values[_WATCHED // 2 :].mean(0)
        low, high = self._losses
        return (np.diff(multiplier, axis=0) > 0).all(0) & (values > 0).all(0) & (price > _DEAR * (high - low))

    def summary(self, names) -> dict:
        loss, *rest = self._totals
        violation, hard = rest[: len(names)], rest[len(names) :]
        return {
            "rounds": self.rounds,
            "loss": loss,
            "mean_loss": loss / self.rounds if self.rounds else None,
            "violation": dict(zip(names, violation)),
            "hard_violation": dict(zip(names, hard)),
            "multiplier": dict(zip(names, self._multiplier)),
        }
