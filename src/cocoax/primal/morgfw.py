"""Meta online recursive-gradient Frank-Wolfe (Xie, Shen, Zhang, Wang, Qian, AAAI 2020)."""

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .. import _tree as tree
from .. import theory
from ..domains.base import AbstractVertex, Point
from ..problem import as_pytree
from .base import AbstractPrimal, cost, first_guess
from .perturbation import AbstractPerturbation, named_perturbation, perturbed_leaders, repeat


class _State(eqx.Module):
    point: Point  # x_t = x^{K+1}
    anchor: Point  # x^1, the same every round
    totals: Point  # of each inner learner: sum of its gradient estimates
    vertices: AbstractVertex  # v^1 .. v^K, a batch


class MORGFW(AbstractPrimal):
    r"""K = T inner learners as in Meta-Frank-Wolfe, for smooth losses whose gradients are only sampled.

    $x^{k+1} = x^k + \frac{1}{k+1}(v^k - x^k)$, and learner k sees
    $d^k = \tilde\nabla f_t(x^k) + (1-\frac{1}{k+1})(d^{k-1} - \tilde\nabla f_t(x^{k-1}))$, $d^1=\tilde\nabla f_t(x^1)$,
    the same sample in both gradients.

    `sample(round, key) -> round` draws the part of a round (a mini-batch) that one estimate sees, unbiased;
    without it gradients are exact and $d^k=\nabla f_t(x^k)$. As $(k+1)d^k = \sum_{j\le k}(j+1)a_j - j\,b_j$
    with both gradients $a_j, b_j$ of sample j, all estimates are one prefix sum. Cost: T LMOs and 2T sampled
    gradients a round.
    """

    sample: Callable | None
    noise: AbstractPerturbation
    deterministic: ClassVar[bool] = False
    alpha: ClassVar[Fraction] = Fraction(1, 2)

    def __init__(self, sample=None, perturbation="ball"):
        self.sample = None if sample is None else as_pytree(sample, "sample")
        self.noise = named_perturbation(perturbation)

    @property
    def norm(self):
        return self.noise.norm

    def _constants(self, domain):
        return theory.constants.morgfw(self.noise.diameter(domain), domain.dimension, self.noise.name)

    def init(self, domain, scale, *, start, key, warm=None):
        count = scale.capacity
        guesses = repeat(first_guess(domain, start), count) if warm is None else warm.vertices
        totals = jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape), leaf.dtype), start)
        return self._lead(domain, start, totals, guesses, scale, key)

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_scale, *, key):
        sample_key, lead_key = jax.random.split(key)
        estimates = self._estimates(state, revealed, sample_key)
        totals = tree.add(state.totals, estimates)
        state = self._lead(domain, state.anchor, totals, state.vertices, next_scale, lead_key)
        count = next_scale.horizon
        gradients = count if self.sample is None else 2 * count - 1
        return state, cost(lmo_calls=count, gradient_calls=gradients, finite=tree.all_finite(estimates))

    def restart(self, domain, state, scale, *, key):
        state = self.init(domain, scale, start=state.point, key=key, warm=state)
        return state, cost(lmo_calls=scale.horizon)

    def _estimates(self, state, revealed, key):
        points = inner_points(state.anchor, state.vertices)
        sample = self.sample
        if sample is None:
            return jax.vmap(revealed.gradient)(points)
        count = jax.tree.leaves(points)[0].shape[0]
        before = jax.tree.map(lambda x: jnp.concatenate([x[:1], x[:-1]]), points)

        def both(point, previous, key):
            sampled = revealed.sampled(lambda round: sample(round, key))
            return sampled.gradient(point), sampled.gradient(previous)

        here, there = jax.vmap(both)(points, before, jax.random.split(key, count))
        j = jnp.arange(1, count + 1, dtype=tree.dtype(state.point))

        def prefix(a, b):
            shape = (count,) + (1,) * (a.ndim - 1)
            terms = (j + 1).reshape(shape) * a - jnp.where(j > 1, j, 0).reshape(shape) * b
            return jnp.cumsum(terms, axis=0) / (j + 1).reshape(shape)

        return jax.tree.map(prefix, here, there)

    def _lead(self, domain, anchor, totals, guesses, scale, key):
        size = self.noise.size(scale.lipschitz, scale.horizon, domain.dimension)
        vertices = perturbed_leaders(domain, self.noise, totals, size, guesses, key, shared=False)
        k = jnp.arange(jax.tree.leaves(vertices)[0].shape[0], dtype=tree.dtype(anchor))
        count = scale.horizon.astype(k.dtype)
        mean = vertices.combine(jnp.where(k < count, 1 / (count + 1), 0))
        return _State(tree.add(mean, tree.scale(1 / (count + 1), anchor)), anchor, totals, vertices)


def inner_points(anchor, vertices):
    """x^1 .. x^K, with a leading axis: x^{k+1} = (x^1 + v^1 + ... + v^k) / (k+1)."""
    k = jnp.arange(jax.tree.leaves(vertices)[0].shape[0], dtype=tree.dtype(anchor))
    weights = jnp.where(k[None, :] < k[:, None], 1 / (k + 1)[:, None], 0)
    return jax.tree.map(
        lambda mixed, x: mixed + x / (k + 1).reshape(-1, *(1,) * x.ndim), vertices.combine(weights), anchor
    )
