"""`primal.SlowStart` in plain NumPy, written from its docstring."""

import numpy as np


def divided(above, below):
    """above / below, and 0 where below is 0."""
    return np.divide(above, below, out=np.zeros(np.shape(below)), where=np.asarray(below) != 0)


class Distances:
    """How far to go from `start`; `widths` is the diameter, or on boxes the length of each interval."""

    def __init__(self, start, widths, first=1e-3, most=0.1, memory=None):
        self.start, self.widths, self.most = start, np.asarray(widths, float), most
        self.keep = 1.0 if memory is None else 1 - 1 / memory
        self.far = self.good = first * self.widths
        self.total = np.zeros_like(self.widths)
        self.growing, self.stops, self.resumed = True, 0, 0
        self.forget_costs()

    def forget_costs(self):
        self.cost = self.squares = self.lowest = 0.0

    def length(self, x):
        return np.abs(x) if self.widths.ndim else np.linalg.norm(x)

    def advance(self, gradient, point, ahead=0.0):
        """(eta times the gradient, what to take back)."""
        moved, keep = point - self.start, self.keep
        distance, term = self.length(moved), np.sum(gradient * moved)
        self.cost, self.squares = keep * self.cost + term, keep * self.squares + term**2
        if self.growing and self.cost <= self.lowest:
            self.good, self.lowest = np.maximum(self.far, distance), self.cost
        surely = self.squares**0.5
        stop = self.growing and self.cost > 1.5 * surely and bool(np.any(self.far > self.good))
        resume = not self.growing and -self.cost > 2**self.stops * surely
        back = np.zeros_like(moved)
        if stop:
            back = np.maximum(1 - divided(self.good, distance), 0) * (distance > 0) * moved
            self.total = self.total * divided(self.good, self.far) ** 2
            self.far = self.good
        if stop or resume:
            self.forget_costs()
        self.stops, self.resumed = self.stops + stop, self.resumed + resume
        self.growing = not stop and (self.growing or resume)

        length, self.total = self.length(gradient), keep * self.total
        if not stop:
            leads_down = term < -0.25 * length * distance
            times = np.where(leads_down, np.clip(0.25 * divided(ahead, self.far), 2, 8), 2)
            times = np.where(self.total > 0, times, 1)
            longer = np.maximum(self.far, np.minimum(times * self.far, self.most * self.widths))
            grows = self.growing & (length > 0) & (term <= 0)
            self.far = np.maximum(np.where(grows, longer, self.far), distance)
        self.good = self.far if resume else self.good
        self.total = self.total + (self.far * length) ** 2
        return divided(self.far**2, np.sqrt(2 * self.total)) * gradient, back
