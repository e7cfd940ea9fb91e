"""Exact ceilings of rational powers of integers, which may be traced."""

import functools
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np

from .parameters import ceil_power as exact_ceil_power


def ceil_power(n, exponent: Fraction, capacity: int) -> Any:
    """The smallest integer k >= n**exponent, exactly, for a traced integer n <= capacity.

    >>> import jax
    >>> int(jax.jit(lambda n: ceil_power(n, Fraction(2, 3), 2000))(1001))
    101
    """
    return 1 + jnp.searchsorted(_last_with(exponent, capacity), n).astype(n.dtype)


@functools.lru_cache
def _last_with(exponent, capacity):
    """For k = 1, 2, ...: the largest n with n**exponent <= k."""
    p, q = exponent.numerator, exponent.denominator
    return np.array([_root(k**q, p) for k in range(1, exact_ceil_power(capacity, exponent))], np.int32)


def _root(number: int, order: int) -> int:
    """The integer part of number**(1/order)."""
    root = round(number ** (1 / order))
    while root**order > number:
        root -= 1
    while (root + 1) ** order <= number:
        root += 1
    return root
