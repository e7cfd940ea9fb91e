"""Derivatives of losses and constraints of factored matrices, alone or in a tree with arrays.

They are taken with respect to what a function measures of each matrix, and carried back by the adjoints.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from ...core import traces, tree
from ...errors import ProblemError
from .view import Tape, View, element_of, is_view


def pulled_back(function, x: Any) -> tuple[Any, Any]:
    """The values at x, a tree of views and arrays, and the function that maps weights of them to the gradient of the
    weighted sum."""
    values, vjp, measurements = jax.vjp(_of_taps(function, x), *_zero_taps(function, x), has_aux=True)

    def pull_back(weights):
        return _gradient(x, measurements, *vjp(weights))

    return values, pull_back


def curvature(function, x: Any, weights):
    """Products with the Hessian of the weighted sum of values at x, as a function of the direction."""

    def pulled(moved, taps):
        _, vjp, measurements = jax.vjp(_of_taps(function, x), moved, taps, has_aux=True)
        return vjp(weights), measurements

    _, push, measurements = jax.linearize(pulled, *_zero_taps(function, x), has_aux=True)

    def product(direction: Any) -> Any:
        views = jax.tree.leaves(x, is_leaf=is_view)
        parts = jax.tree.leaves(direction, is_leaf=tree.is_element)
        moved = [part.entries() if is_view(view) else part for view, part in zip(views, parts)]
        taps = [
            [measurement.of(View(part, view.pattern)) for measurement in of_view]
            for view, part, of_view in zip(views, parts, measurements)
        ]
        return _gradient(x, measurements, *tree.finite(push(moved, taps)))

    return product


def _of_taps(function, x: Any):
    """The function of what is added to entries and arrays (`moved`) and to every other measurement, node by node."""
    nodes, structure = jax.tree.flatten(x, is_leaf=is_view)

    def with_taps(moved, taps):
        tapes = [Tape(of_node) for of_node in taps]
        parts = [
            View(node.point, node.pattern, entries, tape) if is_view(node) else node + entries
            for node, entries, tape in zip(nodes, moved, tapes)
        ]
        return function(jax.tree.unflatten(structure, parts)), [tape.measurements for tape in tapes]

    return with_taps


def _zero_taps(function, x: Any):
    """Zeros for all that a function measures at x: entries and arrays, and every other measurement."""
    nodes, structure = jax.tree.flatten(x, is_leaf=is_view)

    def measured():
        tapes = [Tape() for _ in nodes]
        parts = [
            View(node.point, node.pattern, None, tape) if is_view(node) else node for node, tape in zip(nodes, tapes)
        ]
        function(jax.tree.unflatten(structure, parts))
        return [tape.values for tape in tapes]

    trial, values = jax.make_jaxpr(measured, return_shape=True)()
    own = {each for equation in trial.eqns for each in equation.outvars}
    if not all(isinstance(each, Literal) or each in own for each in trial.jaxpr.outvars):
        # some value was not computed by the function's own equations, but by those of a function inside it
        raise ProblemError(
            "inside jit, vmap, scan and cond a loss or a constraint can have x.entries() only; take x.inner and "
            "products with x outside of them"
        )
    moved = [jnp.zeros(node.point.count, node.dtype) if is_view(node) else jnp.zeros_like(node) for node in nodes]
    taps = jax.tree.map(lambda value: jnp.zeros(value.shape, value.dtype), values)
    measured_then = jax.make_jaxpr(lambda *taps: _of_taps(function, x)(*taps)[1])(moved, taps)
    if any(traces.depends(measured_then, [True] * len(measured_then.in_avals))):
        raise ProblemError("a loss or a constraint may multiply x with data only, not with what it has of x already")
    return moved, taps


def _gradient(x: Any, measurements, moved, taps) -> Any:
    """By the adjoints of what was measured of each node."""
    nodes, structure = jax.tree.flatten(x, is_leaf=is_view)
    parts = [
        element_of(node, [measurement.adjoint(tap) for measurement, tap in zip(of_node, of_taps)], entries)
        if is_view(node)
        else entries
        for node, of_node, of_taps, entries in zip(nodes, measurements, taps, moved)
    ]
    return jax.tree.unflatten(structure, parts)
