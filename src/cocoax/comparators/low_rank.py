r"""Accelerated projected gradients over large nuclear-norm balls, with decompositions of low rank.

A projection onto $\{\sum_i\sigma_i\le r\}$ keeps only the singular values above a threshold. They are found by subspace
iteration from those of the step before (Halko, Martinsson, Tropp, 2011): a few products with as many columns, not a
whole decomposition. Points are in the ball whatever its error, and lower bounds come from the domain's own LMO.
"""

import itertools
import time
from typing import TypeGuard

import numpy as np

from ..domains.matrices.nuclear_norm import NuclearNormBall
from .charges import Charges
from .oracle import Oracle, blocks
from .search import Search

_LARGE = 256  # rows and columns: a whole decomposition of less is quick
_BUFFER = 10  # columns more than were needed last
_STUCK = 400  # projections and reports that do not narrow the gap
_SHARE = 0.25  # of the time, for reports


class LowRank:
    """`solve` returns when it is done or makes no more progress."""

    def __init__(self, search: Search):
        self.search = search
        factors = blocks(search.oracle.domain)
        ends = np.cumsum([0, *(factor.dimension for factor in factors)])
        self.parts = [slice(*pair) for pair in itertools.pairwise(ends)]
        self.projections = [
            _Ball(factor) if _is_large(factor) else Oracle(factor, factor.start()).nearest for factor in factors
        ]

    @staticmethod
    def fits(search: Search) -> bool:
        """Whether X is a large ball, or a product with one, whose other factors project."""
        factors = blocks(search.oracle.domain)
        others = [factor for factor in factors if not _is_large(factor)]
        return len(others) < len(factors) and all(Oracle(factor, factor.start()).projects for factor in others)

    def solve(self):
        with self.search.patience(_STUCK):
            self._solve()

    def _solve(self):
        search = self.search
        curvature = self._first_curvature(search.best)
        charges = Charges(search, curvature)
        x = y = charges.measure(search.best.point)
        momentum = 1.0
        began, reporting = time.monotonic(), 0.0
        while not search.done:
            before = charges.total(y)
            while True:
                new = charges.measure(self._project(y.point - y.slope / curvature))
                move = new.point - y.point
                rise, square = charges.total(new) - before - y.slope @ move, move @ move
                search.check()
                if rise <= 0.5 * curvature * square + 1e-13 * abs(before) or curvature > 1e30:
                    break
                curvature *= 2.0
            following = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
            beta = (momentum - 1) / following
            if (y.point - new.point) @ (new.point - x.point) > 0:
                following, beta = 1.0, 0.0
            now = time.monotonic()
            if reporting <= _SHARE * (now - began):
                _, is_changed = charges.report(new)
                reporting += time.monotonic() - now
                following, beta = (1.0, 0.0) if is_changed else (following, beta)
            curvature *= 0.5 if rise < 0.1 * curvature * square else 0.97
            momentum, y, x = following, charges.measure(new.point + beta * (new.point - x.point)), new

    def _first_curvature(self, x):
        """Along the slope: elsewhere the loss may have less curvature, and the first step would be far too long."""
        length, diameter = np.linalg.norm(x.slope), self.search.oracle.diameter
        move = -0.05 * diameter / max(length, 1e-300) * x.slope
        near = self.search.objective.measure(x.point + move, np.zeros(self.search.objective.count))
        bend = np.linalg.norm(near.slope - x.slope) / max(np.linalg.norm(move), 1e-300)
        return float(max(bend if np.isfinite(bend) else 0.0, 2e-3 * length / diameter)) or 1.0

    def _project(self, point):
        return np.concatenate([project(point[part]) for project, part in zip(self.projections, self.parts)])


class _Ball:
    """Projects onto a ball; it keeps the singular vectors of the last answer, and a few more."""

    def __init__(self, ball: NuclearNormBall):
        self.radius, self.shape = float(ball.radius), ball.shape
        self.right = np.random.default_rng(0).standard_normal((self.shape[1], _BUFFER))

    def __call__(self, point):
        matrix, most = point.reshape(self.shape), min(self.shape)
        if not point.any():
            return point
        while True:
            columns = self.right.shape[1]
            left = _orthonormal(matrix @ self.right)
            inner = left.T @ matrix
            squares, turn = np.linalg.eigh(inner @ inner.T)
            values, turn = np.sqrt(np.maximum(squares[::-1], 0.0)), turn[:, ::-1]
            rest = turn.T @ inner
            kept = _onto_ball(values, self.radius)
            rank = int(np.sum(kept > 1e-9 * self.radius))
            self.right = rest[: rank + _BUFFER].T / np.maximum(values[: rank + _BUFFER], 1e-9 * values[0])
            missing = min(rank + _BUFFER, most) - self.right.shape[1]
            if missing <= 0 or columns >= most:
                break
            fresh = np.random.default_rng(columns).standard_normal((self.shape[1], missing + columns // 2))
            self.right = np.concatenate([self.right, fresh / self.shape[1] ** 0.5], axis=1)[:, :most]
        shares = kept[:rank] / np.maximum(values[:rank], 1e-300)
        return ((left @ (turn[:, :rank] * shares)) @ rest[:rank]).reshape(-1)


def _is_large(domain) -> TypeGuard[NuclearNormBall]:
    return type(domain) is NuclearNormBall and min(domain.shape) > _LARGE


def _orthonormal(columns):
    """An orthonormal basis of the columns' span, by products and small decompositions only; twice, for rounding."""
    for _ in range(2):
        squares, turn = np.linalg.eigh(columns.T @ columns)
        used = squares > 1e-14 * squares[-1]
        columns = columns @ (turn[:, used] / np.sqrt(squares[used]))
    return columns


def _onto_ball(values, radius):
    """Ordered singular values, soft-thresholded so that their sum is the radius at most."""
    if values.sum() <= radius:
        return values
    level = (np.cumsum(values) - radius) / np.arange(1, len(values) + 1)
    return np.maximum(values - level[np.sum(values > level) - 1], 0.0)
