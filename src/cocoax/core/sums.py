"""Long sums without drift."""

import jax
import jax.numpy as jnp
import numpy as np

from . import tree


def compensated_add(total, lost, value):
    """One step of Kahan's sum: (total + value, its rounding error), where `lost` is the error of `total`.

    >>> compensated_add(1e16, 0.0, 1.0)
    (1e+16, -1.0)
    """
    value = value - lost
    new = total + value
    return new, (new - total) - value


def exact_add(total, rest, value):
    """(total + value, the new rest): their sum is total + rest + value, as if in twice the digits (Knuth's two-sum).

    >>> exact_add(1e16, 0.0, 1.0), exact_add(1.0, 0.0, 1e16)
    ((1e+16, 1.0), (1e+16, 1.0))
    """
    new = total + value
    part = new - total
    return new, rest + ((total - (new - part)) + (value - part))


def as_rounded(value, count):
    """The value, which no compiler fuses with the sum that it is added to: a product and a sum in one operation are
    rounded once, in some programs and not in others. `count` is any integer >= 0, which only run time knows."""
    word = {2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint64}[value.dtype.itemsize]
    zero = (count.astype(jnp.int32) >> 31).astype(word)
    return jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(value, word) ^ zero, value.dtype)


def running_sum(values, axis):
    """Cumulative sum: in float64 on the host where values are known, compensated (Kahan) where they are traced.

    >>> running_sum(np.full(3, 0.1, np.float32), -1).dtype
    dtype('float64')
    """
    if not tree.is_traced(values):
        return np.cumsum(np.asarray(values, np.float64), axis=axis)

    def add(carry, value):
        total, lost = compensated_add(carry[0], carry[1], value)
        return (total, lost), total

    first = jnp.moveaxis(values, axis, 0)
    zero = jnp.zeros_like(first[0])
    _, sums = jax.lax.scan(add, (zero, zero), first)
    return jnp.moveaxis(sums, 0, axis)
