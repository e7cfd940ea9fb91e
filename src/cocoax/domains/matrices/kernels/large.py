"""Kernels for large matrices on a GPU: one pass over memory where XLA makes several. Sizes are tuned on an H200."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

_PAYS = 1 << 23  # entries; smaller matrices stay in caches
_WIDEST = 1 << 14  # columns; longer rows do not stay in registers
_WARPS = 4
_NEIGHBOURS = 4  # columns that a thread reads together
_WIDTH = 32 * _WARPS * _NEIGHBOURS  # columns that a program reads together; narrower matrices waste its threads
_AHEAD = 4  # rows that it reads before it uses them


def pays(matrix, *others) -> bool:
    """Whether the kernels here are faster: a large float32 matrix on the only GPU, and all `others` in float32.

    Several GPUs would gather the matrix.
    """
    return (
        all(isinstance(array, jax.Array) and array.dtype == jnp.float32 for array in (matrix, *others))
        and matrix.ndim == 2
        and _WIDTH <= matrix.shape[1] <= _WIDEST
        and _PAYS <= matrix.size < 1 << 31
        and on_single_gpu()
    )


def on_single_gpu() -> bool:
    return jax.default_backend() == "gpu" and jax.device_count() == 1


@functools.cache
def chosen(kernel: Callable, formula: Callable, in_batches: bool = False) -> Callable:
    """A function that calls `kernel` on a GPU, and the equal `formula` elsewhere and in derivatives.

    In batches it also calls the formula, unless the kernel is made for them (`in_batches`). Each pair has one function,
    so that JAX reuses what it has traced and compiled for it.
    """

    @jax.jit
    def exact(*arguments):  # whenever it is traced
        with jax.default_matmul_precision("highest"):
            return formula(*arguments)

    def either(*arguments):
        return jax.lax.platform_dependent(*arguments, cuda=lambda *x: kernel(*x), default=exact)

    alone = custom_vmap(either)

    @jax.custom_jvp
    def call(*arguments):
        return either(*arguments) if in_batches else alone(*arguments)

    @alone.def_vmap
    def _(_, batched, *arguments):
        axes = jax.tree.map(lambda is_batched: 0 if is_batched else None, tuple(batched))
        made = jax.vmap(exact, axes)(*arguments)
        return made, jax.tree.map(lambda _: True, made)

    @call.defjvp
    def _(arguments, tangents):
        return jax.jvp(exact, arguments, tangents)

    return call


def both(matrix: Float[Array, "m n"], x: Float[Array, " n"], largest=None, *, interpret=False):
    """(C x, C^T C x, largest), for C a multiple of the matrix over `largest`; by default such that |C x|_inf = 1.

    Nothing overflows: each row's product with x weighs the row relative to the largest product so far, and x is scaled
    down.
    """
    (m, n), programs, warps = matrix.shape, min(264, len(matrix)), 8
    short = 0.1 / max(m, n) ** 0.5
    kernel = functools.partial(_both_kernel, width=32 * warps * _NEIGHBOURS)
    call = _call(kernel, [(m,), (programs, n), (programs,)], (programs,), interpret, warps)
    images, means, tops = call(matrix, short * x)
    largest = jnp.max(tops) if largest is None else largest
    scale = _divisor(largest)
    return images / scale, jnp.sum((m * short * (tops / scale))[:, None] * (means / scale), axis=0), largest


def _both_kernel(matrix, x, images, means, tops, *, width):
    """Kernel of `both`, run by many programs, each on some rows C_i of the matrix.

    A program writes the products <C_i, x> to `images`, the mean of its rows weighted by these products to `means`, and
    the largest product, by which these weights are divided, to `tops`.
    """
    m, n = matrix.shape
    here, start, stop = _own_rows(0, m)
    parts = [_Part(first, width, n) for first in range(0, n, width)]
    xs = [_read(x, part) for part in parts]

    def step(row, state):
        means, top = state
        entries = [_read(matrix, part, row) for part in parts]
        image = jnp.sum(sum(a * b for a, b in zip(entries, xs)))
        images[row] = image
        higher = jnp.where(image == image, jnp.maximum(top, jnp.abs(image)), image)  # maximum ignores NaN
        weight, rest = image / _divisor(higher) / m, top / _divisor(higher)
        return [rest * a + weight * b for a, b in zip(means, entries)], higher

    zeros = [jnp.zeros(width, jnp.float32) for _ in parts]
    sums, tops[here] = jax.lax.fori_loop(start, stop, step, (zeros, jnp.float32(0)))
    for part, values in zip(parts, sums):
        _write(means, part, values, here)


def _divisor(largest):
    return jnp.where(largest > jnp.finfo(jnp.float32).tiny, largest, 1.0)


def products(one, other, lefts, rights, *, interpret=False):
    """(2 x 2 inner products of two matrices, 2 x k inner products with lefts_k rights_k^T)."""
    (m, n), k = one.shape, len(lefts)
    columns = -(-n // _WIDTH)
    grid = columns, min(max(528 // columns, 1), m)
    (sums,) = _call(_products_kernel, [(*grid, 3 + 2 * k)], grid, interpret)(one, other, lefts, rights)
    sums = jnp.sum(sums, axis=(0, 1))
    return sums[jnp.array([[0, 1], [1, 2]])], sums[3:].reshape(2, k)


def _products_kernel(one, other, lefts, rights, out):
    """Kernel of `products`, run by many programs: writes the sums over its own rows and columns to `out`."""
    from jax.experimental import pallas as pl

    (m, n), k, column = one.shape, len(lefts), pl.program_id(0)
    part = _Part(column * _WIDTH, _WIDTH, n, _NEIGHBOURS)
    here, start, stop = _own_rows(1, m)
    weights = [_read(rights, part, i) for i in range(k)]

    def add(row, a, b, totals):
        factors = [lefts[i, row] for i in range(k)]
        terms = [(1.0, x * y) for x, y in ((a, a), (a, b), (b, b))]
        terms += [(factor, x * weight) for x in (a, b) for factor, weight in zip(factors, weights)]
        return [total + factor * jnp.sum(term, axis=1) for total, (factor, term) in zip(totals, terms)]

    zeros = [jnp.zeros(_WIDTH // _NEIGHBOURS, jnp.float32) for _ in range(3 + 2 * k)]
    for i, total in enumerate(_over_rows(start, stop, one, other, part, add, zeros)):
        out[column, here, i] = jnp.sum(total)


def sums(one, other, vertices, weights, *, interpret=False):
    """w_0 one + w_1 other + sum_k w_{k+2} vertices_k, for each w in `weights`."""
    (m, n), count = one.shape, len(weights)
    grid = -(-n // _WIDTH), -(-m // 8)
    aliases = {i: i for i in range(min(count, 2))}  # so that a loop, which keeps them, needs no copies
    call = _call(_sums_kernel, [(m, n)] * count, grid, interpret, input_output_aliases=aliases)
    left = vertices.left * vertices.scale[:, None]
    return tuple(call(one, other, left, vertices.right, jnp.stack(weights).astype(one.dtype)))


def _sums_kernel(one, other, lefts, rights, weights, *outs):
    """Kernel of `sums`, run by many programs: writes its own rows and columns of every sum to `outs`."""
    from jax.experimental import pallas as pl

    (m, n), k = one.shape, len(lefts)
    part = _Part(pl.program_id(0) * _WIDTH, _WIDTH, n)
    _, start, stop = _own_rows(1, m)
    columns = [_read(rights, part, i) for i in range(k)]
    scalars = [[weights[j, i] for i in range(k + 2)] for j in range(len(outs))]

    def write(row, a, b, state):
        factors = [lefts[i, row] for i in range(k)]
        for out, (of_one, of_other, *others) in zip(outs, scalars):
            total = of_one * a + of_other * b
            for weight, factor, column in zip(others, factors, columns):
                total += (weight * factor) * column
            _write(out, part, total, row)
        return state

    _over_rows(start, stop, one, other, part, write, ())


class _Part:
    """The columns of a matrix from `start` on, `width` of them, with a mask for those outside the matrix.

    With `neighbours`, they are arranged in groups of that many.
    """

    def __init__(self, start, width, n, neighbours=None):
        if neighbours is None:
            self.places = start + jnp.arange(width, dtype=jnp.int32)
        else:
            firsts = start + neighbours * jnp.arange(width // neighbours, dtype=jnp.int32)
            self.places = firsts[:, None] + jnp.arange(neighbours, dtype=jnp.int32)[None, :]
        inside = n % width == 0 or (isinstance(start, int) and start + width <= n)
        self.mask = None if inside else self.places < n


def _read(ref, part, *row):
    from jax.experimental.pallas import triton

    return triton.load(ref.at[(*row, part.places)], mask=part.mask, other=None if part.mask is None else 0.0)


def _write(ref, part, values, *row):
    from jax.experimental.pallas import triton

    triton.store(ref.at[(*row, part.places)], values, mask=part.mask)


def _own_rows(axis, m):
    """(index, first row, end) of this program along an axis of the grid, for a matrix of m rows."""
    from jax.experimental import pallas as pl

    here, size = pl.program_id(axis), -(-m // pl.num_programs(axis))
    return here, here * size, jnp.minimum((here + 1) * size, m)


def _over_rows(start, stop, one, other, part, use, state):
    """The state after state = use(row, one[row, part], other[row, part], state) for all rows from `start` to `stop`.

    Rows are read ahead in groups.
    """

    def read(first):
        rows = [jnp.minimum(first + i, stop - 1) for i in range(_AHEAD)]
        return [(_read(one, part, row), _read(other, part, row)) for row in rows]

    def several(_, carry):
        first, entries, state = carry
        ahead = read(first + _AHEAD)
        for i, (a, b) in enumerate(entries):
            state = use(first + i, a, b, state)
        return first + _AHEAD, ahead, state

    def single(row, state):
        return use(row, _read(one, part, row), _read(other, part, row), state)

    groups = jax.lax.div(jnp.maximum(stop - start, 0), jnp.int32(_AHEAD))
    first, _, state = jax.lax.fori_loop(jnp.int32(0), groups, several, (start, read(start), state))
    return jax.lax.fori_loop(first, stop, single, state)


def _call(kernel, shapes, grid, interpret, warps=_WARPS, **options):
    """The compiled call of a Pallas kernel with float32 outputs of these shapes."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    how = triton.CompilerParams(num_warps=warps)
    return pl.pallas_call(kernel, shapes, grid=grid, compiler_params=how, interpret=interpret, **options)
