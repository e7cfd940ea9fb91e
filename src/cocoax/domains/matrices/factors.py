"""Matrices too large to be stored as arrays: a low-rank part, and values on a fixed pattern of entries."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...core import tree

_AT_ONCE = 8  # terms of a sum over the rank that share one pass over the entries


class Pattern(eqx.Module):
    """The places of the observed entries of a matrix, each once."""

    rows: Int[Array, " count"]
    columns: Int[Array, " count"]
    shape: tuple[int, int] = eqx.field(static=True)

    def entries(self, left, weights, right) -> Float[Array, " count"]:
        r"""The entries of $\sum_k w_k\,l_k r_k^\top$ at these places, without an array of size entries times rank."""

        def term(k, total):
            return total + self._taken(weights[k] * left[k], self.rows) * self._taken(right[k], self.columns)

        def terms(group, total):
            for k in range(_AT_ONCE):
                total = term(group * _AT_ONCE + k, total)
            return total

        groups, others = divmod(len(left), _AT_ONCE)
        total = jax.lax.fori_loop(0, groups, terms, jnp.zeros(self.rows.shape, left.dtype))
        for k in range(len(left) - others, len(left)):
            total = term(k, total)
        return total

    def times(self, values, vector) -> Float[Array, " m"]:
        """The matrix with these values on the pattern and 0 elsewhere, times a vector."""
        products = values * self._taken(vector, self.columns)
        return jnp.zeros(self.shape[0], values.dtype).at[self.rows].add(products, mode="promise_in_bounds")

    def transposed(self) -> "Pattern":
        m, n = self.shape
        return Pattern(self.columns, self.rows, (n, m))

    def _taken(self, vector, index):
        return vector.at[index].get(mode="promise_in_bounds")


class Block(eqx.Module):
    r"""factor $\cdot\sum_k w_k\,l_k r_k^\top$, where terms may have been dropped; `error` bounds their nuclear norm."""

    left: Float[Array, "rank m"]
    weights: Float[Array, " rank"]
    right: Float[Array, "rank n"]
    factor: Float[Array, ""]
    error: Float[Array, ""]

    @classmethod
    def of(cls, left, weights, right) -> "Block":
        return cls(left, weights, right, jnp.ones((), left.dtype), jnp.zeros((), left.dtype))

    def times(self, factor) -> "Block":
        return Block(self.left, self.weights, self.right, factor * self.factor, self.error)

    def plus(self, factor) -> "Block":
        return Block(self.left, self.weights, self.right, self.factor + factor, self.error)

    def is_like(self, other: "Block") -> bool:
        """Whether both have the same arrays, so that a sum of both is one block."""
        return all(getattr(self, name) is getattr(other, name) for name in ("left", "weights", "right", "error"))


class Factored(tree.AbstractElement):
    """A sum of blocks of low rank, plus `values` on the pattern of the domain that made it.

    Sums and multiples are exact: they only record which blocks are added. `cut` turns these into one block. A matrix
    always knows its entries on the pattern: `low` has those of its blocks. None stands for zeros.
    """

    blocks: tuple[Block, ...]
    low: Float[Array, " count"] | None
    values: Float[Array, " count"] | None
    shape: tuple[int, int] = eqx.field(static=True)
    count: int = eqx.field(static=True)  # of entries on the pattern
    rank: int = eqx.field(static=True)  # that is kept between rounds

    @property
    def error(self):
        """A bound on the nuclear norm of all terms that were dropped from this matrix."""
        return sum((jnp.abs(block.factor) * block.error for block in self.blocks), jnp.zeros((), self.dtype))

    @property
    def dtype(self):
        return tree.dtype(jax.tree.leaves(self))

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def is_like(self, other):
        return (self.shape, self.count, self.rank) == (other.shape, other.count, other.rank)

    def entries(self, index=None) -> Float[Array, "..."]:
        """The entries on the pattern; with `index`, those at these places of it."""
        parts = [
            part if index is None else jnp.asarray(part)[index] for part in (self.low, self.values) if part is not None
        ]
        zeros = jnp.zeros(self.count if index is None else jnp.shape(index), self.dtype)
        return functools.reduce(jnp.add, parts) if parts else zeros

    def __add__(self, other):
        """The sum; blocks with the same arrays are added by their factors."""
        blocks = list(self.blocks)
        for block in other.blocks:
            place = next((k for k, own in enumerate(blocks) if own.is_like(block)), None)
            if place is None:
                blocks.append(block)
            else:
                blocks[place] = blocks[place].plus(block.factor)
        low, values = _sum(self.low, other.low), _sum(self.values, other.values)
        return self._with(tuple(blocks), low, values)

    def __sub__(self, other):
        return self + other.scaled(-1)

    def scaled(self, factor):
        factor = jnp.asarray(factor, self.dtype)
        blocks = tuple(block.times(factor) for block in self.blocks)
        return self._with(blocks, _times(factor, self.low), _times(factor, self.values))

    def combined(self, weights):
        blocks = tuple(_concatenated(block, weights) for block in self.blocks)
        low, values = (None if part is None else weights @ part for part in (self.low, self.values))
        return self._with(blocks, low, values)

    def zeros(self):
        (m, n), dtype = self.shape, self.dtype
        block = Block.of(*(jnp.zeros(shape, dtype) for shape in ((self.rank, m), (self.rank,), (self.rank, n))))
        return self._with((block,), jnp.zeros(self.count, dtype), jnp.zeros(self.count, dtype))

    def dot(self, other):
        (left, weights, right), (left_too, weights_too, right_too) = self.joined(), other.joined()
        with jax.default_matmul_precision("highest"):
            products = (left @ left_too.T) * (right @ right_too.T)
            total = weights @ (products @ weights_too)
        if self.values is not None:
            total = total + jnp.vdot(self.values, other.entries())
        if self.low is not None and other.values is not None:
            total = total + jnp.vdot(self.low, other.values)
        return jnp.maximum(total, 0) if other is self else total

    def cut(self, pattern: Pattern) -> "tuple[Factored, Array]":
        """(matrix with one block of at most `rank` terms, nuclear norm of the dropped terms).

        The block is the nearest of that rank, by a singular value decomposition.
        """
        left, weights, right = self.joined()
        error, rank = self.error, self.rank
        if len(left) <= rank:
            kept, dropped, low = (left, weights, right), jnp.zeros((), self.dtype), self.low
        else:
            with jax.default_matmul_precision("highest"):
                (q, upper), (p, other) = jnp.linalg.qr(left.T), jnp.linalg.qr(right.T)
                inner, sizes, outer = jnp.linalg.svd((upper * weights[None]) @ other.T, full_matrices=False)
                kept = (q @ inner[:, :rank]).T, sizes[:rank], (p @ outer[:rank].T).T
            dropped, low = sizes[rank:].sum(), pattern.entries(*kept)
        left, weights, right = (_padded(each, rank) for each in kept)
        block = Block(left, weights, right, jnp.ones((), self.dtype), error + dropped)
        zeros = jnp.zeros(self.count, self.dtype)
        values = zeros if self.values is None else self.values
        return self._with((block,), zeros if low is None else low, values), dropped

    def joined(self):
        """(left, weights, right): the terms of all blocks."""
        (m, n), dtype = self.shape, self.dtype
        if not self.blocks:
            return tuple(jnp.zeros(shape, dtype) for shape in ((0, m), (0,), (0, n)))
        terms = [(block.left, block.factor * block.weights, block.right) for block in self.blocks]
        return tuple(jnp.concatenate(parts) for parts in zip(*terms))

    def _with(self, blocks, low, values):
        return Factored(blocks, low, values, self.shape, self.count, self.rank)


def _sum(one, other):
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _times(factor, part):
    return None if part is None else factor * part


def _concatenated(block: Block, factors) -> Block:
    """A batch of blocks as one, each multiplied by its factor."""
    factors = factors * block.factor
    batch, rank = block.weights.shape
    left, right = (each.reshape(batch * rank, each.shape[-1]) for each in (block.left, block.right))
    merged = Block.of(left, (factors[:, None] * block.weights).reshape(batch * rank), right)
    return eqx.tree_at(lambda b: b.error, merged, jnp.abs(factors) @ block.error)


def _padded(array, rank):
    return jnp.pad(array, [(0, rank - len(array)), *[(0, 0)] * (array.ndim - 1)])
