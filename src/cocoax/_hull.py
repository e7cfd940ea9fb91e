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
        self.same_vertices = 0  # steps whose vertices were mostly seen before: the set is a polytope
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
        self.tries += 1
        if self.hits or self.tries <= 10 or self.tries % 10 == 0:
            free = _step_without_domain(c, L, y, loss, rows, K)
            if self.inside(free.point):
                self.hits += 1
                return free
        if self.earlier is not None and self.same_vertices >= 1:
            vertices = self.earlier
        elif len(rows.values) and guess is not None and len(guess) == len(rows.values):
            vertices, _ = self._generate(
                c + guess @ rows.slopes, L, y, loss, _no_rows(rows), K, accuracy, self._first(c, L, y)
            )
        else:
            vertices = self._first(c, L, y)
        vertices, step = self._generate(c, L, y, loss, rows, K, accuracy, vertices)
        self._remember(vertices)
        return step

    def _first(self, c, L, y):
        return self.lmo(c + L * (self.centre - y))[None]

    def _generate(self, c, L, y, loss, rows, K, accuracy, vertices):
        while True:
            weights, step = _step_in_hull(vertices, c, L, y, loss, rows, K)
            slope = (
                c + L * (step.point - y) + step.loss_weights @ loss.slopes + step.row_weights @ rows.slopes
            )
            vertex = self.lmo(slope)
            proven = slope @ (step.point - vertex) <= accuracy
            known = np.abs(vertices - vertex).max(axis=1).min() <= 1e-13 * self.diameter
            used = weights > _UNUSED * weights.max()
            vertices = vertices[used]
            if proven or known or len(vertices) >= _MOST_VERTICES:
                return vertices, step
            vertices = np.concatenate([vertices, vertex[None]])

    def _remember(self, vertices):
        if self.earlier is not None and self.same_vertices == 0:
            apart = np.abs(vertices[:, None] - self.earlier[None]).max(axis=2).min(axis=1)
            self.same_vertices = int(np.mean(apart <= 1e-12 * self.diameter) > 0.5)
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
    cost = np.concatenate([arms @ c, np.ones(several), np.full(elastic, K)])
    G = np.zeros((n + len(loss.values) + len(rows.values) + elastic, size))
    G[:n, :n] = -np.eye(n)
    h = np.concatenate([np.zeros(n), -loss.values, -rows.values, np.zeros(elastic)])
    if several:
        part = slice(n, n + len(loss.values))
        G[part, :n], G[part, n] = loss.slopes @ arms.T, -1.0
    if elastic:
        part = slice(n + len(loss.values), len(G) - 1)
        G[part, :n], G[part, -1] = rows.slopes @ arms.T, -1.0
        G[-1, -1] = -1.0
    u, multipliers = solve_quadratic(Q, cost, G, h, np.concatenate([np.ones(n), np.zeros(several + elastic)]))
    weights = np.maximum(u[:n], 0.0)
    weights = weights / weights.sum()
    point = weights @ vertices
    of_rows = multipliers[n + len(loss.values) :][: len(rows.values)]
    return weights, _answer(point, y, multipliers[n : n + len(loss.values)], of_rows, rows)


def _step_without_domain(c, L, y, loss, rows, K):
    """The step over the whole space, as a program in the weights of the pieces (its dual)."""
    slopes = np.concatenate([loss.slopes, rows.slopes])
    of_loss, n = len(loss.values), len(slopes)
    if n == 0:
        weights = np.zeros(0)
    else:
        values = np.concatenate([loss.values, rows.values])
        capped = np.concatenate([np.zeros(of_loss), np.ones(n - of_loss)])
        G, h = np.concatenate([-np.eye(n), capped[None]]), np.append(np.zeros(n), K)
        if of_loss == n:
            G, h = G[:-1], h[:-1]
        weights, _ = solve_quadratic(
            slopes @ slopes.T / L, slopes @ c / L - values, G, h, 1.0 - capped if of_loss else None
        )
        weights = np.maximum(weights, 0.0)
    point = y - (c + weights @ slopes) / L
    return _answer(point, y, weights[:of_loss], weights[of_loss:], rows)


def _answer(point, y, of_loss, of_rows, rows):
    excess = float(np.max(rows.values + rows.slopes @ (point - y), initial=0.0))
    total = of_loss.sum()
    return Step(point, of_loss / total if total > 0 else of_loss, np.maximum(of_rows, 0.0), excess)
