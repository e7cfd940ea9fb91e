"""Losses and constraints that depend on the decision of the round before."""

import jax
import jax.numpy as jnp

from ..domains.matrices.view import has_view
from ..errors import ProblemError
from .functions import WithPrevious

_ULPS = 16


def arguments(function, view, round, previous) -> tuple:
    """The arguments for a call of the loss or constraint: (x, round), and `previous` if it takes that."""
    if not isinstance(function, WithPrevious):
        return view, round
    if has_view(view):
        raise ProblemError("a factored matrix knows no movement; write loss and constraint without previous")
    return view, round, previous


def nearby(x):
    """A small constant c, different and nonzero in every entry: x + c differs from x by a few roundings only.

    A cost of movement may have a kink at previous = x, where JAX's derivative is not finite (`jnp.linalg.norm`). At
    previous = x + c there is none, and moving both does not change the cost.
    """

    def shift(leaf):
        kind = jnp.finfo(leaf.dtype)
        size = jnp.maximum(_ULPS * float(kind.eps) * jnp.abs(leaf), 8 * float(kind.tiny) ** 0.5)  # its square is not 0
        golden = jax.lax.iota(jnp.uint32, leaf.size) * jnp.uint32(0x9E3779B9)  # fractions of 2^32, well spread
        return size * (1 + golden.astype(leaf.dtype) * 2.0**-32).reshape(leaf.shape)

    return jax.lax.stop_gradient(jax.tree.map(shift, x))


def decisions_before(path):
    """For a path of decisions (leading axis): the one before each; for the first, itself."""
    return jax.tree.map(lambda leaf: jnp.concatenate([leaf[:1], leaf[:-1]]), path)
