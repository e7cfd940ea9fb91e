r"""Newton's method on a whole cone program, for smooth functions over small sets whose description is known.

Around $x_k$ it minimises the quadratic model of $F + \langle\lambda_k, G\rangle$ over X where the linearised
constraints hold (Wilson, 1963). Quadratic losses with affine constraints need one step.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from .cones import Cones, above
from .quadratic import Unsolved, solve_cones
from .search import Search

_STEPS = 40
_SUFFICIENT = 0.1
_SHORTEST = 1e-12
_DIRECTIONS, _MOST_DIRECTIONS = 64, 256  # that one compiled call takes; that are looked at for a part of low rank
_LARGE = 0.1  # of the operations that are too many: where it is worth to look at more than one call takes
_CHECKS = 2  # of them, to see whether the guess is right
_NULL = 4  # directions that the part of low rank must leave as they are
_SAME, _RANK, _NEGLIGIBLE = 1e-12, 1e-11, 1e-13


class Newton:
    """`solve` returns when it is done or makes no more progress."""

    most_flops: float = 1e10  # of a factorisation
    patience: int = 8  # steps that do not narrow the gap

    def __init__(self, search: Search, cones: Cones):
        self.search, self.cones, self.objective = search, cones, search.objective
        self.smooth: Any = search.objective  # what the model is made of
        self.cost = np.zeros(cones.extra)  # of the extra variables
        self.accuracy = np.clip(1e-3 * search.tol, 1e-13, 1e-8)

    def solve(self, most: int | None = None):
        """At most so many steps."""
        x, multiplier = self.search.best, np.zeros(self.objective.count)
        lowest, stuck = np.inf, 0
        for _ in range(most or _STEPS):
            step = self._model(self.smooth.measure(x.point, np.zeros(self.objective.count)), multiplier)
            if step is None:
                return
            target, multiplier, weights = step
            x = self._advance(x, target, multiplier, weights)
            gap = self.search.gap
            lowest, stuck = (gap, 0) if gap < 0.9 * lowest else (lowest, stuck + 1)
            if self.search.done or stuck >= self.patience:
                return

    def _model(self, x, multiplier):
        """The minimiser of the model, the multipliers of its constraints, and those of its cones; or None."""
        from scipy import sparse

        n, extra = self.cones.size, self.cones.extra
        hessian = curvature_of(self.search, self.smooth, x.point, multiplier, self.most_flops)
        if hessian is None:
            return None
        jacobian = self.objective.jacobian(x.point)
        slope, rank = x.slope - hessian.times(x.point), len(hessian.factor)
        curved = hessian.sparse()
        sizes = [np.abs(part).max(initial=0.0) for part in (slope, self.cost, curved.data, hessian.factor**2)]
        scale = max(*sizes, 1e-300)
        norm = np.linalg.norm(jacobian, axis=1)
        norm = np.where(norm > 0, norm, 1.0)
        rows = np.pad(jacobian / norm[:, None], ((0, 0), (0, extra)))
        limits = (jacobian @ x.point - x.constraint) / norm
        parts = self.cones.parts
        matrix = sparse.csc_array(above(rows, *(part.matrix for part in parts)))
        sides = np.concatenate([limits, *(part.side for part in parts), np.zeros(rank)])
        kinds = [("positive", len(limits)), *((part.cone, len(part.side)) for part in parts)]
        blocks = [curved / scale, *([sparse.csr_array((extra, extra))] if extra else [])]
        if rank:  # z = Fx are variables of their own
            image = np.pad(hessian.factor / scale**0.5, ((0, 0), (0, extra)))
            matrix = sparse.block_array(
                [[matrix, None], [sparse.csr_array(image), -sparse.eye_array(rank)]], format="csc"
            )
            kinds, blocks = [*kinds, ("zero", rank)], [*blocks, sparse.eye_array(rank)]
        cost = sparse.triu(sparse.block_diag(blocks) if len(blocks) > 1 else blocks[0], format="csc")
        slope, seconds = np.concatenate([slope, self.cost, np.zeros(rank)]) / scale, self.search.clock.left
        try:
            answer, weights = solve_cones(cost, slope, matrix, sides, kinds, seconds, self.accuracy)
        except Unsolved as failure:
            proof = np.nan_to_num(failure.args[1][: len(limits)], posinf=0.0)
            self.search.refute(x.point, x.constraint, jacobian, np.maximum(proof, 0.0) / norm)
            return None
        self.accuracy = max(0.01 * self.accuracy, 1e-13)
        target = answer[:n]
        if self.search.oracle.projects:
            target = self.search.oracle.nearest(target)
        weights = scale * weights[: len(weights) - rank]
        return target, np.maximum(weights[: len(limits)], 0.0) / norm, weights[len(limits) :]

    def _advance(self, x, target, multiplier, weights):
        """The next point: the whole step, or as much of it as lessens F + K max(G, 0) with large K."""
        price = 2.0 * multiplier

        def merit(at):
            return at.loss + price @ np.maximum(at.constraint, 0.0)

        direction, step = target - x.point, 1.0
        x = self.objective.measure(x.point, np.zeros_like(multiplier))
        fall = min(x.slope @ direction - price @ np.maximum(x.constraint, 0.0), 0.0)
        new = self.objective.measure(target, multiplier)
        self.search.report(new, multiplier)

        def too_far(new):
            enough = merit(new) <= merit(x) + _SUFFICIENT * step * fall + 1e-13 * abs(merit(x))
            return not (enough and np.isfinite(new.slope).all())

        while too_far(new) and step > _SHORTEST:
            step = 0.95 if step == 1.0 and not np.isfinite(new.slope).all() else 0.3 * step  # the end may be a pole
            new = self.objective.measure(x.point + step * direction, multiplier)
        if step < 1.0:
            self.search.report(new, multiplier)
        return new


class Curvature(NamedTuple):
    """H = diag(diagonal) + factor' factor, or `full`."""

    diagonal: np.ndarray
    factor: np.ndarray
    full: np.ndarray | None = None

    def times(self, x):
        return self.full @ x if self.full is not None else self.diagonal * x + (self.factor @ x) @ self.factor

    def sparse(self):
        """Without the factor."""
        from scipy import sparse

        if self.full is None:
            return sparse.diags_array(self.diagonal, format="csr")
        return sparse.csr_array(np.where(np.abs(self.full) > _NEGLIGIBLE * np.abs(self.full).max(), self.full, 0.0))


