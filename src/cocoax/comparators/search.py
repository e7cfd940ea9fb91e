r"""What a search for $\min_{x\in X} F(x)$ subject to $G(x)\le0$ knows so far: a best point and a proven lower bound."""

from typing import NamedTuple

import numpy as np

from .rounding import rounding, roundings

_FEW = 10  # constraints, for each of which an LMO is asked


class Evaluation(NamedTuple):
    point: np.ndarray
    loss: float
    constraint: np.ndarray
    slope: np.ndarray  # the gradient of F + <weights, G>


class Infeasible(Exception):
    """Carries (multiplier, bound): <multiplier, G> >= bound > 0 on X."""


class Search:
    """`best` is the best point that meets the constraints so far; `multiplier` proves that no value is below `lower`.

    Every method reports its points to `judge`. `objective` answers `measure(x, weights) -> Evaluation` and
    `jacobian(x) -> (M, d)`.
    """

    def __init__(self, objective, oracle, tol, clock, start=None, guess=None):
        self.objective, self.oracle, self.tol, self.clock = objective, oracle, tol, clock
        self.lower, self.multiplier = -np.inf, np.zeros(objective.count)
        self.proof: tuple[np.ndarray, ...] = ()  # the points that `lower` was computed from
        self.guess = self.multiplier if guess is None or guess.shape != self.multiplier.shape else guess
        self.done = False
        start = oracle.centre if start is None else start
        self.first = self.best = self.latest = objective.measure(start, self.multiplier)
        scale = np.maximum(np.abs(self.first.constraint) + self._rises(start), self._rounded(start) / tol)
        self.constraint_scale = np.where(scale > 0, scale, 1.0)  # of each, about its largest value on X
        self.best_violation = np.inf
        self.inner = self.first  # the point that is deepest inside the constraints
        self._prove(self.first, self.multiplier)

    def _rises(self, start):
        """By how much the constraints rise in X, as their slopes at the start have it; of many, upper bounds."""
        if not self.objective.count:
            return np.zeros(0)
        jacobian = self.objective.jacobian(start)
        if len(jacobian) > _FEW:
            return np.linalg.norm(jacobian, axis=1) * self.oracle.diameter
        return np.array([max(float(row @ (self.oracle.lmo(-row) - start)), 0.0) for row in jacobian])

    def _rounded(self, start):
        """What may be rounding of the constraints at the start: so much breaks none of them."""
        sizes = np.abs(self.first.constraint) + np.abs(self.objective.whole_jacobian(start)) @ np.abs(start)
        return roundings(self.objective, start) * sizes

    @property
    def precision(self):
        return self.tol * max(self.objective.unit, abs(self.best.loss))

    @property
    def gap(self):
        return self.best.loss - self.lower

    def is_contradicted(self, rounded: float) -> bool:
        """Whether the best point has F + <multiplier, G> below the lower bound of it, where both are rounded."""
        paid = self.best.loss + self.multiplier @ self.best.constraint
        return bool(paid + self.precision + 2 * rounded < self.lower)

    def judge(self, at: Evaluation, multiplier):
        """A new point, with its slope for these multipliers. Returns the best vertex for this slope."""
        vertex = self._prove(at, multiplier)
        self.check()
        return vertex

    def _prove(self, at, multiplier):
        """Convexity: F + <lambda, G> >= its value at x - max_v <slope, x - v>, everywhere in X."""
        if not (np.isfinite(at.loss) and np.isfinite(at.slope).all()):
            return at.point
        self.latest = at
        _, vertex = self.bound(at, multiplier)
        self.consider(at)
        return vertex

    def bound(self, at: Evaluation, multiplier):
        """A lower bound by this linearisation, of F or of a convex function that is nowhere above F; and its vertex."""
        vertex = self.oracle.lmo(at.slope)
        bound = at.loss + multiplier @ at.constraint - at.slope @ (at.point - vertex)
        self.raise_lower(bound, multiplier, at.point, vertex)
        return bound, vertex

    def settle(self):
        """Multipliers of constraints that the best point meets with room to spare become 0, if that proves as much."""
        spare = self.best.constraint < -self.tol * self.constraint_scale
        if not self.done or not (spare & (self.multiplier > 0)).any():
            return
        clean = np.where(spare, 0.0, self.multiplier)
        at = self.objective.measure(self.best.point, clean)
        vertex = self.oracle.lmo(at.slope)
        bound = at.loss + clean @ at.constraint - at.slope @ (at.point - vertex)
        if self.best.loss - bound <= self.precision:
            self.lower, self.multiplier, self.proof = bound, clean, (at.point, vertex)

    def consider(self, at: Evaluation):
        """Whether this point is the best so far."""
        violation = np.max(at.constraint / self.constraint_scale, initial=0.0)
        if max(violation, self.best_violation) <= self.tol:
            better = self._score(at) < self._score(self.best)
        else:
            better = violation < self.best_violation
        if better:
            self.best, self.best_violation = at, violation
        met = self.best_violation <= self.tol and self._charge(self.best) <= self.precision
        self.done = met and self.gap <= self.precision

    def mix(self, at: Evaluation, multiplier):
        """Consider, if a point breaks constraints, the first one on the way to the deepest inside that does not."""
        worst, deepest = (np.max(one.constraint / self.constraint_scale, initial=-1.0) for one in (at, self.inner))
        if worst < deepest:
            self.inner = at
        elif worst > 0 > deepest:
            broken = at.constraint > 0
            share = np.max(at.constraint[broken] / (at.constraint - self.inner.constraint)[broken])
            point = at.point + share * (self.inner.point - at.point)
            self.consider(self.objective.measure(point, multiplier))

    def refute(self, point, constraint, jacobian, multiplier):
        """Raise `Infeasible` if no x in X has <multiplier, constraint + jacobian (x - point)> <= 0, but for rounding.

        Convex constraints lie above such linearisations.
        """
        total = multiplier.sum()
        if total > 0 and np.isfinite(total):
            multiplier = multiplier / total
            vertex = self.oracle.lmo(multiplier @ jacobian)
            bound = multiplier @ (constraint + jacobian @ (vertex - point))
            enough = 1e-9 * (multiplier @ self.constraint_scale)
            if bound > enough and (bound := bound - self.rounding(point, constraint, multiplier)) > enough:
                raise Infeasible(multiplier, bound)

    def rounding(self, point, constraint, multiplier) -> float:
        """Of a bound on <multiplier, G> by its linearisation, and as much again for those who check it elsewhere."""
        slopes = multiplier @ np.abs(self.objective.whole_jacobian(point))
        return 2 * rounding(self.objective, self.oracle, (point,), multiplier @ np.abs(constraint), slopes)

    def check(self):
        """Raise `OutOfTime` if it is."""
        self.clock.check(self._told)

    def raise_lower(self, bound, multiplier, *points):
        if bound > self.lower:
            self.lower, self.multiplier, self.proof = bound, multiplier, points

    def _charge(self, at: Evaluation):
        """What breaking the constraints saves, at the current multiplier."""
        return max(self.multiplier @ at.constraint, 0.0)

    def _score(self, at: Evaluation):
        return at.loss + 2 * self._charge(at)

    def _told(self):
        total = 1 / self.objective.unit
        broken = f", constraints exceeded by {self.best_violation:.1e}" if self.best_violation > self.tol else ""
        return f"value {total * self.best.loss:.6g}, gap {total * self.gap:.2g}{broken}"


class Patience:
    """Counts a method's steps that bring the certificate no nearer to closed."""

    def __init__(self, search: Search, most: int, share: float = 0.99):
        self.search, self.most, self.share = search, most, share
        self.gap, self.violation, self.steps = np.inf, np.inf, 0

    @property
    def is_over(self) -> bool:
        return self.steps >= self.most

    def ask(self):
        """After a step: a narrower gap, or constraints that are broken by less while they are broken."""
        gap, violation = self.search.gap, max(self.search.best_violation - self.search.tol, 0.0)
        is_better = violation < self.share * self.violation if violation > 0 else gap < self.share * self.gap
        if is_better:
            self.gap, self.violation, self.steps = gap, violation, 0
        else:
            self.steps += 1
