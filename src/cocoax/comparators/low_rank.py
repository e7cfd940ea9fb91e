r"""Accelerated projected gradients over large nuclear-norm balls, with decompositions of low rank.

A projection onto $\{\sum_i\sigma_i\le r\}$ keeps only the singular values above a threshold. They are found by subspace
iteration from those of the step before (Halko, Martinsson, Tropp, 2011): a few products with as many columns, not a
whole decomposition. Points are in the ball whatever its error, and lower bounds come from the domain's own LMO.
"""

import time

import numpy as np

from ..domains.matrices.nuclear_norm import NuclearNormBall
from .search import Search

_BUFFER = 10  # columns more than were needed last
_STUCK = 40  # judgements that do not narrow the gap
_SHARE = 0.25  # of the time, for judgements


class LowRank:
    """`solve` returns when it is done or makes no more progress. Without constraints only."""

    def __init__(self, search: Search):
        self.search, self.domain = search, search.oracle.domain
        self.radius, self.shape = float(self.domain.radius), self.domain.shape
        self.right = np.random.default_rng(0).standard_normal((self.shape[1], _BUFFER))

    @staticmethod
    def fits(search: Search) -> bool:
        """Whether this is the method for the problem."""
        domain = search.oracle.domain
        large = type(domain) is NuclearNormBall and min(domain.shape) > 256
        return large and search.objective.count == 0

    def solve(self):
        search, none = self.search, np.zeros(0)
        x = search.best
        y, momentum, lowest, stuck = x, 1.0, np.inf, 0
        curvature = self._first_curvature(x)
        began, judging = time.monotonic(), 0.0
        while not search.done and stuck < _STUCK:
            while True:
                new = search.objective.measure(self._project(y.point - y.slope / curvature), none)
                way = new.point - y.point
                rise, square = new.loss - y.loss - y.slope @ way, way @ way
                search.check()
                if rise <= 0.5 * curvature * square + 1e-13 * abs(y.loss) or curvature > 1e30:
                    break
                curvature *= 2.0
            now = time.monotonic()
            if judging <= _SHARE * (now - began):
                search.judge(new, none)
                judging += time.monotonic() - now
                lowest, stuck = (search.gap, 0) if search.gap < 0.99 * lowest else (lowest, stuck + 1)
            following = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
            beta = (momentum - 1) / following
            if (y.point - new.point) @ (new.point - x.point) > 0:
                following, beta = 1.0, 0.0
            curvature *= 0.5 if rise < 0.1 * curvature * square else 0.97
            momentum, y, x = following, search.objective.measure(new.point + beta * (new.point - x.point), none), new

    def _first_curvature(self, x):
        """Along the slope: on other ways the loss may have less curvature, and the first step would be far too long."""
        length = np.linalg.norm(x.slope)
        way = -0.1 * self.radius / max(length, 1e-300) * x.slope
        near = self.search.objective.measure(x.point + way, np.zeros(0))
        return max(np.linalg.norm(near.slope - x.slope) / np.linalg.norm(way), 1e-3 * length / self.radius, 1e-300)

    def _project(self, point):
        matrix, most = point.reshape(self.shape), min(self.shape)
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
