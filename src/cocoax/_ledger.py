"""What a session's rounds came to so far, in sums that do not drift, and whether a budget looks infeasible."""

import numpy as np

_BLOCKS = 16  # the newest, of which each holds means over equally many rounds
_WATCHED = 8  # of the blocks: an alarm needs all of them to say so
_SHORTEST, _LONGEST = 32, 4096  # rounds in a block
_DEAR = 3  # times the range of the losses: feasible pacing problems came to 2.4 at most (DPP, 12 games)


class Ledger:
    """All that it knows is in `arrays`, which a snapshot keeps."""

    def __init__(self, constraints: int):
        self.arrays = {
            "rounds": np.zeros((), np.int64),
            "totals": np.zeros((2, 1 + 2 * constraints)),  # of loss, g and [g]_+; and what rounding lost of them
            "losses": np.array([np.inf, -np.inf]),  # the smallest and the largest
            "multiplier": np.zeros(constraints),
            "means": np.zeros((_BLOCKS, 2, constraints)),  # of multiplier and g, oldest first
            "sums": np.zeros((2, constraints)),  # in the block that is not full yet
            "shape": np.array([0, 0, _SHORTEST]),  # full blocks, rounds in the one that is not, rounds in a full one
        }

    @property
    def rounds(self) -> int:
        return int(self.arrays["rounds"])

    def add(self, outcome: np.ndarray):
        """A round: (loss, g, multiplier, ...)."""
        constraints = len(self.arrays["multiplier"])
        values, multiplier = outcome[1 : 1 + constraints], outcome[1 + constraints : 1 + 2 * constraints]
        self.arrays["rounds"] = self.arrays["rounds"] + 1
        total, lost = self.arrays["totals"]
        x = np.concatenate([outcome[:1], values, np.maximum(values, 0)]) - lost
        new = total + x
        self.arrays["totals"] = np.stack([new, (new - total) - x])
        low, high = self.arrays["losses"]
        self.arrays["losses"] = np.array([min(low, outcome[0]), max(high, outcome[0])])
        self.arrays["multiplier"] = multiplier.copy()
        if constraints:
            self._watch(np.stack([multiplier, values]))

    def _watch(self, pair):
        self.arrays["sums"] = self.arrays["sums"] + pair
        full, inside, length = self.arrays["shape"]
        if inside + 1 < length:
            self.arrays["shape"] = np.array([full, inside + 1, length])
            return
        means = self.arrays["means"].copy()
        if full == _BLOCKS and length < _LONGEST:
            means[: _BLOCKS // 2] = means.reshape(_BLOCKS // 2, 2, *means.shape[1:]).mean(1)
            self.arrays["means"] = means
            self.arrays["shape"] = np.array([_BLOCKS // 2, inside + 1, 2 * length])
            return  # the block goes on, to twice the length
        if full == _BLOCKS:
            means, full = np.roll(means, -1, axis=0), _BLOCKS - 1
        means[full] = self.arrays["sums"] / length
        self.arrays |= {"means": means, "sums": np.zeros_like(pair), "shape": np.array([full + 1, 0, length])}

    def growing(self) -> np.ndarray:
        r"""For each constraint, whether it is exceeded at too high a price, while its multiplier rises block by block.

        Where x is feasible, no regret against $f_t + \lambda_t g_t$ makes $\sum\lambda_t g_t(x_t)$ at most
        $\sum (f_t(x) - f_t(x_t))$, which is at most the range of the losses a round: more speaks against any such x.
        """
        full = self.arrays["shape"][0]
        if full < _WATCHED:
            return np.zeros(len(self.arrays["multiplier"]), bool)
        multiplier, values = np.moveaxis(self.arrays["means"][full - _WATCHED : full], 1, 0)
        price = multiplier[_WATCHED // 2 :].mean(0) * values[_WATCHED // 2 :].mean(0)
        low, high = self.arrays["losses"]
        return (np.diff(multiplier, axis=0) > 0).all(0) & (values > 0).all(0) & (price > _DEAR * (high - low))

    def summary(self, names) -> dict:
        loss, *rest = self.arrays["totals"][0].tolist()
        violation, hard = rest[: len(names)], rest[len(names) :]
        return {
            "rounds": self.rounds,
            "loss": loss,
            "mean_loss": loss / self.rounds if self.rounds else None,
            "violation": dict(zip(names, violation)),
            "hard_violation": dict(zip(names, hard)),
            "multiplier": dict(zip(names, self.arrays["multiplier"].tolist())),
        }
