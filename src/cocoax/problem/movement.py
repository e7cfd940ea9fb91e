"""Losses and constraints that depend on the decision of the round before."""

import jax
import jax.numpy as jnp

from ..domains.matrices.view import has_view
from ..errors import ProblemError
from .functions import WithPrevious

_ULPS = 16


def arguments(function, view, round, previous) -> tuple:
    """What a loss or constraint is called with."""
    if not isinstance(function, WithPrevious):
        return view, round
    if has_view(view):
        raise ProblemError("a factored matrix knows no movement; write loss and constraint without previous")
    return view, round, previous


def nearby(x):
    """A constant c with no two entries alike and none 0, although x + c is x but for a few roundings.

    At previous = x a cost of movement may have a kink, where JAX's derivative is not finite (`jnp.linalg.norm`). At
    previous = x + c it has none, and if both move together, what it pays does not change.
    """

    def shift(leaf):
        kind = jnp.finfo(leaf.dtype)
        size = jnp.maximum(_ULPS * float(kind.eps) * jnp.abs(leaf), 8 * float(kind.tiny) ** 0.5)  # its square is not 0
        golden = jax.lax.iota(jnp.uint32, leaf.size) * jnp.uint32(0x9E3779B9)  # fractions of 2^32, well spread
        return size * (1 + golden.astype(leaf.dtype) * 2.0**-32).reshape(leaf.shape)

    return jax.lax.stop_gradient(jax.tree.map(shift, x))


def decisions_before(path):
    """For a path of decisions (leading axis), the one before each; before the first, itself."""
    return jax.tree.map(lambda leaf: jnp.concatenate([leaf[:1], leaf[:-1]]), path)
