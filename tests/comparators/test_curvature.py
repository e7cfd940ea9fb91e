"""Hessians are recognised by a few products with vectors."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cocoax.comparators.newton import curvature_of

SIZE = 150
RNG = np.random.default_rng(0)
FEW, MANY = RNG.normal(size=(5, SIZE)), RNG.normal(size=(SIZE, SIZE))
HESSIANS = {
    "none": (np.zeros((SIZE, SIZE)), 0, False),
    "diagonal": (np.diag(RNG.uniform(size=SIZE)), 0, False),
    "low rank": (FEW.T @ FEW, 5, False),
    "low rank and a multiple of the identity": (FEW.T @ FEW + 0.01 * np.eye(SIZE), 5, False),
    "low rank and a diagonal": (FEW.T @ FEW + np.diag(RNG.uniform(size=SIZE)), 0, True),
    "full": (MANY.T @ MANY, 0, True),
    "not convex": (FEW.T @ FEW - 0.1 * np.eye(SIZE), 0, True),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_they_are_what_they_look_like(name):
    matrix, rank, is_full = HESSIANS[name]
    smooth = SimpleNamespace(products=lambda point, multiplier, directions: directions @ matrix)
    search: Any = SimpleNamespace(clock=SimpleNamespace(left=np.inf))
    found = curvature_of(search, smooth, np.zeros(SIZE), np.zeros(0), np.inf)
    assert found is not None and len(found.factor) == rank and (found.full is not None) == is_full
    size = np.abs(matrix).max()
    np.testing.assert_allclose(found.sparse() + found.factor.T @ found.factor, matrix, atol=1e-9 * size)
    x = RNG.normal(size=SIZE)
    np.testing.assert_allclose(found.times(x), matrix @ x, atol=1e-8 * SIZE * size)


def test_what_is_full_and_too_large_is_not_made():
    smooth = SimpleNamespace(products=lambda point, multiplier, directions: directions @ MANY)
    search: Any = SimpleNamespace(clock=SimpleNamespace(left=np.inf))
    assert curvature_of(search, smooth, np.zeros(SIZE), np.zeros(0), 1e5) is None
