r"""What a search for $\min_{x\in X} F(x)$ subject to $G(x)\le0$ knows so far: a best point and a proven lower bound."""

import contextlib
import functools
from typing import NamedTuple

import numpy as np

from .clock import Stopped
from .rounding import rounding, roundings

_FEW = 10  # constraints, for each of which an LMO is asked
_MOST_ROUNDS = 50_000  # of a search: each is a step of a method, or one of the LMOs and projections within it
_NARROWER = 0.99  # of what was missing before: less is progress


class Evaluation(NamedTuple):
    point: np.ndarray
    loss: float
    constraint: np.ndarray
    slope: np.ndarray  # the gradient of F + <weights, G>


class Proof(NamedTuple):
    """F + <multiplier, G> >= lower on X."""

    lower: float
    multiplier: np.ndarray
    points: tuple[np.ndarray, ...]  # that it was computed from


class Infeasible(Exception):
    """Carries (multiplier, bound): <multiplier, G> >= bound > 0 on X."""


class _Standstill(Exception):
    """A method brings the certificate no nearer to closed; raised within `Search.patience` only."""


class Search:
    """`best` is the best point that meets the constraints so far; `multiplier` proves that no value is below `lower`.

    Every method reports its points to `report`. `objective` answers `measure(x, weights) -> Evaluation` and
    `jacobian(x) -> (M, d)`.
    """

    def __init__(self, objective, oracle, tol, clock, start=None, guess=None):
        self.objective, self.oracle, self.tol, self.clock = objective, oracle, tol, clock
        none = np.zeros(objective.count)
        self.guess = none if guess is None or guess.shape != none.shape else guess
        self.done, self.rounds = False, 0
        start = oracle.centre if start is None else start
        self.first = self.best = self.latest = objective.measure(start, none)
        self.proof = Proof(-np.inf, none, ())
        scale = np.maximum(np.abs(self.first.constraint) + self._rises(start), self._rounded(start) / tol)
        self.constraint_scale = np.where(scale > 0, scale, 1.0)  # of each, about its largest value on X
        self.best_violation = np.inf
        self.inner = self.first  # the point that is deepest inside the constraints
        self._allow(_MOST_ROUNDS)
        self._prove(self.first, none)

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

    @functools.cached_property
    def structure(self):
        from .structure import structure_of  # which most small problems do not need

        return structure_of(self)

    @property
    def lower(self) -> float:
        return self.proof.lower

    @property
    def multiplier(self) -> np.ndarray:
        return self.proof.multiplier

    @property
    def precision(self):
        return self.tol * max(self.objective.unit, abs(self.best.loss))

    @property
    def saved(self) -> float:
        """What the best point exceeds the constraints by, at the multipliers of the proof: it saves no less."""
        return _saved(self.best, self.proof)

    @property
    def gap(self):
        """Between the lower bound and the best value with what it saves, which is never below that bound."""
        return self.best.loss + self.saved - self.lower

    def is_contradicted(self, rounded: float) -> bool:
        """Whether the best point has F + <multiplier, G> below the lower bound of it, where both are rounded."""
        paid = self.best.loss + self.multiplier @ self.best.constraint
        return bool(paid + self.precision + 2 * rounded < self.lower)

    def report(self, at: Evaluation, multiplier):
        """A new point, with its slope for these multipliers. Returns the best vertex for this slope."""
        vertex = self._prove(at, multiplier)
        self.check()
        return vertex

    def _prove(self, at, multiplier):
        """Convexity: F + <lambda, G> >= its value at x - max_v <slope, x - v>, everywhere in X."""
        if not (np.isfinite(at.loss) and np.isfinite(at.slope).all()):
            return at.point
        self.latest = at
        proof, vertex = self.bound(at, multiplier)
        self.compare(at, proof)
        return vertex

    def bound(self, at: Evaluation, multiplier) -> tuple[Proof, np.ndarray]:
        """A lower bound by this linearisation, of F or of a convex function that is nowhere above F; and its vertex."""
        vertex = self.oracle.lmo(at.slope)
        bound = at.loss + multiplier @ at.constraint - at.slope @ (at.point - vertex)
        return Proof(bound, multiplier, (at.point, vertex)), vertex

    def settle(self):
        """Multipliers of constraints that the best point meets with room to spare become 0, if that proves as much."""
        spare = self.best.constraint < -self.tol * self.constraint_scale
        if not self.done or not (spare & (self.multiplier > 0)).any():
            return
        clean = np.where(spare, 0.0, self.multiplier)
        proof, _ = self.bound(self.objective.measure(self.best.point, clean), clean)
        if self.best.loss + _saved(self.best, proof) - proof.lower <= self.precision:
            self.proof = proof

    def compare(self, at: Evaluation, proof: Proof | None = None):
        """Whether this point is the best so far, and what proves most about the best point.

        A proof by large multipliers says little about a point that exceeds the constraints a little, which may be
        below its bound. So points and proofs are compared in pairs.
        """
        proof = self.proof if proof is None else proof
        violation = np.max(at.constraint / self.constraint_scale, initial=0.0)
        if max(violation, self.best_violation) <= self.tol:
            pairs = [(one, by) for one in (self.best, at) for by in (self.proof, proof)]
            best, self.proof = min(pairs, key=lambda pair: _open(*pair))
            if best is at:
                self.best, self.best_violation = at, violation
        else:
            if violation < self.best_violation:
                self.best, self.best_violation = at, violation
            if self.best_violation <= self.tol:
                self.proof = min(self.proof, proof, key=lambda by: _open(self.best, by))
            else:
                self.proof = max(self.proof, proof, key=lambda by: by.lower)
        met = self.best_violation <= self.tol and self.saved <= self.precision
        self.done = met and self.gap <= self.precision

    def mix(self, at: Evaluation, multiplier):
        """If a point breaks constraints, compare the first one on the line to the deepest inside that does not."""
        worst, deepest = (np.max(one.constraint / self.constraint_scale, initial=-1.0) for one in (at, self.inner))
        if worst < deepest:
            self.inner = at
        elif worst > 0 > deepest:
            broken = at.constraint > 0
            share = np.max(at.constraint[broken] / (at.constraint - self.inner.constraint)[broken])
            point = at.point + share * (self.inner.point - at.point)
            self.compare(self.objective.measure(point, multiplier))

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

    @contextlib.contextmanager
    def patience(self, rounds: int):
        """Within, a method ends after so many rounds that bring the certificate no nearer to closed."""
        self._allow(rounds)
        with contextlib.suppress(_Standstill):
            yield
        self._allow(_MOST_ROUNDS)

    def _allow(self, idle):
        self._idle, self._most_idle, self._missing = 0, idle, (np.inf, np.inf)

    def check(self):
        """A round is over. Raise `Stopped` if it was the last one that time or the bound on rounds allow."""
        self.clock.check(self._status)
        self.rounds += 1
        if self.rounds >= _MOST_ROUNDS:
            raise Stopped(f"it has had {self.rounds:,} rounds")
        excess = max(self.best_violation - self.tol, 0.0)
        missing = (excess, np.inf) if excess > 0 else (0.0, _open(self.best, self.proof))
        which = 0 if excess > 0 else 1  # while constraints are broken, only that counts
        if missing[which] < _NARROWER * self._missing[which]:
            self._idle, self._missing = 0, missing
        else:
            self._idle += 1
        if self._idle >= self._most_idle:
            raise _Standstill

    def _status(self):
        total = 1 / self.objective.unit
        broken = f", constraints exceeded by {self.best_violation:.1e}" if self.best_violation > self.tol else ""
        return f"value {total * self.best.loss:.6g}, gap {total * self.gap:.2g}{broken}"


def _saved(at: Evaluation, proof: Proof) -> float:
    """What a point exceeds the constraints by, at the multipliers of a proof."""
    return float(proof.multiplier @ np.maximum(at.constraint, 0.0))


def _open(at: Evaluation, proof: Proof) -> float:
    """What is open of the certificate, where violation is charged as in the score: at twice the multiplier."""
    return at.loss + 2 * _saved(at, proof) - proof.lower
