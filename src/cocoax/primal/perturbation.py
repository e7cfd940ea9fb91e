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
    """Noise of some size s, drawn afresh for every leader; `theory.ftpl_size` balances its two costs."""

    name: ClassVar[str]  # "cube", "centred" or "ball": whose constants in `theory` it has
    norm: ClassVar[float]  # in which gradients are bounded

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray, like: Point) -> Point:
        """One draw of size 1, shaped like `like`."""

    def size(self, lipschitz: Any, horizon: Any, dimension: int) -> Any:
        """s, the best for `horizon` linear losses."""
        return theory.ftpl_size(jnp.asarray(horizon, jnp.result_type(lipschitz)), lipschitz, dimension, self.name)

    def diameter(self, domain: AbstractDomain) -> Array:
        """R, in the norm dual to the one that bounds gradients."""
        return domain.diameter(2 if self.norm == 2 else 1)


def _uniform(key, like):
    """Independent draws from (0, 1), shaped like `like`.

    Straight from threefry's blocks, both words of each: three times faster on a CPU than `jax.random.uniform`, which
    draws a block for every word. Perturbations are most of the work of Algorithm 2.
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
    if str(jax.random.key_impl(key)) != "threefry2x32":
        return jax.random.bits(key, (count,), jnp.uint32)
    data, counters = jax.random.key_data(key), jnp.arange(count, dtype=jnp.uint32)
    if count % 2:
        return threefry_2x32(data, counters)
    # the same words; XLA splits a batch of pairs over devices, so that each draws its own rows
    return jax.vmap(threefry_2x32, (None, 1), 1)(data, counters.reshape(2, -1)).reshape(-1)


class Cube(AbstractPerturbation):
    """Uniform on [0, s]^d (the paper's, with erratum E1: s = 1/delta, not delta)."""

    name: ClassVar[str] = "cube"
    norm: ClassVar[float] = float("inf")

    def draw(self, key, like):
        return _uniform(key, like)


class Centred(AbstractPerturbation):
    """Uniform on [-s/2, s/2]^d: the same density, half the bias."""

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
    """A perturbation from its name, or the user's own."""
    if isinstance(choice, AbstractPerturbation):
        return choice
    if not (isinstance(choice, str) and choice in _NAMED):
        raise LearnerError(f"perturbation must be one of {', '.join(_NAMED)}, got {choice!r}")
    return _NAMED[choice]()


def perturbed_leaders(domain, noise: AbstractPerturbation, totals, size, guesses, key, *, shared):
    """One vertex for each guess: the LMO's answer to total + size * fresh noise.

    `shared` says whether all leaders follow one total (sampling), or each its own (Meta-Frank-Wolfe).
    """
    count = jax.tree.leaves(guesses)[0].shape[0]

    def leader(total, guess, key):
        direction = tree.add(total, tree.scale(size, noise.draw(key, total)))
        return domain.lmo(direction, guess)

    keys = jax.random.split(key, count)
    return jax.vmap(leader, in_axes=(None if shared else 0, 0, 0))(totals, guesses, keys)


def repeat(vertex, count):
    """A batch of equal guesses."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), vertex)


def average(vertices, count):
    """The mean of the first `count` vertices of a batch; `count` may be traced."""
    capacity = jax.tree.leaves(vertices)[0].shape[0]
    kind = tree.dtype([leaf for leaf in jax.tree.leaves(vertices) if jnp.issubdtype(leaf.dtype, jnp.floating)])
    count = jnp.clip(count, 1, capacity)
    weights = jnp.where(jnp.arange(capacity, dtype=count.dtype) < count, 1 / count.astype(kind), 0)
    return vertices.combine(weights.astype(kind))
