"""Golub-Kahan steps for small matrices on a GPU: every matrix is read once and stays in registers."""

import functools
import operator

import jax
import jax.numpy as jnp

from .large import on_single_gpu

_LARGEST = 64  # rows and columns
_MOST = 8  # steps, which are written out
_SMALLEST = 16  # that a program has room for
_WARPS = 2


def pays(matrix, steps: int) -> bool:
    """Whether this is a small matrix on the only GPU. Several would gather a batch."""
    return matrix.dtype == jnp.float32 and max(matrix.shape) <= _LARGEST and steps <= _MOST and on_single_gpu()


@functools.partial(jax.jit, static_argnames=("steps", "interpret"))
def golub_kahan(matrix, first, *, steps, interpret=False):
    """(u, v, whether the matrix is 0): unit vectors after `steps` Golub-Kahan steps from v = `first`.

    One program has the whole matrix. The same as `krylov.golub_kahan` with `scaled_products`, but much faster.
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    kernel = functools.partial(_golub_kahan_kernel, steps=min(steps, len(matrix)))
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in (matrix.shape[:1], matrix.shape[1:], ())]
    how = triton.CompilerParams(num_warps=_WARPS)
    left, right, largest = pl.pallas_call(kernel, shapes, compiler_params=how, interpret=interpret)(matrix, first)
    return left, right, largest <= jnp.finfo(jnp.float32).tiny


def _golub_kahan_kernel(matrix, first, left, right, largest, *, steps):
    """Kernel of `golub_kahan`: one program has the whole matrix in registers."""
    from jax.experimental.pallas import triton

    (m, n), (rows, columns) = matrix.shape, map(_places, matrix.shape)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    entries = triton.load(matrix.at[rows[:, None], columns[None, :]], mask=inside, other=0.0)
    x = triton.load(first.at[columns], mask=columns < n, other=0.0)
    top = jnp.max(jnp.abs(entries))
    short = jnp.where(top > 1, jnp.float32(2.0**-64), jnp.float32(1))  # so that 1 / top does not underflow
    entries = (short * entries) / jnp.where(top > 0, short * top, 1)

    def forward(x):
        return jnp.sum(entries * x[None, :], axis=1)

    def backward(x):
        return jnp.sum(entries * x[:, None], axis=0)

    image = forward(x)
    highest = jnp.max(jnp.abs(image))
    largest[...] = top * (highest * (0.5 / max(m, n) ** 0.5)) + 0 * jnp.sum(image)  # a maximum ignores NaN, no sum does
    lefts = [_unit(image / jnp.where(highest > 0, highest, 1))]
    images = [backward(lefts[0])]
    for _ in range(1, steps):
        lefts.append(_new_direction(forward(_unit(images[-1])), lefts))
        images.append(backward(lefts[-1]))
    weights = _perron([[jnp.sum(a * b) for b in images] for a in images])
    triton.store(left.at[rows], _unit(_sum(weights, lefts)), mask=rows < m)
    triton.store(right.at[columns], _unit(_sum(weights, images)), mask=columns < n)


def _places(size):
    """Indices from 0 to the next power of two, which is what programs need."""
    return jnp.arange(max(_SMALLEST, 1 << (size - 1).bit_length()), dtype=jnp.int32)


def _unit(x):
    length = _length(x)
    return x / jnp.where(length > 0, length, 1)


def _length(x):
    return jnp.sqrt(jnp.sum(x * x))


def _sum(weights, vectors):
    return functools.reduce(operator.add, [weight * vector for weight, vector in zip(weights, vectors)])


def _new_direction(x, basis):
    """The unit vector of x's part orthogonal to the basis; 0 if only rounding error is left (as in `krylov`)."""
    rest = x
    for _ in range(2):
        rest = rest - _sum([jnp.sum(vector * rest) for vector in basis], basis)
    is_new = _length(rest) > 10 * jnp.finfo(jnp.float32).eps * _length(x)
    return jnp.where(is_new, _unit(rest), 0)


def _perron(matrix):
    """A multiple of the top eigenvector of a nonnegative definite matrix, given as lists of numbers, by repeated
    squaring.
    """
    some = range(len(matrix))

    def square(_, rows):
        trace = functools.reduce(operator.add, [rows[i][i] for i in some])
        factor = 1 / jnp.where(trace > 0, trace, 1)
        rows = [[factor * entry for entry in row] for row in rows]
        upper = {(i, j): _sum(rows[i], rows[j]) for i in some for j in some if i <= j}
        return [[upper[min(i, j), max(i, j)] for j in some] for i in some]

    rows = jax.lax.fori_loop(0, 16, square, matrix)
    return [functools.reduce(operator.add, row) for row in rows]
