"""The outcome of a round as one array of numbers, whose order only this file knows. Journals store it."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..core import tree
from ..learners.base import Outcome


def packed(outcome: Outcome, finite: Any, checksum: Array) -> Float[Array, " k"]:
    """The outcome with `finite` in place of its own, and a checksum of 32 bits, in two halves."""
    numbers = (
        outcome.loss,
        outcome.constraint,
        outcome.multiplier,
        outcome.lmo_calls,
        outcome.gradient_calls,
        finite,
        checksum >> 16,
        checksum & 0xFFFF,
    )
    dtype = tree.dtype([outcome.loss, jnp.zeros((), jnp.float32)])  # halves of the checksum need 16 bits
    return jnp.concatenate([jnp.ravel(number).astype(dtype) for number in numbers])


def width(constraints: int) -> int:
    """How many numbers `packed` gives."""
    return 6 + 2 * constraints


def unpacked(numbers: Any, constraints: int) -> Outcome:
    """One outcome, or several along leading axes, in NumPy; one has Python's numbers."""
    both = 1 + 2 * constraints
    calls = numbers[..., both : both + 2].astype(np.int64)
    scalars = numbers[..., 0], calls[..., 0], calls[..., 1], numbers[..., both + 2].astype(bool)
    loss, lmo_calls, gradient_calls, finite = (x.item() for x in scalars) if numbers.ndim == 1 else scalars
    values, multiplier = numbers[..., 1 : 1 + constraints], numbers[..., 1 + constraints : both]
    return Outcome(loss, values, multiplier, lmo_calls, gradient_calls, finite)
