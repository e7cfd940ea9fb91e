"""`dual.RobustPI` in plain NumPy, number by number, written from its docstring."""

import math

import numpy as np
from tracking_tools import over


class RobustController:
    """The weights u of m constraints, from their values and units."""

    def __init__(self, m, gain=0.2, proportional=24.0, smoothing=0.7, memory=None):
        keep = 1.0 if memory is None else 1 - 1 / memory
        self.each = [_One(gain, proportional, smoothing, keep) for _ in range(m)]

    def weigh(self, values, units):
        worth = np.array([one.worth(float(unit)) for one, unit in zip(self.each, units)])
        tolerated = np.maximum(1 - (2 * worth / (1 + worth.sum())) ** 2, 0)
        given = zip(self.each, values, units, tolerated)
        return np.array([one.weigh(float(g), float(unit), share) for one, g, unit, share in given])

    def urgency(self):
        return np.array([one.urgency() for one in self.each])

    def overspent(self):
        return np.array([one.overspent() for one in self.each])


class _One:
    def __init__(self, gain, proportional, smoothing, keep):
        self.gain, self.proportional, self.smoothing, self.keep = gain, proportional, smoothing, keep
        self.owed = self.integral = self.mean = 0.0
        self.rounds = self.seen = self.size = self.noise = self.largest = 0.0

    def worth(self, unit):
        self.largest = max(self.keep * self.largest, unit)
        return over(self.integral, self.largest)

    def weigh(self, g, unit, tolerated):
        at_work, keep = self.integral > 0 or g > 0, self.keep
        if at_work and g != 0:
            longest = 4 * self.size * self.seen**0.25 if self.seen > 0 else abs(g)
            self.size = robust_mean(self.size, self.seen, min(abs(g), longest))
        self.seen = keep * self.seen + (at_work and g != 0)
        bound = 1.2533 * self.size * max(self.seen, 1) ** 0.5
        clipped = min(max(g, -bound), bound)
        deviation = abs(clipped - self.mean)
        if at_work and deviation > 0:
            self.noise = robust_mean(self.noise, self.rounds, deviation)
        self.rounds = keep * self.rounds + at_work

        self.owed = keep * self.owed + g
        debt = min(max(self.owed - tolerated * 1.2533 * self.noise * self.seen**0.5, 0) / max(self.rounds, 1), bound)
        repaying = clipped + debt * over(unit, max(unit, self.integral))
        mu = over(self.gain * (unit + min(self.integral, 10 * unit)), bound)
        if g != 0:
            self.mean = self.smoothing * self.mean + (1 - self.smoothing) * repaying
        self.integral = max(self.integral + mu * repaying, 0)
        return max(self.integral + self.proportional * mu * self.mean, 0)

    def urgency(self):
        of_mean = math.sqrt((1 - self.smoothing) / (1 + self.smoothing))
        return min(max(over(self.mean, 1.2533 * self.noise * of_mean) - 3, 0), 1)

    def overspent(self):
        return over(self.owed, 1.2533 * self.noise * max(self.seen, 1) ** 0.5) if self.mean > 0 else 0.0


def robust_mean(old, count, size):
    """With one more size, after `count` others: the k-th weighs as k; downwards geometric, a hundredth at least."""
    share = 2 / (count + 2)
    if count == 0:
        return size
    return old + share * (size - old) if size > old else old * max(size / old, 0.01) ** share
