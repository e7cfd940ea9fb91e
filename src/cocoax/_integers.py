"""Exact ceilings of rational powers, also of integers that are traced."""

from fractions import Fraction
from typing import Any

import jax.numpy as jnp

from . import theory


def ceil_power(n, exponent: Fraction) -> Any:
    """The smallest integer k with k >= n**exponent.

    Exact for Python integers. For traced ones, rounding decides between two neighbours and integer arithmetic
    corrects it: differences below 2**30 survive the wrap-around of int32.

    >>> ceil_power(1000, Fraction(2, 3)), ceil_power(1001, Fraction(2, 3))
    (100, 101)
    """
    if isinstance(n, int):
        return theory.ceil_power(n, exponent)
    p, q = exponent.numerator, exponent.denominator
    power = n.astype(float)
    k = jnp.round(power ** (p / q)).astype(n.dtype)
    rough = k.astype(float) ** q - power**p
    exact = k**q - n**p
    below = jnp.where(jnp.abs(rough) < 2.0**30, exact < 0, rough < 0)
    return k + below.astype(n.dtype)
