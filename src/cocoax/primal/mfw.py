"""Meta-Frank-Wolfe (Chen, Harshaw, Hassani, Karbasi, ICML 2018), with exact gradients."""

from fractions import Fraction
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .. import _tree as tree
from .. import theory
from .._integers import ceil_power
from ..domains.base import AbstractVertex, Point
from .base import AbstractPrimal, cost, first_guess
from .perturbation import AbstractPerturbation, named_perturbation, perturbed_leaders, repeat


class _State(eqx.Module):
    point: Point  # x_t = x^{K+1}
    anchor: Point  # x^1, the same every round
    totals: Point  # of each inner learner: sum of its gradients
    vertices: AbstractVertex  # v^1 .. v^K, a batch


class MFW(AbstractPrimal):
    r"""K gradients and K LMOs a round (one batch each), $K=\lceil\sqrt T\rceil$, for smooth losses.

    K inner learners, each follow-the-perturbed-leader, propose vertices; with $\gamma_k = \frac{2}{k+1}$,
    $x^{k+1} = x^k + \gamma_k(v^k - x^k)$, the decision is $x^{K+1}$, and learner k then sees $\nabla f_t(x^k)$.

    Since $\gamma_1=1$, $x^{k+1} = \frac{2}{k(k+1)}\sum_{j\le k} j\,v^j$: one matrix product instead of a loop.
    $E$ Regret $\le (cRD + 2R^2L)\sqrt T$ with $c=2\sqrt{\kappa_d}$ for the ball and $2\sqrt d$, in the l1 and linf
    norms, for the cube.
    """

    noise: AbstractPerturbation
    deterministic: ClassVar[bool] = False
    alpha: ClassVar[Fraction] = Fraction(1, 2)

    def __init__(self, perturbation="ball"):
        self.noise = named_perturbation(perturbation)

    @property
    def norm(self):
        return self.noise.norm

    def _constants(self, domain):
        return theory.constants.mfw(self.noise.diameter(domain), domain.dimension, self.noise.name)

    def _count(self, horizon):
        return ceil_power(horizon, Fraction(1, 2))

    def init(self, domain, scale, *, start, key, warm=None):
        count = self._count(scale.capacity)
        guesses = repeat(first_guess(domain, start), count) if warm is None else warm.vertices
        totals = jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape), leaf.dtype), start)
        return self._lead(domain, start, totals, guesses, scale, key)

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_scale, *, key):
        gradients = jax.vmap(revealed.gradient)(inner_points(state.anchor, state.vertices))
        totals = tree.add(state.totals, gradients)
        state = self._lead(domain, state.anchor, totals, state.vertices, next_scale, key)
        count = self._count(next_scale.horizon)
        return state, cost(lmo_calls=count, gradient_calls=count, finite=tree.all_finite(gradients))

    def restart(self, domain, state, scale, *, key):
        state = self.init(domain, scale, start=state.point, key=key, warm=state)
        return state, cost(lmo_calls=self._count(scale.horizon))

    def _lead(self, domain, anchor, totals, guesses, scale, key):
        size = self.noise.size(scale.lipschitz, scale.horizon, domain.dimension)
        vertices = perturbed_leaders(domain, self.noise, totals, size, guesses, key, shared=False)
        return _State(last_point(vertices, self._count(scale.horizon), anchor), anchor, totals, vertices)


def inner_points(anchor, vertices):
    """x^1 .. x^K, with a leading axis."""
    count = jax.tree.leaves(vertices)[0].shape[0]
    k = jnp.arange(count, dtype=tree.dtype(anchor))
    weights = jnp.where(k[None, :] < k[:, None], 2 * (k[None, :] + 1) / (k * (k + 1) + (k == 0))[:, None], 0)
    return jax.tree.map(lambda mixed, x: mixed.at[0].set(x), vertices.combine(weights), anchor)


def last_point(vertices, count, like):
    """x^{count+1}; `count` may be traced and below the number of vertices."""
    k = jnp.arange(jax.tree.leaves(vertices)[0].shape[0], dtype=tree.dtype(like))
    count = count.astype(k.dtype)
    return vertices.combine(jnp.where(k < count, 2 * (k + 1) / (count * (count + 1)), 0))
