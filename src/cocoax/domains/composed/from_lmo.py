"""A domain made of a user's own LMO."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import check, host, tree
from ...core.facts import DomainFacts, with_facts
from ...errors import DomainError
from ..arguments import by_norm, number
from ..base import AbstractDomain, Point
from ..vertices import Dense


class FromLMO(AbstractDomain):
    """A domain known by its oracle; see `from_lmo`."""

    minimise: Callable
    first: Point
    diameters: dict[int, Float[Array, ""]]
    membership: Callable | None
    host: bool = eqx.field(static=True)

    @property
    def shape(self):
        return jax.tree.map(lambda leaf: leaf.shape, self.first)

    def lmo(self, direction, guess=None):
        if not self.host:
            try:
                return Dense(_fit(self.minimise(direction), direction, jnp.asarray))
            except check.NOT_TRACEABLE as error:
                raise DomainError(check.not_traceable("fn", "give from_lmo(host=True)")) from error
        direction = jax.lax.stop_gradient(direction)
        if not tree.is_traced(self.minimise, direction):
            return Dense(jax.tree.map(jnp.asarray, _call_host(self.minimise, direction)))
        answer = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), direction)
        point = host.callback(_call_host, answer, self.minimise, direction, vmap_method="sequential")
        return Dense(point)

    def vertex(self):
        return self.lmo(jax.tree.map(jnp.ones_like, self.first))

    def start(self):
        return self.first

    def diameter(self, ord):
        if ord not in self.diameters:
            raise DomainError(
                f"the l{ord} diameter of this domain is not known; give from_lmo(diameter={{{ord}: ...}})"
            )
        return self.diameters[ord]

    def contains(self, x, tol=1e-6):
        if self.membership is None:
            raise DomainError("an LMO alone cannot decide membership; give from_lmo(contains=...)")
        return self.membership(x, tol)


def _call_host(fn, direction):
    direction = jax.tree.map(np.asarray, direction)
    return _fit(fn(direction), direction, np.asarray)


@with_facts(DomainFacts("yours"))
def from_lmo(
    fn: Callable, *, start: Any, diameter: Any, host: bool = False, contains: Callable | None = None
) -> FromLMO:
    r"""The set X whose oracle is yours: `fn(direction)` attains $\min_{x\in X}\langle direction, x\rangle$.

    **Arguments:**

    - `fn`: from an array or PyTree like `start` to a point like it; a function, or a callable PyTree.
    - `start`: a point of the set; a list of numbers is an array.
    - `diameter`: the l2 diameter, or `{1: ..., 2: ...}` with what is known of the l1 and l2 ones.
    - `host`: whether `fn` is NumPy code. It is then called back from the compiled program, one direction at a
      time.
    - `contains`: `(x, tol) -> bool`. Without it, asking for membership is an error: no number of LMO calls
      decides it.

    >>> import numpy as np, jax.numpy as jnp
    >>> corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> def best_corner(direction):
    ...     return corners[np.argmin(corners @ direction)]
    >>> triangle = from_lmo(best_corner, start=corners[0], diameter=5**0.5, host=True)
    >>> triangle.lmo(jnp.array([-1.0, -1.0])).dense().tolist()
    [2.0, 0.0]
    """
    for function, name in ((fn, "fn"), (contains, "contains")):
        if not (callable(function) or (function is None and name == "contains")):
            raise DomainError(f"{name} must be callable, got {type(function).__name__}")
    first = jax.tree.map(lambda leaf: number(leaf, "start"), check.listed(start))
    if not tree.size(first):
        raise DomainError(f"start must be a point of the set, an array or a PyTree of arrays, got {start!r}")
    made = FromLMO(
        minimise=tree.as_pytree(fn),
        first=first,
        diameters=by_norm(diameter, "diameter"),
        membership=None if contains is None else tree.as_pytree(contains),
        host=bool(host),
    )
    _try_out(made)
    return made


def _try_out(domain):
    """Call the user's oracle once, so that one that fails raises here and not inside a compiled program."""
    ones = jax.tree.map(lambda leaf: np.ones(leaf.shape, leaf.dtype), domain.first)
    try:
        if not domain.host:
            jax.eval_shape(domain.lmo, ones)
            point = domain.lmo(ones).dense()
        elif not tree.is_traced(domain.minimise):
            point = _call_host(domain.minimise, ones)
        else:
            return
    except DomainError:
        raise
    except Exception as error:
        raise DomainError(f"fn fails for a direction of ones: {type(error).__name__}: {error}") from error
    if not tree.is_traced(point) and not tree.all_finite(point):
        raise DomainError("fn must return a finite point, got NaN or infinity for a direction of ones")


def _fit(point, direction, asarray):
    """The oracle's point in the direction's dtypes; raises `DomainError` unless it has the direction's shapes."""
    shape, expected = (jax.tree.map(jnp.shape, node) for node in (point, direction))
    if shape != expected:
        raise DomainError(f"fn must return a point of shape {expected}, like start, got {shape}")
    if any(jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(point)):
        raise DomainError("fn must return real numbers, got complex ones")
    return jax.tree.map(lambda leaf, like: asarray(leaf, dtype=like.dtype), point, direction)
