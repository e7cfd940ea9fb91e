"""`primal.DistanceBound` in plain NumPy, written from its docstring."""

import numpy as np
from slow_start_tools import divided


class BoxDistances:
    """How far to go from `start` in a box from `lower` to `upper`, coordinate by coordinate."""

    def __init__(self, start, lower, upper, first=2e-4, most=0.25, memory=None):
        self.start, self.lower, self.upper, self.most = start, lower, upper, most
        self.keep = 1.0 if memory is None else 1 - 1 / memory
        self.bound, self.far = first, first * (upper - lower)
        self.gain, self.sums, self.total = 0.0, np.zeros_like(start), np.zeros_like(start)
        self.ended = np.zeros(start.shape, bool)

    def advance(self, gradient, point):
        """eta times the gradient."""
        keep, d, widths, way = self.keep, self.bound, self.upper - self.lower, np.abs(point - self.start)
        self.gain = keep * self.gain + d**2 * np.sum(gradient * (self.start - point))
        self.sums = keep * self.sums + d**2 * gradient
        ends = np.where(self.sums > 0, self.start - self.lower, self.upper - self.start)
        most_gain = np.sum(np.abs(self.sums) * np.minimum(d * widths, ends))
        if most_gain > 0 and 4 * d * self.gain / most_gain > d:
            self.bound = min(4 * d * self.gain / most_gain, self.most)
        at_end = np.minimum(point - self.lower, self.upper - point) <= 1e-3 * widths
        self.ended |= at_end & (way > 0)
        self.far = np.max([self.far, self.bound * widths, way / 2, self.ended * widths / 2], axis=0)
        self.total = keep * self.total + (self.far * gradient) ** 2
        return divided(self.far**2, np.sqrt(2 * self.total)) * gradient
