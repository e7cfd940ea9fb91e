"""The outcome of a round as journals store it: numbers, whose order only this file knows, and remarks."""

import struct
from typing import Any, NamedTuple

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


class Remarks(NamedTuple):
    """What a session keeps of a round beside its numbers, if it was asked to."""

    label: str | None = None  # of the user's
    decision: bytes | None = None
    played: bytes | None = None  # if that was another point


_END = (
    b"note"  # numbers never end like this: as the end of a float64 it is at least 1e180, and they end with a checksum
)
_LENGTHS = struct.Struct("<iii")  # -1 for what is not there
LONGEST_REMARKS = 1 << 10  # bytes beside those of the two points


def remarked(numbers: bytes, remarks: Remarks) -> bytes:
    """Numbers with remarks behind them."""
    label = None if remarks.label is None else remarks.label.encode()
    parts = label, remarks.decision, remarks.played
    if parts == (None, None, None):
        return numbers
    lengths = [-1 if part is None else len(part) for part in parts]
    return b"".join([numbers, *(part for part in parts if part is not None), _LENGTHS.pack(*lengths), _END])


def split(data: bytes) -> tuple[np.ndarray, Remarks]:
    """The inverse of `remarked`; ValueError if it is not what that gives."""
    if not data.endswith(_END):
        return np.frombuffer(data), Remarks()
    at = len(data) - len(_END) - _LENGTHS.size
    if at < 0:
        raise ValueError("too short")
    parts: list[bytes | None] = []
    for length in reversed(_LENGTHS.unpack_from(data, at)):
        if not -1 <= length <= at:
            raise ValueError("a wrong length")
        parts.append(None if length < 0 else data[at - length : at])
        at -= max(length, 0)
    played, decision, label = parts
    return np.frombuffer(data[:at]), Remarks(None if label is None else label.decode(), decision, played)
