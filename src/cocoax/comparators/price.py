"""The price of violation in the score: more than ignoring a constraint can save."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..core import tree
from ..errors import ProblemError

_OVER = 2.0  # times the multiplier: at the multiplier itself, ignoring a constraint on linear losses costs nothing
_MOST_ENTRIES = 2**28  # of gradients that are computed
_FEWER_ENTRIES = 2**24  # where no price depends on them
_FLOOR = 0.1  # of the natural unit, which constraints with a multiplier of 0 cost


def prices(multiplier, squares) -> np.ndarray:
    r"""$\max(2\lambda^*_i, \frac1{10}u_i)$ with the natural unit $u_i$, the ratio of two root mean squares over rounds.

    $u_i = \mathrm{rms}_t|\nabla f_t(x^*)| \,/\, \mathrm{rms}_t|\nabla g_{ti}(x^*)|$, of the gradients' tangent parts;
    0 where the constraint has no gradient. Where it counts movement, whose gradient at rest is 0, its steepest mean
    slope along a move to $x^*$ from either of two vertices counts, if that is more.

    `squares` is what `gradient_squares` returns. A multiplier for each round, (T, m), gives a price for each round.
    """
    loss_square, constraint_squares = (_mean(np.asarray(part, np.float64)) for part in squares)
    units = np.sqrt(
        np.divide(loss_square, constraint_squares, out=np.zeros_like(constraint_squares), where=constraint_squares > 0)
    )
    return np.maximum(_OVER * np.asarray(multiplier, np.float64), _FLOOR * units)


def gradient_squares(problem, rounds, x, axis=None) -> tuple[np.ndarray, np.ndarray]:
    """Squared lengths of the tangent parts of the gradients at x: of the loss (T,), of the constraints (T, m).

    `axis` is 0 where x is a path. They are 0 where no gradient can be had: of factored decisions, and of functions
    that JAX cannot differentiate. Where all gradients together would have more than 2^28 entries, only evenly spaced
    rounds count, and those of the others are NaN.
    """
    if problem.constraints == 0:
        return _none(problem, rounds)
    return _sampled(problem, rounds, x, axis, None)[0]


def gradient_sizes(problem, rounds, x, weights) -> tuple[tuple[np.ndarray, np.ndarray], Any]:
    r"""The squares, and $\sum_t w_{t0}|\nabla f_t(x)| + \sum_i w_{ti}|\nabla g_{ti}(x)|$, entry by entry.

    Without constraints, rounds are chosen from 2^24 entries on.
    """
    return _sampled(problem, rounds, x, None, weights)


def _sampled(problem, rounds, x, axis, weights):
    """Of evenly spaced rounds, where there are too many entries."""
    squares, like = _none(problem, rounds), problem.domain.start()
    count = len(squares[0])
    nothing = jax.tree.map(lambda leaf: np.zeros(leaf.shape), like)
    if tree.has_element(like):
        return squares, nothing
    entries = count * tree.size(like) * (1 + problem.constraints)
    every = -(-entries // (_MOST_ENTRIES if problem.constraints else _FEWER_ENTRIES))
    if every > 1:
        rounds, weights, path = jax.tree.map(lambda leaf: leaf[::every], (rounds, weights, x if axis == 0 else None))
        x = path if axis == 0 else x
    try:
        sizes, found = _squares(problem, rounds, x, axis, weights)
    except ProblemError:
        return squares, nothing
    for all_rounds, chosen in zip(squares, found):
        all_rounds[:] = np.nan
        all_rounds[::every] = np.asarray(chosen)
    return squares, jax.tree.map(lambda leaf: count / len(found[0]) * np.asarray(leaf), sizes)


def _none(problem, rounds):
    count = len(jax.tree.leaves(rounds)[0])
    return np.zeros(count), np.zeros((count, problem.constraints))


@eqx.filter_jit
def _squares(problem, rounds, x, axis, weights):
    """(Sizes with these weights, squares); one round at a time: the gradients of all would not fit into memory."""

    def square(gradient):
        return tree.norm(problem.domain.tangent(gradient)) ** 2

    ends = _ends(problem, rounds, x, axis) if problem.has_movement else ()

    def moving(point, revealed, end):
        rise, length = problem.movement(point, revealed, end)[1], tree.norm(tree.sub(point, end))
        return tree.ratio(rise, length) ** 2

    def one(sizes, inputs):
        revealed, of_path, charges = inputs
        point = x if axis is None else of_path
        loss_gradient, gradients = problem.gradients(point, revealed)
        squares = jax.vmap(square)(gradients)
        for end in ends:
            squares = jnp.maximum(squares, moving(point, revealed, end))
        if charges is not None:
            of_all = jax.tree.map(lambda leaf: tree.finite(jnp.abs(leaf)), (loss_gradient, gradients))
            sizes = tree.add(sizes, tree.add(tree.scale(charges[0], of_all[0]), tree.combine(charges[1:], of_all[1])))
        return sizes, (square(loss_gradient), squares)

    zero = tree.zeros_like(x if axis is None else _first(x))
    return jax.lax.scan(one, zero, (rounds, None if axis is None else x, weights))


def _ends(problem, rounds, x, axis):
    """Two decisions, far apart in the direction of the first loss."""
    x, round = (x, _first(rounds)) if axis is None else _first((x, rounds))
    down = problem.gradients(x, round)[0]
    return [problem.domain.lmo(direction).dense() for direction in (down, tree.scale(-1, down))]


def _first(rows):
    return jax.tree.map(lambda leaf: leaf[0], rows)


def _mean(squares):
    """Over rounds, without those whose gradient is not finite (a pole at the boundary, or it was not computed)."""
    finite = np.isfinite(squares)
    return np.where(finite, squares, 0).sum(0) / np.maximum(finite.sum(0), 1)
