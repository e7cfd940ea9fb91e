"""Long sums without drift."""

import jax
import jax.numpy as jnp
import numpy as np

from . import tree


def running_sum(values, axis):
    """Cumulative sum: in float64 on the host where values are known, compensated (Kahan) where they are traced.

    >>> running_sum(np.full(3, 0.1, np.float32), -1).dtype
    dtype('float64')
    """
    if not tree.is_traced(values):
        return np.cumsum(np.asarray(values, np.float64), axis=axis)

    def add(carry, value):
        total, lost = carry
        value = value - lost
        new = total + value
        return (new, (new - total) - value), new

    first = jnp.moveaxis(values, axis, 0)
    zero = jnp.zeros_like(first[0])
    _, sums = jax.lax.scan(add, (zero, zero), first)
    return jnp.moveaxis(sums, 0, axis)
