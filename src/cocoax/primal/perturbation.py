"""Random perturbations for follow-the-perturbed-leader, and what each costs in regret."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend.random import threefry_2x32
from jaxtyping import Array, PRNGKeyArray

from .. import theory
from ..core import tree
from ..domains.base import AbstractDomain, Point
from ..errors import LearnerError


class AbstractPerturbation(eqx.Module):
    """Random noise of size s, drawn anew for every leader; `theory.ftpl_size` chooses s."""

    name: ClassVar[str]  # "cube", "centred" or "ball": whose constants in `theory` it has
    norm: ClassVar[float]  # in which gradients are bounded

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray, like: Point) -> Point:
        """One draw of size 1, shaped like `like`."""

    def size(self, lipschitz: Any, horizon: Any, dimension: int) -> Any:
        """The size s with the lowest regret bound for `horizon` linear losses."""
        return theory.ftpl_size(jnp.asarray(horizon, jnp.result_type(lipschitz)), lipschitz, dimension, self.name)

    def diameter(self, domain: AbstractDomain) -> Array:
        """R: the domain's diameter in the norm dual to that of the gradients."""
        return domain.diameter(2 if self.norm == 2 else 1)


def _uniform(key, like):
    """Independent draws from (0, 1), shaped like `like`.

    They use both words of each block of threefry. On a CPU this is three times faster than `jax.random.uniform`, which
    uses one. Perturbations are most of the work of Algorithm 2.
    """
    leaves, treedef = jax.tree.flatten(like)
    bits = _bits(key, tree.size(like))
    drawn, at = [], 0
    for leaf in leaves:
        words = bits[at : at + leaf.size].reshape(leaf.shape)
        if leaf.dtype == jnp.float64:
            drawn.append((words.astype(leaf.dtype) + 0.5) * 2.0**-32)
        else:
            drawn.append(((words >> 9).astype(leaf.dtype) + 0.5) * 2.0**-23)
        at += leaf.size
    return jax.tree.unflatten(treedef, drawn)


def _bits(key, count):
    """`count` random uint32 numbers."""
    if str(jax.random.key_impl(key)) != "threefry2x32":
        return jax.random.bits(key, (count,), jnp.uint32)
    data, counters = jax.random.key_data(key), jnp.arange(count, dtype=jnp.uint32)
    if count % 2:
        return threefry_2x32(data, counters)
    # the same words; XLA splits a batch of pairs over devices, so that each draws its own rows
    return jax.vmap(threefry_2x32, (None, 1), 1)(data, counters.reshape(2, -1)).reshape(-1)


class Cube(AbstractPerturbation):
    """Uniform on [0, s]^d, as in the paper with erratum E1: s = 1/delta, not delta."""

    name: ClassVar[str] = "cube"
    norm: ClassVar[float] = float("inf")

    def draw(self, key, like):
        return _uniform(key, like)


class Centred(AbstractPerturbation):
    """Uniform on [-s/2, s/2]^d: the density of `Cube`, with half the bias."""

    name: ClassVar[str] = "centred"
    norm: ClassVar[float] = float("inf")

    def draw(self, key, like):
        return jax.tree.map(lambda leaf: leaf - 0.5, _uniform(key, like))


class Ball(AbstractPerturbation):
    """Uniform on the Euclidean ball of radius s: regret grows like the fourth root of d."""

    name: ClassVar[str] = "ball"
    norm: ClassVar[float] = 2

    def draw(self, key, like):
        direction_key, radius_key = jax.random.split(key)
        uniform = _uniform(direction_key, like)
        normal = jax.tree.map(lambda leaf: jax.lax.erf_inv(2 * leaf - 1), uniform)  # to scale
        radius = jax.random.uniform(radius_key, (), tree.dtype(like)) ** (1 / tree.size(like))
        return tree.scale(radius / tree.norm(normal), normal)


_NAMED = {noise.name: noise for noise in (Cube, Centred, Ball)}


def named_perturbation(choice) -> AbstractPerturbation:
    """The perturbation with this name; an `AbstractPerturbation` is returned as it is."""
    if isinstance(choice, AbstractPerturbation):
        return choice
    if not (isinstance(choice, str) and choice in _NAMED):
        raise LearnerError(f"perturbation must be one of {', '.join(_NAMED)}, got {choice!r}")
    return _NAMED[choice]()


def perturbed_leaders(domain, noise: AbstractPerturbation, totals, size, guesses, key, *, shared):
    """A batch of vertices: for each guess, the LMO's answer to total + size * new noise.

    With `shared` all leaders follow the same total (sampling), otherwise each has its own (Meta-Frank-Wolfe).
    """
    count = jax.tree.leaves(guesses)[0].shape[0]

    def leader(total, guess, key):
        direction = tree.add(total, tree.scale(size, noise.draw(key, total)))
        return domain.lmo(direction, guess)

    keys = jax.random.split(key, count)
    return jax.vmap(leader, in_axes=(None if shared else 0, 0, 0))(totals, guesses, keys)


def repeat(vertex, count):
    """A batch of `count` copies of one vertex."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), vertex)


def average(vertices, count):
    """The mean of the first `count` vertices of a batch; `count` may be traced."""
    capacity = jax.tree.leaves(vertices)[0].shape[0]
    kind = tree.dtype([leaf for leaf in jax.tree.leaves(vertices) if jnp.issubdtype(leaf.dtype, jnp.floating)])
    count = jnp.clip(count, 1, capacity)
    weights = jnp.where(jnp.arange(capacity, dtype=count.dtype) < count, 1 / count.astype(kind), 0)
    return vertices.combine(weights.astype(kind))
