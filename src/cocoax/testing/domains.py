"""What every domain promises, as one function."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ..core import check, tree
from ..domains.base import AbstractDomain
from ..errors import DomainError
from .promises import measure


def check_domain(
    domain: AbstractDomain,
    *,
    key: PRNGKeyArray,
    directions: int = 50,
    reference: Callable | None = None,
    dtypes: Sequence[Any] | None = None,
) -> None:
    """Raise `AssertionError`, naming the broken promises, unless `domain` keeps all that other parts rely on.

    **Arguments:**

    - `domain`: the domain.
    - `key`: random key for the test directions.
    - `directions`: how many test directions.
    - `reference`: `direction -> min <direction, v>`, from another solver. Without it, an answer only has to
      beat the answers to all other directions.
    - `dtypes`: dtypes of the directions. By default float32 and, where JAX has it enabled, float64.

    >>> import jax
    >>> from cocoax.domains import ProbabilitySimplex
    >>> check_domain(ProbabilitySimplex(4), key=jax.random.key(0))
    """
    check.instance(domain, AbstractDomain, AssertionError, "check_domain needs one of cocoax.domains")
    domain.vertex()  # an array in its place is named
    _check_refusals(domain)
    dtypes = (jnp.float32, jnp.result_type(float)) if dtypes is None else dtypes
    for dtype in dict.fromkeys(map(jnp.dtype, dtypes)):
        asked = _directions(domain, key, directions, dtype)
        tol = 1e-8 if dtype == jnp.float64 else 2e-5
        with jax.default_matmul_precision("highest"):  # accelerators round products to fewer bits by themselves
            values, sizes, excesses = measure(domain, asked, tol)
        if reference is not None:
            answers = [reference(jax.tree.map(lambda leaf, i=i: leaf[i], asked)) for i in range(directions)]
            excesses["lmo is not the reference's"] = abs(values - answers) / (max(tol, 1e-6) * sizes)
        broken = [
            f"{promise} (direction {np.argmax(excess)}: {np.max(excess):.3g} times what {jnp.dtype(dtype)} allows)"
            for promise, excess in excesses.items()
            if not np.all(excess <= 1)
        ]
        if broken:
            raise AssertionError(f"{type(domain).__name__}: {'; '.join(broken)}")


def _check_refusals(domain):
    """`lmo` must refuse a direction that is not finite, and one of another shape."""
    leaves, structure = jax.tree.flatten(tree.zeros_like(domain.start()))
    bad = {"not finite": jnp.full_like(leaves[0], jnp.nan), "of another shape": leaves[0][None]}
    for what, leaf in bad.items():
        try:
            domain.lmo(jax.tree.unflatten(structure, [leaf, *leaves[1:]]))
        except DomainError:
            continue
        raise AssertionError(f"{type(domain).__name__}: lmo takes a direction that is {what}")


def _directions(domain, key, count, dtype):
    """`count` test directions, stacked.

    Most are Gaussian. Every fourth is rounded to -1, 0 or 1, so that there are ties. Every fourth has one nonzero
    coordinate. The last two are constant.
    """
    shapes, structure = jax.tree.flatten(domain.shape, is_leaf=tree.is_shape)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    drawn = rng.standard_normal((count, sum(map(math.prod, shapes))))
    drawn[::4] = np.clip(np.round(drawn[::4]), -1, 1)
    along = np.arange(drawn.shape[1]) == rng.integers(drawn.shape[1], size=(len(drawn[2::4]), 1))
    drawn[2::4] = along * np.sign(drawn[2::4, :1]) * np.linalg.norm(drawn[2::4], axis=1, keepdims=True)
    drawn[-2:-1], drawn[-1] = -1, 1
    parts = np.split(drawn, np.cumsum([math.prod(shape) for shape in shapes])[:-1], axis=1)
    leaves = [jnp.asarray(part, dtype).reshape(count, *shape) for part, shape in zip(parts, shapes)]
    return jax.tree.unflatten(structure, leaves)
