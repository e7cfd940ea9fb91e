"""Newton's method with interior points in dense linear algebra, for simple sets of some thousand entries."""

import numpy as np

from .curvature import Curvature, curvature_of
from .factorisation import Program
from .interior import solve_interior
from .kinks import Kinks, judge_kinked, without_kinks
from .newton import Newton
from .quadratic import Unsolved
from .search import Search
from .variables import Variables

_SHARE = 0.1  # of the accuracy that is asked for


class Dense(Newton):
    """`solve` returns when it is done or makes no more progress. The loss is smooth, or smooth but for `kinks`."""

    most_flops = 1e10

    def __init__(self, search: Search, variables: Variables, *, kinks: Kinks | None = None, quadratic: bool = False):
        size = variables.size
        self.search, self.objective, self.variables, self.quadratic = search, search.objective, variables, quadratic
        self.smooth = search.objective if kinks is None else without_kinks(search)
        self.kinks = kinks
        self.rows = (np.zeros((0, size)), np.zeros(0), np.zeros(0)) if kinks is None else kinks.rows()
        self.share = _SHARE
        self.patience = 1 if quadratic or kinks is not None else 8  # where the model is exact, another is no better
        self.known: Curvature | None = None  # the Hessian, if it is the same everywhere

    def _model(self, x, multiplier):
        """As in `Newton`; the last are the multipliers of the kinks."""
        search = self.search
        hessian = self.known
        if hessian is None:
            hessian = curvature_of(search, self.smooth, x.point, multiplier, self.most_flops)
        if hessian is None:
            return None
        self.known = hessian if self.quadratic else None
        image, factor = hessian.times(x.point), hessian.factor
        if hessian.full is not None or 2 * (len(factor) + len(self.rows[1])) >= len(x.point):
            matrix, factor = hessian.dense(), factor[:0]
        else:
            matrix = hessian.diagonal
        jacobian = self.objective.jacobian(x.point)
        norm = np.linalg.norm(jacobian, axis=1)
        norm = np.where(norm > 0, norm, 1.0)
        limits = (jacobian @ x.point - x.constraint) / norm
        program = Program(matrix, factor, x.slope - image, *self.rows, jacobian / norm[:, None], limits)
        constant = x.loss - x.slope @ x.point + 0.5 * (x.point @ image)
        excess = self.share * search.tol * np.min(search.constraint_scale / norm, initial=np.inf)

        def gap(value):
            return self.share * search.tol * max(self.objective.unit, abs(value + constant))

        try:
            answer = solve_interior(program, self.variables, gap, excess, search.check)
        except Unsolved:
            return None
        self.share *= 0.1
        found = answer.rows / norm
        if np.max(program.J @ answer.point - limits, initial=0.0) > excess:
            search.refute(x.point, x.constraint, jacobian, found)
        return search.oracle.nearest(answer.point), found, answer.kinks

    def _advance(self, x, target, multiplier, weights):
        if self.kinks is None:
            return super()._advance(x, target, multiplier, weights)
        return judge_kinked(self.kinks, self.smooth, self.rows, target, multiplier, weights)
