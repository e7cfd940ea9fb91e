"""The view of a factored matrix that losses and constraints get.

They see it through linear measurements: entries on the pattern, bilinear forms, products with vectors.
"""

import functools
import operator
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import tree
from ...errors import DomainError, ProblemError
from .factors import Block, Factored, Pattern

_MOST_ENTRIES = 10**8


class Measurement(NamedTuple):
    """A measurement of x: `sum_k l_k x r_k`.

    If one side is None: all products of x with the rows l, or with the columns r.
    """

    left: Any
    right: Any

    def of(self, view: "View"):
        """The value of the measurement for this matrix."""
        if self.left is None:
            return view._times(self.right)
        if self.right is None:
            return view._transposed()._times(self.left)
        return view.point.dot(element_of(view, [self.adjoint(jnp.ones((), view.dtype))]))

    def adjoint(self, weight) -> Block:
        """The matrix whose inner product with x is <weight, measurement of x>."""
        left, right = (weight if each is None else each for each in self)
        share = jnp.ones((), left.dtype) if self.left is None or self.right is None else weight
        return Block.of(left, jnp.broadcast_to(share, len(left)), right)


class Tape:
    """The measurements that a function takes, in order; `taps`, to differentiate by, are added to their values."""

    def __init__(self, taps=None):
        self.taps, self.measurements, self.values = taps, [], []

    def record(self, measurement: Measurement, value):
        """Append a measurement, and return its value plus its tap."""
        place = len(self.measurements)
        self.measurements.append(measurement)
        self.values.append(value)
        return value if self.taps is None else value + self.taps[place]


