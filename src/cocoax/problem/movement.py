"""Losses and constraints that depend on the decision of the round before."""

import jax
import jax.numpy as jnp

from ..domains.matrices.view import View
from ..errors import ProblemError
from .functions import WithPrevious

_ULPS = 16
_SMALL = 2.0**-10  # of the largest entry: smaller entries are shifted as if they were so large


def arguments(function, view, round, previous) -> tuple:
    """What a loss or constraint is called with."""
    if not isinstance(function, WithPrevious):
        return view, round
    if isinstance(view, View):
        raise ProblemError("a factored matrix knows no movement; write loss and constraint without previous")
    return view, round, previous


def nearby(x):
    """A constant c that is not 0 in any entry, although x + c is x but for a few roundings.

    At previous = x a cost of movement may have a kink, where JAX's derivative is not finite (`jnp.linalg.norm`). At
    previous = x + c it has none, and if both move together, what it pays does not change.
    """

    def shift(leaf):
        size = jnp.abs(leaf)
        largest = size.max(initial=0)
        least = _SMALL * jnp.where(largest > 0, largest, 1)
        return _ULPS * jnp.finfo(leaf.dtype).eps * jnp.maximum(size, least)

    return jax.lax.stop_gradient(jax.tree.map(shift, x))


def decisions_before(path):
    """For a path of decisions (leading axis), the one before each; before the first, itself."""
    return jax.tree.map(lambda leaf: jnp.concatenate([leaf[:1], leaf[:-1]]), path)
