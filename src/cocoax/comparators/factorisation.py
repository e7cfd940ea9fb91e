"""The one large linear system of an interior-point step, in dense linear algebra."""

from typing import NamedTuple

import numpy as np

from .quadratic import Unsolved


class Program(NamedTuple):
    """min x'Hx/2 + c'x + <w, |Ax + b|> subject to Jx <= h."""

    H: np.ndarray  # (n, n), or (n,) if it is diagonal
    c: np.ndarray
    A: np.ndarray  # of kinks, (K, n)
    b: np.ndarray
    w: np.ndarray
    J: np.ndarray
    h: np.ndarray

    def smooth(self, x):
        """Value and slope of the smooth part."""
        image = self.H @ x if self.H.ndim == 2 else self.H * x
        return 0.5 * (x @ image) + self.c @ x, image + self.c


def inverse(program, mirror, diagonal, weights):
    """A function that multiplies columns with the inverse of B'(H + A'wA)B + diagonal, where x = Bv."""
    n = len(program.c)
    own, other = diagonal[:n].copy(), diagonal[n:]
    own[mirror] = 1 / (1 / own[mirror] + 1 / other)
    solve = _dense(program, own, weights) if program.H.ndim == 2 else _diagonal(program, own, weights)
    larger = (other >= diagonal[mirror])[:, None]

    def multiply(sides):
        side, first, second = sides[:n].copy(), sides[mirror] / diagonal[mirror, None], sides[n:] / other[:, None]
        side[mirror] = own[mirror, None] * (first - second)
        move = solve(side)
        image = (side - own[:, None] * move)[mirror]  # of the move, under H + A'wA
        down = second + image / other[:, None]
        up = first - image / diagonal[mirror, None]
        down, up = np.where(larger, down, up - move[mirror]), np.where(larger, move[mirror] + down, up)
        move[mirror] = up
        return np.concatenate([move, down])

    return multiply


def _dense(program, diagonal, weights):
    from scipy.linalg import cho_factor, cho_solve

    matrix = program.H + (program.A.T * weights) @ program.A if len(weights) else program.H.copy()
    matrix[np.diag_indices(len(matrix))] += diagonal + 1e-14 * np.abs(np.diag(matrix)).max()
    try:
        factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        raise Unsolved("interior points", np.zeros(len(program.h))) from error
    return lambda sides: cho_solve(factor, sides, check_finite=False)


def _diagonal(program, diagonal, weights):
    """By the kinks, of which there are few (Woodbury, 1950)."""
    from scipy.linalg import cho_factor, cho_solve

    inverse = 1 / (program.H + diagonal)[:, None]
    if not len(weights):
        return lambda sides: inverse * sides
    spread = program.A * inverse[:, 0]
    small = program.A @ spread.T
    small[np.diag_indices(len(small))] += 1 / weights
    try:
        factor = cho_factor(small, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        raise Unsolved("interior points", np.zeros(len(program.h))) from error
    return lambda sides: inverse * sides - spread.T @ cho_solve(factor, spread @ sides, check_finite=False)