class View(eqx.Module):
    r"""A factored matrix as losses and constraints see it, $x = \sum_k w_k\,l_k r_k^\top$ plus values on the pattern.

    `x.entries(index=None)`: the entries on the pattern, or some of them. `x.inner(left, right)`: $\sum_k l_k^\top
    x\,r_k$ for vectors, or for matrices with one vector per row. `x @ right`, `left @ x`: products with a vector or a
    matrix. `x.error`: the matrix's own. Outside losses there is also `x.dense()`, if that is not too large.
    """

    __array_ufunc__: ClassVar[None] = None  # NumPy leaves `vector @ x` to x

    point: Factored
    pattern: Pattern
    moved: Float[Array, " count"] | None = None  # added to the entries
    tape: Tape | None = eqx.field(static=True, default=None)

    @property
    def shape(self):
        return self.point.shape

    @property
    def dtype(self):
        return self.point.dtype

    @property
    def error(self):
        return self.point.error

    def entries(self, index=None) -> Float[Array, "..."]:
        """The entries on the pattern; with `index`, those at these places of it (NaN where there is no such place)."""
        index = index if index is None or isinstance(index, slice) else self._places(index)
        values = self.point.entries(index)
        if self.moved is not None:
            values = values + (self.moved if index is None else self.moved[index])
        if index is None or isinstance(index, slice):
            return values
        inside = (-self.point.count <= index) & (index < self.point.count)
        return jnp.where(inside, values, jnp.nan)  # a round that asks for others is refused as not finite

    def inner(self, left, right) -> Float[Array, ""]:
        """The sum of left_k^T x right_k over the rows of both, or over one vector each."""
        left, right = (self._vectors(each, size, axis) for each, size, axis in zip((left, right), self.shape, (0, 1)))
        if len(left) != len(right):
            raise ProblemError(
                f"x.inner needs as many vectors on the left as on the right, got {len(left)}, {len(right)}"
            )
        return self._measured(Measurement(left, right))

    def __matmul__(self, right):
        right = jnp.asarray(right, self.dtype)
        product = self._measured(Measurement(None, self._vectors(right.T, self.shape[1], 1)))
        return product[0] if right.ndim == 1 else product.T

    def __rmatmul__(self, left):
        left = jnp.asarray(left, self.dtype)
        product = self._measured(Measurement(self._vectors(left, self.shape[0], 0), None))
        return product[0] if left.ndim == 1 else product

    def dense(self) -> Float[Array, "m n"]:
        """The whole matrix as an array; not inside losses and constraints."""
        if self.tape is not None:
            raise ProblemError("a loss cannot have a factored matrix written down; take x.entries(), or x @ vector")
        if self.point.size > _MOST_ENTRIES:
            raise DomainError(
                f"a matrix of shape {self.shape} is too large to be written down; ask for its entries(), "
                "or for products with vectors"
            )
        left, weights, right = self.point.joined()
        with jax.default_matmul_precision("highest"):
            low = (weights[None] * left.T) @ right
        if self.point.values is None:
            return low
        return low.at[self.pattern.rows, self.pattern.columns].add(self.point.values)

    def _times(self, rows) -> Float[Array, "k m"]:
        """x r for each row r, computed one after the other."""
        left, weights, right = self.point.joined()
        values = self.point.values

        def times(row):
            with jax.default_matmul_precision("highest"):
                low = (weights * (right @ row)) @ left
            return low if values is None else low + self.pattern.times(values, row)

        return times(rows[0])[None] if len(rows) == 1 else jax.lax.map(times, rows)

    def _transposed(self) -> "View":
        x, (m, n) = self.point, self.shape
        blocks = tuple(Block(b.right, b.weights, b.left, b.factor, b.error) for b in x.blocks)
        return View(Factored(blocks, x.low, x.values, (n, m), x.count, x.rank), self.pattern.transposed())

    def _measured(self, measurement):
        value = measurement.of(self)
        return value if self.tape is None else self.tape.record(measurement, value)

    def _places(self, index):
        """The user's `index` as an array, checked to count places of the ball's `entries`."""
        count, traced = self.point.count, tree.is_traced(index)
        seen: Any = index if traced else np.asarray(index)
        if isinstance(index, tuple) or not jnp.issubdtype(seen.dtype, jnp.integer):
            raise ProblemError("x.entries(index) counts the places of the ball's entries=, not rows and columns")
        if not count:
            raise ProblemError("this ball was made without entries; give NuclearNormBall(entries=(rows, columns))")
        if not traced and not np.all((-count <= seen) & (seen < count)):
            raise ProblemError(f"x.entries(index) takes places from 0 to {count - 1}, as entries= has them")
        return jnp.asarray(index)

    def _vectors(self, given, size, axis):
        """The user's vectors as rows of an array, checked to have the matrix's `size` along `axis`."""
        given = jnp.atleast_2d(jnp.asarray(given, self.dtype))
        if given.ndim > 2 or given.shape[1] != size:
            where = ("rows", "columns")[axis]
            raise ProblemError(f"x has {size} {where}; give vectors of that length, got shape {given.shape}")
        return given


def is_view(node: Any) -> bool:
    return isinstance(node, View)


def has_view(x: Any) -> bool:
    """Whether x is a view of a factored matrix, or a tree that contains one."""
    return any(map(is_view, jax.tree.leaves(x, is_leaf=is_view)))


def misuse(name, x, error) -> str | None:
    """The message if a user's function treats a factored matrix as an array; None for any other error."""
    if not has_view(x) or "View" not in str(error):
        return None
    reason = str(error).partition("\n")[0].rstrip(". ")
    return (
        f"{name} sees a factored matrix, of which it can have x.entries(), x.inner(left, right), x @ vector and "
        f"vector @ x, but {type(error).__name__}: {reason}"
    )


def element_of(x: View, blocks, values=None) -> Factored:
    """A matrix of the same ball as x: the sum of the blocks, plus values on the pattern."""
    lows = [x.pattern.entries(block.left, block.weights, block.right) for block in blocks]
    low = functools.reduce(operator.add, lows) if lows else None
    return Factored(tuple(blocks), low, values, x.shape, x.point.count, x.point.rank)
