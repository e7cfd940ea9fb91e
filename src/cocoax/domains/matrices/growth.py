"""Growing factored balls: new entries, rows or columns, and carrying what was learned to the larger ball."""

from typing import Any

import jax
import jax.numpy as jnp

from ...errors import DomainError
from .factored import FactoredNuclearNormBall, FactoredRankOne
from .factors import Block, Factored


def grown(ball: FactoredNuclearNormBall, entries: Any, shape: Any = None) -> FactoredNuclearNormBall:
    """The ball with `entries` appended to its pattern, and with more rows and columns if `shape` says so."""
    sizes = ball.sizes if shape is None else tuple(shape)
    if len(sizes) != 2 or any(new < old for new, old in zip(sizes, ball.sizes)):
        raise DomainError(f"a ball of shape {ball.sizes} cannot become one of shape {sizes}; no size may shrink")
    rows, columns = (jnp.asarray(new, jnp.int32) for new in entries)
    together = jnp.concatenate([ball.pattern.rows, rows]), jnp.concatenate([ball.pattern.columns, columns])
    return FactoredNuclearNormBall(
        sizes, ball.radius, entries=together, rank=ball.rank, method=ball.method, iterations=ball.iterations
    )


def carried(state: Any, ball: FactoredNuclearNormBall) -> Any:
    """A decision or a learner's whole state, made for a smaller ball, as one for `ball`."""

    def is_matrix(node):
        return isinstance(node, Factored | FactoredRankOne)

    def moved(node):
        """One matrix or vertex of the state, or a batch of them, for the larger ball."""
        if not is_matrix(node):
            return node
        if isinstance(node, FactoredRankOne):
            return _batched(lambda vertex: _vertex(vertex, ball), node, node.left.ndim - 1)
        batches = [block.weights.ndim - 1 for block in node.blocks]
        batches += [part.ndim - 1 for part in (node.low, node.values) if part is not None]
        return _batched(lambda matrix: _matrix(matrix, ball), node, max(batches, default=0))

    return jax.tree.map(moved, state, is_leaf=is_matrix)


def _batched(function, node, axes):
    for _ in range(axes):
        function = jax.vmap(function)
    return function(node)


def _vertex(vertex: FactoredRankOne, ball) -> FactoredRankOne:
    """The vertex of a smaller ball, padded with zeros for the larger `ball`."""
    left, right = _padded(vertex.left, ball.sizes[0]), _padded(vertex.right, ball.sizes[1])
    low = ball.pattern.entries(left[None], jnp.ones(1, left.dtype), right[None])
    return FactoredRankOne(left, right, vertex.scale, low, vertex.rank)


def _matrix(x: Factored, ball) -> Factored:
    """The matrix x of a smaller ball, padded with zeros for the larger `ball`."""
    count = ball.pattern.rows.size
    blocks = tuple(
        Block(_padded(b.left, ball.sizes[0]), b.weights, _padded(b.right, ball.sizes[1]), b.factor, b.error)
        for b in x.blocks
    )
    new = Factored(blocks, None, None, ball.sizes, count, x.rank)
    low = None if x.low is None else ball.pattern.entries(*new.joined())
    values = None if x.values is None else _padded(x.values, count)
    return Factored(blocks, low, values, ball.sizes, count, x.rank)


def _padded(array, size):
    """The array, with zeros appended to its last axis."""
    return jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, size - array.shape[-1])])
