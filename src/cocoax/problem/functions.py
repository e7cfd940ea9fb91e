"""Users' functions of decisions: checked when they are given, and called with errors in one sentence."""

import inspect
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check, tree
from ..domains.matrices.view import measuring
from ..errors import ProblemError


def function_of(function, name, *arguments) -> Any:
    """A callable with these arguments, as a PyTree without function leaves."""
    call = f"{name}({', '.join(arguments)})"
    if not callable(function):
        raise ProblemError(f"{name} must be callable as {call}, got {check.described(function)}")
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise ProblemError(f"{name} must be callable as {call}, but {error}") from None
    except ValueError:  # no signature to be seen
        pass
    return tree.as_pytree(function)


def loss_value(function, x, round) -> Float[Array, ""]:
    loss = as_array(call(function, "loss", x, round), "loss(x, round) must return one number")
    if loss.shape != ():
        raise ProblemError(f"loss must return one number, got shape {loss.shape}; sum it")
    return loss


def constraint_values(function, name, names, *arguments) -> Float[Array, " m"]:
    """All values of a constraint function; those of a dict in the order of the names."""
    answer = call(function, name, *arguments)
    expected = f"{name} must return a number, a vector or a dict of numbers"
    if isinstance(answer, dict):
        if set(answer) != set(names):
            raise ProblemError(
                f"{name} returned the names {sorted(answer)}, but the problem expects {sorted(names)}; give "
                f"Problem(constraints={tuple(answer)})"
            )
        return jnp.stack([as_array(answer[name], expected) for name in names])
    values = as_array(answer, expected)
    values = values[None] if len(names) == 1 and values.shape == () else values
    if values.shape != (len(names),):
        found = f"shape {values.shape}" if values.shape else "1 value"
        raise ProblemError(
            f"{name} returned {found}, but the problem expects {len(names)} value(s); say how many with "
            "Problem(constraints=...)"
        )
    return values


def call(function, name, *arguments) -> Any:
    """What a user's function returns, unless it cannot be compiled."""
    with check.traceable(name, ProblemError, f"write {name} with jax.numpy"), measuring(name, arguments[0]):
        return function(*arguments)


def as_array(answer, expected) -> Array:
    """An answer as the numbers that it is."""
    try:
        return jnp.asarray(answer)
    except (TypeError, ValueError):
        raise ProblemError(f"{expected}, got {check.described(answer)}") from None
