r"""One proximal step over a domain, by linear minimisation alone if it has no projection.

$\min_{x\in X}\ \max_j(e_j + \langle h_j, x-y\rangle) + \langle c, x-y\rangle + \tfrac L2\|x-y\|^2
  + K\,[\max_i (r_i + \langle a_i, x-y\rangle)]_+$

by column generation: an exact quadratic program over the hull of the vertices found so far, then one LMO call
that either proves the answer or adds a vertex. On spectral sets and simplices a cold start finds the answer in
as many calls as it has components, since each residual's best vertex is a component of the answer. A curved domain
that projects exactly is asked for that instead.
"""

from typing import NamedTuple

import numpy as np

from .oracle import Oracle
from .quadratic import solve_quadratic

_MOST_VERTICES = 400
_UNUSED = 1e-11
_ASCENTS = 60
_PATIENCE = 40
_HALVINGS = 12
_FEW = 50  # entries up to which column generation is quicker than a projection


class Pieces(NamedTuple):
    """Affine functions of x, by their slopes and their values at y."""

    slopes: np.ndarray
    values: np.ndarray


class Step(NamedTuple):
    point: np.ndarray
    loss_weights: np.ndarray  # of the pieces of the maximum e; they sum to 1
    row_weights: np.ndarray  # of the rows r; they sum to K at most
    excess: float  # the largest row at the answer, or 0


class ProximalStep:
    """Proximal steps over a domain on flat float64 vectors; it keeps the vertices of the last step."""

    def __init__(self, oracle: Oracle, check):
        self.oracle, self.check = oracle, check
        self.earlier = oracle.lmo(np.zeros_like(oracle.centre))[None]  # a polytope's vertices of the step before

    @property
    def _ascends(self):
        large = self.oracle.projects and len(self.oracle.centre) > _FEW
        return large or not self.oracle.is_polytope

    def step(self, c, L, y, loss, rows, K, accuracy, guess=None) -> Step:
        """The minimiser to within `accuracy` in value. `guess`: weights of all pieces to start from."""
        if self.oracle.has_interior or (guess is None and self._ascends):
            free = _step_without_domain(c, L, y, loss, rows, K)
            if self.oracle.has_interior and self.oracle.inside(free.point):
                return free
            guess = np.append(free.loss_weights, free.row_weights) if guess is None else guess
        if not self._ascends:
            self.earlier, step = self._generate(c, L, y, loss, rows, K, accuracy, self.earlier)
            return step
        return self._ascend(c, L, y, loss, rows, K, accuracy, guess)

    def _ascend(self, c, L, y, loss, rows, K, accuracy, weights):
        """The dual: with the pieces' weights fixed the step is a projection, quick from a cold start, and a smooth
        concave function of them, which BFGS maximises. Curved sets need this: vertices found for other weights are
        of little use there."""
        slopes, values = np.concatenate([loss.slopes, rows.slopes]), np.concatenate([loss.values, rows.values])
        curvature, pieces = slopes @ slopes.T / L, len(loss.values)
        none, closer = Pieces(slopes[:0], values[:0]), accuracy * (1e-3 if len(slopes) else 1.0)

        def project(weights):
            self.check()
            tilted = c + weights @ slopes
            if self.oracle.projects:
                point = self.oracle.nearest(y - tilted / L)
            else:
                first = self.oracle.lmo(tilted + L * (self.oracle.centre - y))[None]
                _, (point, *_) = self._generate(tilted, L, y, none, none, K, closer, first)
            move = point - y
            dual = values @ weights + tilted @ move + 0.5 * L * (move @ move)
            return point, values + slopes @ move, dual

        point, slack, dual = project(weights)
        for _ in range(_ASCENTS):
            missing = (np.max(slack[:pieces]) if pieces else 0.0) - weights @ slack
            excess = np.max(slack[pieces:], initial=0.0)
            price = 2.0 * weights[pieces:].sum() if excess <= 1e-8 * self.oracle.diameter else K
            if len(slopes) == 0 or missing + price * excess <= accuracy:
                break
            towards = _best_weights(curvature, -slack - curvature @ weights, pieces, K) - weights
            rounding = 1e-13 * (abs(dual) + abs(weights @ values))
            tried = project(weights + towards)
            for _ in range(_HALVINGS):
                if tried[2] >= dual + 1e-4 * (slack @ towards) - rounding:
                    break
                towards = 0.5 * towards
                tried = project(weights + towards)
            bend = slack - tried[1]
            if bend @ towards > 1e-14 * np.linalg.norm(bend) * np.linalg.norm(towards):
                pushed = curvature @ towards
                curvature = curvature - np.outer(pushed, pushed) / (pushed @ towards)
                curvature = curvature + np.outer(bend, bend) / (bend @ towards)
            weights, (point, slack, dual) = weights + towards, tried
        return _answer(point, y, weights[:pieces], weights[pieces:], rows)

    def _generate(self, c, L, y, loss, rows, K, accuracy, vertices):
        best, stale = np.inf, 0
        while True:
            self.check()
            weights, step = _step_in_hull(vertices, c, L, y, loss, rows, K)
            slope = c + L * (step.point - y) + step.loss_weights @ loss.slopes + step.row_weights @ rows.slopes
            vertex = self.oracle.lmo(slope)
            gap = slope @ (step.point - vertex)
            best, stale = (gap, 0) if gap < best else (best, stale + 1)
            proven = gap <= accuracy + 1e-13 * self.oracle.diameter * np.linalg.norm(slope) or stale > _PATIENCE
            repeated = np.abs(vertices - vertex).max(axis=1).min() <= 1e-13 * self.oracle.diameter
            vertices = vertices[weights > _UNUSED * weights.max()]
            if proven or repeated or len(vertices) >= _MOST_VERTICES:
                return vertices, step
            vertices = np.concatenate([vertices, vertex[None]])


def _step_in_hull(vertices, c, L, y, loss, rows, K):
    """The step over the convex hull of `vertices`, as a program in their weights."""
    arms = vertices - y
    u, loss_weights, row_weights = _program(L * (arms @ arms.T), arms @ c, loss, rows, arms.T, K, True)
    weights = np.maximum(u, 0.0)
    weights = weights / weights.sum()
    return weights, _answer(weights @ vertices, y, loss_weights, row_weights, rows)


def _step_without_domain(c, L, y, loss, rows, K):
    """The step over the whole space, as a program in x or in the weights of the pieces, whichever are fewer."""
    pieces, size = len(loss.values), len(y)
    if pieces + len(rows.values) > size:
        move, loss_weights, row_weights = _program(L * np.eye(size), c, loss, rows, np.eye(size), K, False)
        return _answer(y + move, y, loss_weights, row_weights, rows)
    slopes, values = np.concatenate([loss.slopes, rows.slopes]), np.concatenate([loss.values, rows.values])
    weights = _best_weights(slopes @ slopes.T / L, slopes @ c / L - values, pieces, K)
    return _answer(y - (c + weights @ slopes) / L, y, weights[:pieces], weights[pieces:], rows)


def _program(Q, c, loss, rows, basis, K, simplex):
    """The step over x = y + basis u, with u free or in the simplex: (u, weights of loss, weights of rows)."""
    n, pieces = len(c), len(loss.values)
    several, elastic = int(pieces > 0), int(len(rows.values) > 0)
    inner, size = slice(elastic, elastic + n), elastic + n + several  # [the excess, u, the level of the loss]
    full = np.zeros((size, size))
    full[inner, inner] = Q
    cost = np.concatenate([np.full(elastic, K), c, np.ones(several)])
    G = np.zeros((pieces + len(rows.values), size))
    G[:, inner] = np.concatenate([loss.slopes, rows.slopes]) @ basis
    G[:pieces, elastic + n :] = -1.0
    G[pieces:, :elastic] = -1.0
    h = -np.concatenate([loss.values, rows.values])
    ones = np.concatenate([np.zeros(elastic), np.ones(n), np.zeros(several)]) if simplex else None
    u, weights = solve_quadratic(full, cost, elastic + (n if simplex else 0), G, h, ones)
    return u[inner], weights[:pieces], weights[pieces:]


def _best_weights(Q, cost, pieces, K):
    """The minimiser where the first `pieces` weights sum to 1 and the others to K at most."""
    if len(cost) == 0:
        return np.zeros(0)
    is_row = (np.arange(len(cost)) >= pieces).astype(float)
    elastic = int(pieces < len(cost))
    weights, _ = solve_quadratic(
        Q, cost, len(cost), is_row[None][:elastic], np.full(elastic, K), 1.0 - is_row if pieces else None
    )
    return np.maximum(weights, 0.0)


def _answer(point, y, loss_weights, row_weights, rows):
    excess = float(np.max(rows.values + rows.slopes @ (point - y), initial=0.0))
    total = loss_weights.sum()
    return Step(point, loss_weights / total if total > 0 else loss_weights, np.maximum(row_weights, 0.0), excess)
