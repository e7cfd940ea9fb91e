r"""Hessians from products with vectors: diagonal, a multiple of the identity and something of low rank, or full."""

import time
from typing import Any, NamedTuple

import numpy as np

from .search import Search

_WAYS, _MOST_WAYS = 64, 256  # that one compiled call takes; that are looked at for a part of low rank
_LARGE = 0.1  # of the operations that are too many: where it is worth to look at more than one call takes
_CHECKS = 2  # of them, to see whether the guess is right
_NULL = 4  # directions that the part of low rank must leave as they are
_SAME, _RANK, _NEGLIGIBLE = 1e-12, 1e-11, 1e-13


class Curvature(NamedTuple):
    """H = diag(diagonal) + factor' factor, or `full`."""

    diagonal: np.ndarray
    factor: np.ndarray
    full: np.ndarray | None = None

    def times(self, x):
        return self.full @ x if self.full is not None else self.diagonal * x + (self.factor @ x) @ self.factor

    def dense(self):
        return self.full if self.full is not None else np.diag(self.diagonal) + self.factor.T @ self.factor

    def sparse(self):
        """Without the factor."""
        from scipy import sparse

        if self.full is None:
            return sparse.diags_array(self.diagonal, format="csr")
        return sparse.csr_array(np.where(np.abs(self.full) > _NEGLIGIBLE * np.abs(self.full).max(), self.full, 0.0))


def curvature_of(search: Search, smooth: Any, point, multiplier, most_flops: float) -> Curvature | None:
    """Of F + <multiplier, G>, by products of `smooth`; None if it is full and too large, or not finite."""
    n, began = len(point), time.monotonic()
    ways, images, none = *np.zeros((2, 0, n)), np.zeros((0, n))
    most = min(n // 4, _MOST_WAYS) if n**3 / 3 > _LARGE * most_flops else _WAYS
    while len(ways) < max(most, _WAYS):
        fresh = np.random.default_rng(len(ways)).standard_normal((_WAYS, n))
        if not len(ways):
            fresh[0] = 1.0
        ways = np.concatenate([ways, fresh])
        images = np.concatenate([images, smooth.products(point, multiplier, fresh)])
        if not np.isfinite(images).all():
            return None
        if np.abs(images[1:] - images[0] * ways[1:]).max() <= _SAME * np.abs(images).max():
            return Curvature(images[0], none)
        found = _of_low_rank(ways, images) if n > 2 * _WAYS else None
        if found is not None:
            return found
    took = (time.monotonic() - began) / len(ways)
    if n**3 / 3 > most_flops or took * n > 0.5 * search.clock.left:
        return None
    full = smooth.products(point, multiplier, np.eye(n))
    return Curvature(np.zeros(n), none, 0.5 * (full + full.T))


def _of_low_rank(ways, images) -> Curvature | None:
    """d I + F'F, if these products can be explained so: its null directions have the least curvature, d."""
    used = len(ways) - _CHECKS
    basis, turn = np.linalg.qr(ways[:used].T)
    products = np.linalg.solve(turn.T, images[:used])  # H times an orthonormal basis
    small = products @ basis
    values, vectors = np.linalg.eigh(0.5 * (small + small.T))
    least = max(values[0], 0.0) if values[0] > -_RANK * values[-1] else values[0]
    is_large = values - least > _RANK * values[-1]
    if least < 0 or is_large.sum() > used - _NULL:
        return None
    rest = vectors[:, is_large].T @ (products - least * basis.T)
    factor = rest / np.sqrt(values[is_large] - least)[:, None]
    found = Curvature(np.full(ways.shape[1], least), factor)
    errors = [np.abs(found.times(way) - image).max() for way, image in zip(ways[used:], images[used:])]
    return found if max(errors) <= 1e-8 * np.abs(images).max() else None
