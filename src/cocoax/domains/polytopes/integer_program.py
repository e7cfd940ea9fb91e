"""Mixed-integer programs, solved by HiGHS on the host."""

import functools
import threading
from typing import Any

import numpy as np

from ...errors import DomainError
from .linear_program import LinearProgram, minimiser, model_of


class IntegerProgram:
    """The hull of the points of a linear program at which the variables marked in `whole` are integers."""

    def __init__(self, matrix, rows, bounds, whole):
        self.whole, self._lock = whole, threading.Lock()
        self._relaxed = LinearProgram(matrix, rows, bounds)
        lower, upper = self._relaxed.box
        bounds = np.where(whole, np.ceil(lower - 1e-6), lower), np.where(whole, np.floor(upper + 1e-6), upper)
        self._bounds = bounds
        empty = "the polytope holds no point whose integer variables are whole numbers"
        if np.any(bounds[0] > bounds[1]):
            raise DomainError(empty)
        self._model = model_of(matrix, rows, bounds, whole)
        if minimiser(self._model, np.zeros(len(whole))) is None:
            raise DomainError(empty)
        self._continuous_model: Any = None if whole.all() else model_of(matrix, rows, bounds)

    def __fingerprint__(self):
        return self.whole, self._relaxed

    @functools.cached_property
    def middle(self):
        """The average of some vertices, as a point to start from."""
        return self.minimise(np.random.default_rng(0).standard_normal((16, len(self.whole)))).mean(axis=0)

    def minimise(self, directions):
        """A minimising vertex for each direction (last axis); NaN for a direction that is not finite."""
        with self._lock:
            points = [self._solve(direction) for direction in directions.reshape(-1, len(self.whole))]
        return np.asarray(points).reshape(directions.shape)

    def diameters(self):
        """Upper bounds on the l1 and l2 diameters: the smaller of the linear program's and the box's."""
        sides = self._bounds[1] - self._bounds[0]
        return np.minimum(self._relaxed.diameters(), [sides.sum(), np.linalg.norm(sides)])

    def _solve(self, direction):
        """A minimising vertex for one direction."""
        scale = np.abs(direction).max()
        if not np.isfinite(scale):
            return np.full(len(self.whole), np.nan)
        cost = direction.astype(float) / (scale or 1)
        self._model.clearSolver()
        point = minimiser(self._model, cost)
        if point is None:
            raise DomainError(f"HiGHS found no minimum: it answered {self._model.getModelStatus().name}")
        point = np.where(self.whole, np.round(point), point)
        return point if self._continuous_model is None else self._with_continuous(point, cost)

    def _with_continuous(self, point, cost):
        """The point, with its continuous variables solved for again once its integers are exact."""
        fixed = [np.where(self.whole, point, bound) for bound in self._bounds]
        self._continuous_model.clearSolver()
        self._continuous_model.changeColsBounds(len(point), np.arange(len(point), dtype=np.int32), *fixed)
        better = minimiser(self._continuous_model, cost)
        return point if better is None else better
