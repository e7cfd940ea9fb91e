"""Checks of what users give to a domain, as decorators of its methods, and of points and directions."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.errors import ConcretizationTypeError, TracerArrayConversionError, TracerIntegerConversionError

from ..core import check, tree
from ..errors import DomainError


def of_points(name):
    """Decorator for the method with this name: it receives its point or direction validated."""
    is_direction = name in ("lmo", "support", "lowest", "tangent")
    what, may_be_infinite = "direction" if is_direction else "point", name == "contains"

    def wrap(method):
        @functools.wraps(method)
        def checked(self, point, *args, **options):
            return method(self, self.validate(point, what, may_be_infinite), *args, **options)

        return checked

    return wrap


def in_a_norm(method):
    """Decorator for `diameter`: checks the norm, and answers for the linf norm by `widest`."""

    @functools.wraps(method)
    def checked(self, ord):
        if not (isinstance(ord, int | float | np.number) and ord in (1, 2, math.inf)):
            raise DomainError(f"a diameter is asked in the l1, l2 or linf norm: ord must be 1, 2 or inf, got {ord!r}")
        return self.widest() if ord == math.inf else method(self, int(ord))

    return checked


def built(init):
    """Decorator for `__init__`: tracers where values are needed raise a `DomainError` of one sentence."""

    @functools.wraps(init)
    def checked(self, *args, **options):
        try:
            init(self, *args, **options)
        except (TracerArrayConversionError, ConcretizationTypeError, TracerIntegerConversionError):
            kind = type(self).__name__
            raise DomainError(f"{kind} must be built outside jit, grad and vmap, from numbers that are known") from None

    return checked


WRAPPERS = {name: of_points(name) for name in ("lmo", "support", "lowest", "tangent", "contains", "project")}
WRAPPERS |= {"diameter": in_a_norm, "__init__": built}


def checked_point(domain, point, what, may_be_infinite):
    """The user's point or direction as floating arrays of the domain's shape; errors call it `what`."""
    kind, shapes = type(domain).__name__, domain.shape
    point = check.listed(point) if tree.is_shape(shapes) else point
    leaves, structure = jax.tree.flatten(point)
    expected, needed = jax.tree.flatten(shapes, is_leaf=tree.is_shape)
    if structure != needed:
        raise DomainError(f"a {what} for this {kind} must have the structure {needed}, got {structure}")
    for leaf, shape in zip(leaves, expected):
        if not isinstance(leaf, jax.Array):
            check.real(leaf, f"a {what}", DomainError)
        if jnp.shape(leaf) != shape:
            raise DomainError(f"a {what} for this {kind} must have shape {shape}, got {jnp.shape(leaf)}")
        if jnp.iscomplexobj(leaf):
            raise DomainError(f"a {what} must be real, got complex numbers")
        if not (may_be_infinite or tree.is_traced(leaf) or np.isfinite(np.asarray(leaf)).all()):
            raise DomainError(f"a {what} must be finite, got NaN or infinity")
    return jax.tree.unflatten(structure, [jnp.asarray(leaf, floating(leaf)) for leaf in leaves])


def floating(x):
    """The dtype of x if it is a floating one, else the default."""
    dtype = jnp.result_type(x)
    return dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.result_type(float)
