"""Chooses the fastest Golub-Kahan steps: matrix products, the kernel for large matrices, or that for small ones."""

import functools

from ..krylov import MOST_AT_ONCE, golub_kahan, golub_kahan_at_once, scaled_products
from . import large, small


def improved(matrix, first, count):
    """(u, v, whether the matrix is 0), after `count` Golub-Kahan steps from the unit vector `first`.

    u and v are unit vectors, nearer to the top singular pair.
    """
    if small.pays(matrix, count):
        steps = _in_registers(count)
    elif count <= MOST_AT_ONCE and large.pays(matrix):
        steps = _at_once(count)
    else:
        steps = _by_products(count)
    return steps(matrix, first)


@functools.cache
def _by_products(count):
    """The function (matrix, first) -> (u, v, is zero) that makes `count` Golub-Kahan steps with matrix products."""

    def steps(matrix, first):
        forward, backward, zero = scaled_products(matrix, first)
        return *golub_kahan(forward, backward, first, count), zero

    return steps


@functools.cache
def _at_once(count):
    """The function (matrix, first) -> (u, v, is zero) that makes `count` Golub-Kahan steps on a large matrix.

    On a GPU each step is one pass over memory.
    """

    def steps(matrix, first):
        return golub_kahan_at_once(functools.partial(large.both, matrix), first, count)

    return large.chosen(steps, _by_products(count))


@functools.cache
def _in_registers(count):
    """The function (matrix, first) -> (u, v, is zero) that makes `count` Golub-Kahan steps on a small matrix.

    On a GPU the matrix stays in registers.
    """

    def steps(matrix, first):
        return small.golub_kahan(matrix, first, steps=count)

    return large.chosen(steps, _by_products(count), in_batches=True)
