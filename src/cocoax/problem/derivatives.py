"""Derivatives of users' functions: JAX's, or the users' own, with errors in one sentence."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..core import tree
from ..domains.matrices import view_derivatives as factored
from ..domains.matrices.view import has_view
from ..errors import CocoaxError, ProblemError
from .functions import as_array, call


def gradient(function, x) -> Any:
    """The gradient of a scalar function at x."""
    if has_view(x):
        value, pull_back = pulled_back(function, x)
        return pull_back(jnp.ones_like(value))
    with _differentiable(function, x):
        return jax.grad(function)(x)


def jacobian(function, x) -> Any:
    """The gradients of a function's m values at x, along a leading axis of m."""
    if has_view(x):
        values, pull_back = pulled_back(function, x)
        return jax.vmap(pull_back)(jnp.eye(values.size, dtype=values.dtype))
    with _differentiable(function, x):
        return jax.jacrev(function)(x)


def pulled_back(function, x) -> tuple[Any, Any]:
    """(values at x, pull_back), where `pull_back(w)` is the gradient of <w, values> at x."""
    with _differentiable(function, x):
        if has_view(x):
            return factored.pulled_back(function, x)
        values, vjp = jax.vjp(function, x)

    def pull_back(weights):
        with _differentiable(function, x):
            return vjp(weights)[0]

    return values, pull_back


def user_gradient(function, name, x, round, several: int | None = None) -> Any:
    """The gradient at x by the user's own function `loss_grad` or `constraint_grad`, with its shape checked.

    With `several` constraints there is a leading axis of that length, which the user may omit if it is 1.
    """
    if tree.has_element(x):
        raise ProblemError(f"{name}= is not for factored decisions; leave it out, and JAX takes the gradients")
    like = "like the decision" + ("" if several is None else f", with a leading axis of {several}")

    def checked(point, leaf):
        """One leaf of the user's gradient, checked to have the shape of the decision's leaf."""
        array = as_array(leaf, f"{name} must return numbers {like}")
        if jnp.iscomplexobj(array):
            raise ProblemError(f"{name} must return real numbers, got complex ones")
        if several == 1 and array.shape == point.shape:
            array = array[None]
        wanted = point.shape if several is None else (several, *point.shape)
        if array.shape != wanted:
            whose = "decision's " if several is None else ""
            raise ProblemError(f"{name} must return the {whose}shape {wanted}, got {array.shape}")
        return array.astype(tree.dtype(x))

    answer = call(function, name, x, round)
    try:
        return jax.tree.map(checked, x, answer)
    except CocoaxError:
        raise
    except (TypeError, ValueError):
        wanted, returned = jax.tree.structure(x), jax.tree.structure(answer)
        raise ProblemError(f"{name} must return a tree like the decision, {wanted}, got {returned}") from None


_MIXED = (
    "the loss or the constraint uses a NumPy array of float64, which JAX mixes with float32; make it "
    "jnp.asarray(array) outside of the function"
)


def anew_if_mixed(function: Callable) -> Callable:
    """Decorator: if the call fails because JAX mixed precisions, clear JAX's caches and call once more.

    JAX 0.10 confuses float64 NumPy arrays that a function closes over, when it was compiled both in float32 (by `play`)
    and in float64 (by `hindsight`).
    """

    @functools.wraps(function)
    def call(*arguments, **options):
        try:
            return function(*arguments, **options)
        except ValueError as caught:
            if not ("verifier errors" in str(caught) and "f32>" in str(caught) and "f64>" in str(caught)):
                raise
        jax.clear_caches()
        return function(*arguments, **options)

    return call


@contextlib.contextmanager
def _differentiable(function, x):
    """Context for derivatives of a function at x: what JAX cannot differentiate raises a `ProblemError`."""
    try:
        yield
    except CocoaxError:
        raise
    except (TypeError, ValueError, NotImplementedError) as caught:
        jax.eval_shape(function, x)  # raises errors that are not about derivatives
        reason = str(caught).partition("\n")[0].rstrip(". ")
        if "float64" in reason and "float32" in reason:
            raise ProblemError(_MIXED) from caught
        raise ProblemError(
            f"JAX cannot differentiate the loss or the constraint ({reason}); write it otherwise, or give loss_grad= "
            "and constraint_grad="
        ) from caught
