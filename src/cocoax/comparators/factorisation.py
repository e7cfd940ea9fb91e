"""The one large linear system of an interior-point step, in dense linear algebra."""

from typing import NamedTuple

import numpy as np

from .quadratic import Unsolved


class Program(NamedTuple):
    """min x'(H + F'F)x/2 + c'x + <w, |Ax + b|> subject to Jx <= h."""

    H: np.ndarray  # (n, n), or (n,) if it is diagonal
    F: np.ndarray  # of low rank, (r, n)
    c: np.ndarray
    A: np.ndarray  # of kinks, (K, n)
    b: np.ndarray
    w: np.ndarray
    J: np.ndarray
    h: np.ndarray

    def smooth(self, x):
        """Value and slope of the smooth part."""
        image = (self.H @ x if self.H.ndim == 2 else self.H * x) + (self.F @ x) @ self.F
        return 0.5 * (x @ image) + self.c @ x, image + self.c


def inverse(program, mirror, diagonal, weights):
    """A function that multiplies columns with the inverse of B'(H + F'F + A'wA)B + diagonal, where x = Bv."""
    n = len(program.c)
    own, other = diagonal[:n].copy(), diagonal[n:]
    own[mirror] = 1 / (1 / own[mirror] + 1 / other)
    rows, weights = np.concatenate([program.F, program.A]), np.concatenate([np.ones(len(program.F)), weights])
    solve = (_dense if program.H.ndim == 2 else _diagonal)(program.H, rows, own, weights)
    larger = (other >= diagonal[mirror])[:, None]

    def multiply(sides):
        side, first, second = sides[:n].copy(), sides[mirror] / diagonal[mirror, None], sides[n:] / other[:, None]
        side[mirror] = own[mirror, None] * (first - second)
        move = solve(side)
        image = (side - own[:, None] * move)[mirror]  # of the move, without the diagonal
        down = second + image / other[:, None]
        up = first - image / diagonal[mirror, None]
        down, up = np.where(larger, down, up - move[mirror]), np.where(larger, move[mirror] + down, up)
        move[mirror] = up
        return np.concatenate([move, down])

    return multiply


def _dense(hessian, rows, diagonal, weights):
    matrix = hessian + (rows.T * weights) @ rows if len(weights) else hessian.copy()
    matrix[np.diag_indices(len(matrix))] += diagonal + 1e-14 * np.abs(np.diag(matrix)).max()
    return _solver(matrix)


def _diagonal(hessian, rows, diagonal, weights):
    """By the rows, of which there are few (Woodbury, 1950)."""
    inverse = 1 / (hessian + diagonal)[:, None]
    if not len(weights):
        return lambda sides: inverse * sides
    spread = rows * inverse[:, 0]
    small = rows @ spread.T
    small[np.diag_indices(len(small))] += 1 / weights
    solve = _solver(small)
    return lambda sides: inverse * sides - spread.T @ solve(spread @ sides)


def _solver(matrix):
    from scipy.linalg import cho_factor, cho_solve

    try:
        factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        raise Unsolved("interior points", np.zeros(0)) from error
    return lambda sides: cho_solve(factor, sides, check_finite=False)
