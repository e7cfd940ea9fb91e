r"""Simplicial decomposition with Newton steps, for smooth losses over polytopes that have only an LMO, block by block.

A point of $X = X_1\times\dots\times X_k$ is held as weights of vertices, block by block (von Hohenbalken, 1977; for
products Larsson, Patriksson, 1992). A round makes one LMO call, which proves a lower bound and adds a vertex to every
block, and one Newton step over the weights: a quadratic program over simplices by an active-set method (Wolfe, 1976).
Constraints are charged.
"""

import numpy as np

from .charges import Charges
from .oracle import blocks
from .search import Search

_MOST_COLUMNS = 2000
_UNUSED = 10  # rounds after which a vertex of weight 0 is forgotten
_STUCK = 30  # rounds without progress
_HALVINGS = 20


class Simplicial:
    """`solve` returns when it is done or makes no more progress."""

    def __init__(self, search: Search):
        self.search = search
        sizes = [block.dimension for block in blocks(search.oracle.domain)]
        self.ends = np.cumsum([0, *sizes])
        start = search.first.point
        self.columns = self._split(start)
        self.group = np.arange(len(sizes))
        self.weights, self.idle = np.ones(len(sizes)), np.zeros(len(sizes), int)

    def solve(self):
        with self.search.patience(_STUCK):
            self._solve()

    def _solve(self):
        search = self.search
        self.charges = Charges(search, self._first_curvature())
        at = self.charges.measure(search.first.point)
        while not search.done and len(self.weights) < _MOST_COLUMNS:
            vertex, is_changed = self.charges.report(at)
            if search.done:
                return
            at = self.charges.measure(at.point) if is_changed else at
            self._add(vertex, at.slope)
            quadratic = self._quadratic(at)
            linear = self.columns @ at.slope - quadratic @ self.weights
            at = self._search_line(at, on_simplices(quadratic, linear, self.weights, self.group))
            self._forget()

    def _first_curvature(self):
        """Along the first direction."""
        first, objective = self.search.first, self.search.objective
        direction = self.search.oracle.lmo(first.slope) - first.point
        curved = objective.products(first.point, np.zeros(objective.count), direction[None])[0]
        floor = 1e-3 * np.linalg.norm(first.slope) / self.search.oracle.diameter
        return max(float(direction @ curved) / max(float(direction @ direction), 1e-300), floor, 1e-300)

    def _quadratic(self, at):
        """The Hessian of F and the charges, as one of the weights."""
        objective, charges = self.search.objective, self.charges
        of_charges = charges.weights(at.constraint)
        curved = objective.products(at.point, of_charges / charges.unit, self.columns)
        quadratic = self.columns @ curved.T
        if (active := of_charges > 0).any():
            rows = (objective.jacobian(at.point) / charges.unit[:, None])[active] @ self.columns.T
            quadratic += charges.price * (rows.T @ rows)
        return 0.5 * (quadratic + quadratic.T)

    def _split(self, point):
        """The parts of a point, one for each block, and zero elsewhere."""
        parts = np.zeros((len(self.ends) - 1, len(point)))
        for row, first, last in zip(parts, self.ends, self.ends[1:]):
            row[first:last] = point[first:last]
        return parts

    def _add(self, vertex, slope):
        parts = self._split(vertex)
        level = np.array([(slope @ self.columns[self.group == i].T).min() for i in range(len(parts))])
        new = parts @ slope < level - 1e-14 * np.abs(level)
        self.columns = np.concatenate([self.columns, parts[new]])
        self.group = np.concatenate([self.group, np.flatnonzero(new)])
        self.weights = np.concatenate([self.weights, np.zeros(new.sum())])
        self.idle = np.concatenate([self.idle, np.zeros(new.sum(), int)])

    def _search_line(self, at, found):
        """The step towards the Newton point: the whole, or as much of it as the loss allows."""
        direction = (found - self.weights) @ self.columns
        fall, step, before = at.slope @ direction, 1.0, self.charges.total(at)
        for _ in range(_HALVINGS):
            weights = self.weights + step * (found - self.weights)
            new = self.charges.measure(weights @ self.columns)
            if self.charges.total(new) <= before + 0.1 * step * fall + 1e-14 * abs(before):
                self.weights = weights
                return new
            rise = new.slope @ direction
            step *= np.clip(-fall / max(rise - fall, 1e-300), 0.1, 0.5) if np.isfinite(rise) else 0.1
        return at

    def _forget(self):
        self.idle = np.where(self.weights > 0, 0, self.idle + 1)
        kept = self.idle <= _UNUSED
        self.columns, self.group = self.columns[kept], self.group[kept]
        self.weights, self.idle = self.weights[kept], self.idle[kept]


def on_simplices(Q, c, u, group):
    """About min u'Qu/2 + c'u over a product of simplices, from a point of it, by an active-set method.

    A tiny multiple of the identity keeps moves along directions without curvature short.
    """
    count = group.max() + 1
    Q = Q + 1e-11 * max(np.trace(Q) / len(Q), 1e-300) * np.eye(len(Q))
    u, free = u.copy(), u > 0
    for _ in range(3 * len(u) + 10):
        slope = Q @ u + c
        chosen = np.flatnonzero(free)
        equal = (group[chosen][:, None] == np.arange(count)[None]).astype(float)
        system = np.block([[Q[np.ix_(chosen, chosen)], equal], [equal.T, np.zeros((count, count))]])
        answer = np.linalg.solve(system, np.concatenate([-slope[chosen], np.zeros(count)]))
        move, level = answer[: len(chosen)], -answer[len(chosen) :]
        shrinking = move < 0
        limits = np.where(shrinking, -u[chosen] / np.where(shrinking, move, -1.0), np.inf)
        step = min(1.0, limits.min(initial=np.inf))
        u[chosen] = np.maximum(u[chosen] + step * move, 0.0)
        if step < 1.0:
            blocked = chosen[limits <= step * (1 + 1e-12)]
            u[blocked], free[blocked] = 0.0, False
            continue
        reduced = np.where(free, 0.0, Q @ u + c - level[group])
        entering = np.array([np.where(group == i, reduced, np.inf).argmin() for i in range(count)])
        entering = entering[reduced[entering] < -1e-12 * np.abs(c).max()]
        if len(entering) == 0:
            break
        free[entering] = True
    totals = np.bincount(group, u, count)
    return u / totals[group]
