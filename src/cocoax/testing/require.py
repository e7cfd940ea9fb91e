"""How the contracts speak: one sentence for the rule that was broken."""

import jax
import jax.numpy as jnp
import numpy as np

from ..core import tree
from ..errors import DomainError


def require(promise, message):
    if not promise:
        raise AssertionError(message)


def require_same(x, y, message):
    """Require that x and y are equal, bit by bit."""
    require(same(x, y), message)


def require_close(x, y, tol, message):
    """Require that x and y are equal up to `tol`, absolute and relative."""
    for a, b in zip(_values(x), _values(y), strict=True):
        apart = np.abs(a - b).max(initial=0)
        require(a.shape == b.shape and apart <= tol * (1 + np.abs(b).max(initial=0)), f"{message}: off by {apart}")


def require_inside(domain, points, message):
    """Require that a stack of points lies in the domain, up to rounding."""
    tol = 1e-9 if tree.dtype(points) == jnp.float64 else 1e-4
    try:
        inside = np.asarray(jax.vmap(lambda point: domain.contains(point, tol))(points))
    except DomainError:  # a domain need not be able to tell
        inside = np.asarray(jax.vmap(tree.all_finite)(points))
    require(inside.all(), f"{message} {np.argmin(inside)} lies outside the domain")


def same(x, y) -> bool:
    """Whether two trees hold the same bits."""
    pairs = zip(_values(x), _values(y), strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def kinds(x):
    """The structure of a tree with its shapes and dtypes, for comparing."""
    leaves, structure = jax.tree.flatten(x)
    return structure, [(jnp.shape(leaf), leaf.dtype) for leaf in leaves]


def _values(x):
    return [np.asarray(_plain(leaf)) for leaf in jax.tree.leaves(x)]


def _plain(leaf):
    is_key = jnp.issubdtype(jnp.asarray(leaf).dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf
