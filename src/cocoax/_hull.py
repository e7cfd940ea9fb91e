r"""One proximal step over a domain that answers linear minimisation only.

$\min_{x\in X}\ \max_j(e_j + \langle h_j, x-y\rangle) + \langle c, x-y\rangle + \tfrac L2\|x-y\|^2
  + K\,[\max_i (r_i + \langle a_i, x-y\rangle)]_+$

by column generation: an exact quadratic program over the hull of the vertices found so far, then one LMO call
that either proves the answer or adds a vertex. On spectral sets and simplices a cold start finds the answer in
as many calls as it has components, since each residual's best vertex is a component of the answer.
"""

from typing import NamedTuple

import equinox as eqx
import numpy as np
from jax.flatten_util import ravel_pytree

from ._quadratic import solve_quadratic
from .errors import DomainError

_MOST_VERTICES = 400
_UNUSED = 1e-11
_ASCENTS = 60
_HALVINGS = 12


class Pieces(NamedTuple):
    """Affine functions of x, by their slopes and their values at y."""

    slopes: np.ndarray
    values: np.ndarray


class Step(NamedTuple):
    point: np.ndarray
    loss_weights: np.ndarray  # of the pieces of the maximum e; they sum to 1
    row_weights: np.ndarray  # of the rows r; they sum to K at most
    excess: float  # the largest row at the answer, or 0


@eqx.filter_jit
def _lmo(domain, direction, unravel_like):
    _, unravel = ravel_pytree(unravel_like)
    return ravel_pytree(domain.lmo(unravel(direction)).dense())[0]


@eqx.filter_jit
def _contains(domain, point, unravel_like):
    _, unravel = ravel_pytree(unravel_like)
    return domain.contains(unravel(point), 0.0)


class Hull:
    """The domain on flat float64 vectors, with the vertices of the last step."""

    def __init__(self, domain, like):
        self.domain, self.like = domain, like
        self.centre = np.asarray(ravel_pytree(like)[0], np.float64)
        self.diameter = _diameter(domain)
        self.knows_inside = True
        self.earlier = None  # vertices of the step before
        self.is_polytope = False  # so it seems: two cold steps had most of their vertices in common
        self.tries = self.hits = 0  # of the way through the interior

    def lmo(self, direction):
        return np.asarray(_lmo(self.domain, direction, self.like), np.float64)

    def inside(self, point):
        if self.knows_inside:
            try:
                return bool(_contains(self.domain, point, self.like))
            except DomainError:
                self.knows_inside = False
        return False

    def step(self, c, L, y, loss, rows, K, accuracy, guess=None) -> Step:
        """The minimiser to within `accuracy` in value. `guess`: the last step's row weights."""
        free = None
        self.tries += 1
        if guess is None or len(loss.values) or self.hits or self.tries <= 10 or self.tries % 10 == 0:
            free = _step_without_domain(c, L, y, loss, rows, K)
            if self.inside(free.point):
                self.hits += 1
                return free
        if self.is_polytope:
            vertices, step = self._generate(c, L, y, loss, rows, K, accuracy, self.earlier)
        else:
            weights = guess if guess is not None else np.append(free.loss_weights, free.row_weights)
            vertices, step = self._ascend(c, L, y, loss, rows, K, accuracy, weights)
        self._remember(vertices)
        return step

    def _ascend(self, c, L, y, loss, rows, K, accuracy, weights):
        """The dual: with the pieces' weights fixed the step is a projection, quick from a cold start, and a smooth
        concave function of them, which BFGS maximises. Curved sets need this: vertices found for other weights are
        of little use there."""
        slopes, values = np.concatenate([loss.slopes, rows.slopes]), np.concatenate([loss.values, rows.values])
        curvature, of_loss = slopes @ slopes.T / L, len(loss.values)
        none, closer = Pieces(slopes[:0], values[:0]), accuracy * (1e-3 if len(slopes) else 1.0)

        def project(weights):
            tilted = c + weights @ slopes
            first = self.lmo(tilted + L * (self.centre - y))[None]
            vertices, step = self._generate(tilted, L, y, none, none, K, closer, first)
            move = step.point - y
            return (
                vertices,
                step.point,
                values + slopes @ move,
                values @ weights + tilted @ move + 0.5 * L * (move @ move),
            )

        vertices, point, slack, dual = project(weights)
        for _ in range(_ASCENTS):
            answer = _answer(point, y, weights[:of_loss], weights[of_loss:], rows)
            missing = np.max(slack[:of_loss], initial=-np.inf) if of_loss else 0.0
            missing += 2.0 * weights[of_loss:].sum() * answer.excess - weights @ slack
            if len(slopes) == 0 or (missing <= accuracy and answer.excess <= 1e-8 * self.diameter):
                break
            towards = _best_weights(curvature, -slack - curvature @ weights, of_loss, K) - weights
            for _ in range(_HALVINGS):
                tried = project(weights + towards)
                if tried[3] >= dual + 1e-4 * (slack @ towards) - 1e-13 * (abs(dual) + np.abs(weights @ values)):
                    break
                towards = 0.5 * towards
            bend = slack - tried[2]
            if bend @ towards > 1e-14 * np.linalg.norm(bend) * np.linalg.norm(towards):
                pushed = curvature @ towards
                curvature = curvature - np.outer(pushed, pushed) / (pushed @ towards)
                curvature = curvature + np.outer(bend, bend) / (bend @ towards)
            weights, (vertices, point, slack, dual) = weights + towards, tried
        return vertices, answer

    def _generate(self, c, L, y, loss, rows, K, accuracy, vertices):
        while True:
            weights, step = _step_in_hull(vertices, c, L, y, loss, rows, K)
            slope = c + L * (step.point - y) + step.loss_weights @ loss.slopes + step.row_weights @ rows.slopes
            vertex = self.lmo(slope)
            rounding = 1e-13 * self.diameter * np.linalg.norm(slope)
            proven = slope @ (step.point - vertex) <= accuracy + rounding
            known = np.abs(vertices - vertex).max(axis=1).min() <= 1e-13 * self.diameter
            vertices = vertices[weights > _UNUSED * weights.max()]
            if proven or known or len(vertices) >= _MOST_VERTICES:
                return vertices, step
            vertices = np.concatenate([vertices, vertex[None]])

    def _remember(self, vertices):
        if self.earlier is not None and not self.is_polytope:
            apart = np.abs(vertices[:, None] - self.earlier[None]).max(axis=2).min(axis=1)
            self.is_polytope = bool(np.mean(apart <= 1e-12 * self.diameter) > 0.5)
        self.earlier = vertices


def _diameter(domain):
    try:
        return float(domain.diameter(2))
    except DomainError:
        return float(domain.diameter(1))  # an upper bound


def _no_rows(rows):
    return Pieces(rows.slopes[:0], rows.values[:0])


def _step_in_hull(vertices, c, L, y, loss, rows, K):
    """The step over the convex hull of `vertices`, as a program in their weights."""
    arms = vertices - y
    n, several, elastic = len(arms), int(len(loss.values) > 0), int(len(rows.values) > 0)
    size = n + several + elastic
    Q = np.zeros((size, size))
    Q[:n, :n] = L * (arms @ arms.T)
    cost = np.concatenate([arms @ c, np.full(elastic, K), np.ones(several)])
    G = np.zeros((len(loss.values) + len(rows.values), size))
    G[:, :n] = np.concatenate([loss.slopes, rows.slopes]) @ arms.T
    G[: len(loss.values), n + elastic :] = -1.0
    G[len(loss.values) :, n : n + elastic] = -1.0
    h = -np.concatenate([loss.values, rows.values])
    total_one = np.concatenate([np.ones(n), np.zeros(elastic + several)])
    u, multipliers = solve_quadratic(Q, cost, n + elastic, G, h, total_one)
    weights = np.maximum(u[:n], 0.0)
    weights = weights / weights.sum()
    point = weights @ vertices
    return weights, _answer(point, y, multipliers[: len(loss.values)], multipliers[len(loss.values) :], rows)


def _step_without_domain(c, L, y, loss, rows, K):
    """The step over the whole space, as a program in the weights of the pieces (its dual)."""
    slopes = np.concatenate([loss.slopes, rows.slopes])
    values = np.concatenate([loss.values, rows.values])
    weights = _best_weights(slopes @ slopes.T / L, slopes @ c / L - values, len(loss.values), K)
    point = y - (c + weights @ slopes) / L
    return _answer(point, y, weights[: len(loss.values)], weights[len(loss.values) :], rows)


def _best_weights(Q, cost, of_loss, K):
    """The minimiser where the first `of_loss` weights sum to 1 and the others to K at most."""
    if len(cost) == 0:
        return np.zeros(0)
    is_row = (np.arange(len(cost)) >= of_loss).astype(float)
    elastic = int(of_loss < len(cost))
    weights, _ = solve_quadratic(
        Q, cost, len(cost), is_row[None][:elastic], np.full(elastic, K), 1.0 - is_row if of_loss else None
    )
    return np.maximum(weights, 0.0)


def _answer(point, y, of_loss, of_rows, rows):
    excess = float(np.max(rows.values + rows.slopes @ (point - y), initial=0.0))
    total = of_loss.sum()
    return Step(point, of_loss / total if total > 0 else of_loss, np.maximum(of_rows, 0.0), excess)
