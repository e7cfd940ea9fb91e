"""Calls of users' functions: signatures, results and dtypes are checked, with errors of one sentence."""

import inspect
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check, tree
from ..domains.matrices.view import misuse
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
    except ValueError:  # it has no signature
        pass
    return tree.as_pytree(function)


def loss_value(function, x, round) -> Float[Array, ""]:
    """The value of a loss, in the decision's dtype."""
    loss = as_array(call(function, "loss", x, round), "loss(x, round) must return one number")
    if loss.shape != ():
        raise ProblemError(f"loss must return one number, got shape {loss.shape}; sum it")
    return loss.astype(tree.dtype(x))


def constraint_values(function, name, names, x, *rest) -> Float[Array, " m"]:
    """All values of a constraint function, in the decision's dtype; those of a dict in the order of the names."""
    return _as_vector(call(function, name, x, *rest), name, names).astype(tree.dtype(x))


def _as_vector(answer, name, names):
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
        returned = f"shape {values.shape}" if values.shape else "1 value"
        raise ProblemError(
            f"{name} returned {returned}, but the problem expects {len(names)} value(s); say how many with "
            "Problem(constraints=...)"
        )
    return values


def call(function, name, *arguments) -> Any:
    """Call a user's function; its usual mistakes become errors of one sentence."""
    try:
        return function(*arguments)
    except check.NOT_TRACEABLE as error:
        raise ProblemError(check.not_traceable(name, f"write {name} with jax.numpy")) from error
    except (TypeError, AttributeError) as error:
        if (sentence := misuse(name, arguments[0], error)) is None:
            raise
        raise ProblemError(sentence) from error


def as_array(answer, expected) -> Array:
    """The answer of a user's function as an array."""
    try:
        return jnp.asarray(answer)
    except (TypeError, ValueError):
        raise ProblemError(f"{expected}, got {check.described(answer)}") from None
