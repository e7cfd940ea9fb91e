r"""Constraints as charges on the loss, for methods that know how to minimise over X alone: an augmented Lagrangian.

$\Phi(x) = F(x) + \frac1{2\rho}\|[\lambda+\rho G(x)]_+\|^2$ is minimised over X to some accuracy, then
$\lambda\leftarrow[\lambda+\rho G(x)]_+$. It is accurate enough once $\Phi(x)-\min\Phi$ is a part of what the step
gains, $\frac1{2\rho}\|[\lambda+\rho G(x)]_+-\lambda\|^2$ (Rockafellar, 1976, criterion B), or of the whole gap, the
rest of which only other multipliers can close; an LMO proves it.
"""

import numpy as np

from ..problem.problem import Problem
from .objective import Compiled, Functions
from .search import Evaluation, Search

_SHARE = 0.25  # of the gain or the gap, by which a minimum may be missed
_BETTER, _DEARER = 0.25, 4.0  # where a step leaves more of the violation than this, the price rises


class Charges:
    """Multipliers and the price of a violation. Constraints are in units of length: what they change over X, over D."""

    def __init__(self, search: Search, price: float):
        self.search, objective = search, search.objective
        self.unit = steepness(search)
        self.rows = None  # of affine constraints: passes over the rounds are needed for the loss only
        if objective.count:
            structure = search.structure
            self.rows = structure.jacobian if structure.affine else None
            self.loss = Compiled(loss_alone(objective))
        self.multiplier, self.price = search.guess * self.unit, price
        self.broken = np.inf

    def weights(self, constraint):
        """The gradient of the charge, in these units."""
        return np.maximum(self.multiplier + self.price * constraint / self.unit, 0.0)

    def total(self, at: Evaluation) -> float:
        """F and the charge."""
        weights = self.weights(at.constraint)
        return at.loss + float(weights @ weights) / (2 * self.price)

    def measure(self, point) -> Evaluation:
        """With the slope of F and the charge."""
        if self.rows is not None:
            first, at = self.search.first, self.loss.measure(point, np.zeros(0))
            constraint = first.constraint + self.rows @ (point - first.point)
            slope = at.slope + (self.weights(constraint) / self.unit) @ self.rows
            return Evaluation(at.point, at.loss, constraint, slope)
        guess = self.multiplier / self.unit
        at = self.search.objective.measure(point, guess)
        weights = self.weights(at.constraint) / self.unit
        return at if (weights == guess).all() else self.search.objective.measure(point, weights)

    def report(self, at: Evaluation):
        """Report a point that was measured here. Returns its vertex, and whether the multipliers have changed."""
        search, weights = self.search, self.weights(at.constraint)
        prices = weights / self.unit
        at = search.objective.measure(at.point, prices)  # the functions themselves
        vertex = search.report(at, prices)
        if not len(weights):
            return vertex, False
        search.mix(at, prices)
        if search.best_violation > search.tol:
            search.refute(at.point, at.constraint, search.objective.jacobian(at.point), prices)
        move = weights - self.multiplier
        gain = (move @ move) / (2 * self.price)
        if at.slope @ (at.point - vertex) > max(_SHARE * gain, _SHARE * search.gap, 0.1 * search.precision):
            return vertex, False
        broken = np.abs(move).max() / self.price
        self.price *= _DEARER if broken > _BETTER * self.broken else 1.0
        self.multiplier, self.broken = weights, broken
        return vertex, True


def steepness(search: Search) -> np.ndarray:
    """Of each constraint, about its change over X per length: at the start, or at a vertex if it is steeper there."""
    if not search.objective.count:
        return np.zeros(0)
    steep = np.linalg.norm(search.objective.jacobian(search.oracle.lmo(search.first.slope)), axis=1)
    return np.maximum(search.constraint_scale / search.oracle.diameter, np.where(np.isfinite(steep), steep, 0.0))


def loss_alone(objective) -> Functions:
    """F without constraints."""
    problem = objective.problem
    plain = Problem(problem.domain, problem.loss, loss_grad=problem.loss_grad)
    return Functions(plain, objective.rounds, None, objective.start, "mean")
