"""Calls of users' functions, whose signatures, results and dtypes are checked; errors are one sentence."""

import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check, tree
from ..domains.matrices.view import misuse
from ..errors import CocoaxError, ProblemError


class WithPrevious(eqx.Module):
    """Marks a loss or constraint that takes a third argument, the decision of the previous round."""

    function: Callable

    def __call__(self, x, round, previous):
        return self.function(x, round, previous)


def function_of(function, name, *arguments, may_take: str | None = None) -> Any:
    """The user's function as a PyTree, checked to accept these arguments.

    Wrapped in `WithPrevious` if it needs one more, named `may_take`.
    """
    call = f"{name}({', '.join(arguments)})"
    if may_take is not None:
        call += f" or {name}({', '.join((*arguments, may_take))})"
    if not callable(function):
        raise ProblemError(f"{name} must be callable as {call}, got {check.described(function)}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # it has no signature
        return tree.as_pytree(function)
    try:
        signature.bind(*arguments)
    except TypeError as error:
        if may_take is None or not _binds(signature, *arguments, may_take):
            raise ProblemError(f"{name} must be callable as {call}, but {error}") from None
        return function if isinstance(function, WithPrevious) else WithPrevious(tree.as_pytree(function))
    if may_take in signature.parameters:
        raise ProblemError(f"{name} must be callable as {call}, but {may_take} has a default; leave that out")
    return tree.as_pytree(function)


def _binds(signature, *arguments) -> bool:
    """Whether a function of this signature can be called with these arguments."""
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def loss_value(function, x, *rest) -> Float[Array, ""]:
    """The value of a loss, in the decision's dtype."""
    loss = as_array(call(function, "loss", x, *rest), "loss(x, round) must return one number")
    if loss.shape != ():
        raise ProblemError(f"loss must return one number, got shape {loss.shape}; sum it")
    _check_real(loss, "loss")
    if loss.dtype == bool:
        raise ProblemError("loss returned true or false, which has no gradient; return a number that is to be small")
    return loss.astype(tree.dtype(x))


def constraint_values(function, name, names, x, *rest) -> Float[Array, " m"]:
    """All values of a constraint function, in the decision's dtype; a dict's values in the order of `names`."""
    values = _as_vector(call(function, name, x, *rest), name, names)
    _check_real(values, name)
    if values.dtype == bool:
        raise ProblemError(f"{name} returned true or false; return by how much a limit is exceeded, as used - limit")
    return values.astype(tree.dtype(x))


def _check_real(values, name):
    if jnp.issubdtype(values.dtype, jnp.complexfloating):
        raise ProblemError(f"{name} must return real numbers, got dtype {values.dtype}; take .real or jnp.abs of it")


def _as_vector(answer, name, names):
    """What a constraint function returned, as a vector of len(names) values; a number or a dict are converted."""
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
    """Call a user's function, turning common mistakes into a `ProblemError` of one sentence."""
    try:
        return function(*arguments)
    except check.NOT_TRACEABLE as error:
        raise ProblemError(check.not_traceable(name, f"write {name} with jax.numpy")) from error
    except KeyError as error:
        if (sentence := _missing_field(name, arguments, error)) is None:
            raise
        raise ProblemError(sentence) from error
    except CocoaxError:
        raise
    except (TypeError, AttributeError, ValueError) as error:
        sentence = misuse(name, arguments[0], error) or _wrong_shapes(name, arguments, error)
        sentence = sentence or _float_index(name, error)
        if sentence is None:
            raise
        raise ProblemError(sentence) from error


def _missing_field(name, arguments, error) -> str | None:
    """The message if the function reads a field that the round lacks; None for any other error."""
    fields = [list(part) for part in arguments[1:2] if isinstance(part, dict)]
    missing = error.args[0] if error.args else None
    if not fields or any(isinstance(part, dict) and missing in part for part in arguments):
        return None
    known = ", ".join(map(repr, fields[0]))
    return f"{name} reads the field {missing!r}, but a round has the fields {known}; add it, or correct its name"


def _wrong_shapes(name, arguments, error) -> str | None:
    """The message if the error is about array shapes; None for any other error."""
    reason = str(error).partition("\n")[0].rstrip(". ")
    if "shape" not in reason or len(arguments) < 2:
        return None
    x, round = (str(jax.tree.map(jnp.shape, part))[:200] for part in arguments[:2])
    return f"{name} fails where x has the shape {x} and a round {round} ({reason}); correct the rounds, or {name}"


def _float_index(name, error) -> str | None:
    """The message if the function indexes with floats; None for any other error."""
    if "Indexer must have integer" not in str(error):
        return None
    advice = "give an array, np.asarray(..., int), or write .astype(int)"
    return f"{name} takes entries at places that are floats, as all numbers in lists of rounds are; {advice}"


def as_array(answer, expected) -> Array:
    """What a user's function returned, as an array; `expected` begins the error message."""
    try:
        return jnp.asarray(answer)
    except (TypeError, ValueError):
        raise ProblemError(f"{expected}, got {check.described(answer)}") from None