def curvature_of(search: Search, smooth: Any, point, multiplier, most_flops: float) -> Curvature | None:
    """Of F + <multiplier, G>, by products of `smooth`; None if it is full and too large, or not finite."""
    n, began = len(point), time.monotonic()
    directions, images, none = *np.zeros((2, 0, n)), np.zeros((0, n))
    most = min(n // 4, _MOST_DIRECTIONS) if n**3 / 3 > _LARGE * most_flops else _DIRECTIONS
    while len(directions) < max(most, _DIRECTIONS):
        fresh = np.random.default_rng(len(directions)).standard_normal((_DIRECTIONS, n))
        if not len(directions):
            fresh[0] = 1.0
        directions = np.concatenate([directions, fresh])
        images = np.concatenate([images, smooth.products(point, multiplier, fresh)])
        if not np.isfinite(images).all():
            return None
        if np.abs(images[1:] - images[0] * directions[1:]).max() <= _SAME * np.abs(images).max():
            return Curvature(images[0], none)
        found = _diagonal_and_low_rank(directions, images) if n > 2 * _DIRECTIONS else None
        if found is not None:
            return found
    took = (time.monotonic() - began) / len(directions)
    if n**3 / 3 > most_flops or took * n > 0.5 * search.clock.left:
        return None
    full = smooth.products(point, multiplier, np.eye(n))
    return Curvature(np.zeros(n), none, 0.5 * (full + full.T))


def _diagonal_and_low_rank(directions, images) -> Curvature | None:
    """d I + F'F, if these products can be explained so: its null directions have the least curvature, d."""
    used = len(directions) - _CHECKS
    basis, turn = np.linalg.qr(directions[:used].T)
    products = np.linalg.solve(turn.T, images[:used])  # H times an orthonormal basis
    small = products @ basis
    values, vectors = np.linalg.eigh(0.5 * (small + small.T))
    least = max(values[0], 0.0) if values[0] > -_RANK * values[-1] else values[0]
    is_large = values - least > _RANK * values[-1]
    if least < 0 or is_large.sum() > used - _NULL:
        return None
    rest = vectors[:, is_large].T @ (products - least * basis.T)
    factor = rest / np.sqrt(values[is_large] - least)[:, None]
    found = Curvature(np.full(directions.shape[1], least), factor)
    errors = [
        np.abs(found.times(direction) - image).max() for direction, image in zip(directions[used:], images[used:])
    ]
    return found if max(errors) <= 1e-8 * np.abs(images).max() else None
