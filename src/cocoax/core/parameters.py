"""Hyperparameters as arrays, so that changing them compiles nothing; checked where their values are known."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from ..errors import LearnerError
from . import check, tree


def argument(name) -> Any:
    """A field whose constructor argument has another name, for example because a method is called `name`."""
    return eqx.field(metadata={"argument": name})


def parameter(value, name, low, high, why=""):
    """A number in [low, high], as an array."""
    if not tree.is_traced(value) and not low <= check.scalar(value, name, LearnerError) <= float(high) * (1 + 1e-6):
        raise LearnerError(f"{name} must lie in [{low}, {high}]{why}, got {value}")
    return tree.as_floats(value)


def positive_parameter(value, name):
    """A positive, finite number, as an array."""
    if not tree.is_traced(value) and not 0 < check.scalar(value, name, LearnerError) < float("inf"):
        raise LearnerError(f"{name} must be positive and finite, got {value}")
    return tree.as_floats(value)


def optional_parameter(value, name):
    """A positive, finite number, or None where a theorem chooses it."""
    return None if value is None else positive_parameter(value, name)


def flag(value, name) -> bool:
    """A static bool."""
    return check.flag(value, name, LearnerError)


def rounds_remembered(memory):
    """The number of rounds that a discounted sum remembers; None for all of them."""
    if memory is None or (not tree.is_traced(memory) and check.scalar(memory, "memory", LearnerError) == float("inf")):
        return None
    if not tree.is_traced(memory) and not check.scalar(memory, "memory", LearnerError) > 1:
        raise LearnerError(f"memory must be more than 1 round, or None for all of them, got {memory}")
    return tree.as_floats(memory)


def discount(memory, dtype):
    """The factor of a discounted sum a round, 1 - 1/memory; 1 without a memory."""
    return jnp.ones((), dtype) if memory is None else (1 - 1 / jnp.maximum(memory, 1)).astype(dtype)
