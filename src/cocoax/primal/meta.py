"""What variants of Meta-Frank-Wolfe share: K inner learners, each of which follows the perturbed leader."""

import abc
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from ..core import tree
from ..domains.base import AbstractDomain, AbstractVertex, Point
from .base import AbstractPrimal, Revealed, RoundBounds, cost, first_guess
from .perturbation import AbstractPerturbation, perturbed_leaders, repeat


class _State(eqx.Module):
    point: Point  # x_t = x^{K+1}
    anchor: Point  # x^1, the same every round
    totals: Point  # of each inner learner: sum of what it has seen
    vertices: AbstractVertex  # v^1 .. v^K, a batch


class AbstractMeta(AbstractPrimal):
    """K inner learners propose vertices v^k; x^{k+1} mixes v^k into x^k; the decision is x^{K+1}.

    Afterwards, learner k sees the gradient at x^k, or an estimate of it. All K proposals depend on the past only, so
    they are computed as one batch, and the points as one matrix product.
    """

    noise: eqx.AbstractVar[AbstractPerturbation]
    deterministic: ClassVar[bool] = False
    alpha: ClassVar[Fraction] = Fraction(1, 2)

    @property
    def norm(self):
        return self.noise.norm

    @abc.abstractmethod
    def most_steps(self, capacity: int) -> int:
        """K for the longest possible run, which sizes the arrays."""

    @abc.abstractmethod
    def steps(self, bounds: RoundBounds) -> Any:
        """K for this run; traced."""

    @abc.abstractmethod
    def mixture(self, k: Array, j: Array) -> tuple[Any, Any]:
        """The weights of x^1 and of v^j in x^{k+1}, for 1 <= j <= k."""

    @abc.abstractmethod
    def estimates(self, points: Point, revealed: Revealed, key: PRNGKeyArray) -> Point:
        """The gradients, or estimates of them, that the inner learners see; stacked like `points`."""

    @property
    def gradients_per_step(self) -> int:
        return 1

    def perturbation_bound(self, domain: AbstractDomain, bounds: RoundBounds) -> Array:
        """The bound on gradients (or estimates) that determines the size of the perturbations."""
        return bounds.lipschitz

    def init(self, domain, bounds, *, start, key, warm=None):
        most = self.most_steps(bounds.capacity)
        guesses = repeat(first_guess(domain, start), most) if warm is None else warm.vertices
        totals = jax.tree.map(lambda leaf: jnp.zeros((most, *leaf.shape), leaf.dtype), start)
        return self._next_state(domain, start, totals, guesses, bounds, key)

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        seen_key, lead_key = jax.random.split(key)
        seen = self.estimates(self.inner_points(state.anchor, state.vertices), revealed, seen_key)
        totals = tree.add(state.totals, seen)
        state = self._next_state(domain, state.anchor, totals, state.vertices, next_bounds, lead_key)
        steps = self.steps(next_bounds)
        gradients = self.gradients_per_step * steps
        return state, cost(lmo_calls=steps, gradient_calls=gradients, finite=tree.all_finite(seen))

    def restart(self, domain, state, bounds, *, key):
        state = self.init(domain, bounds, start=state.point, key=key, warm=state)
        return state, cost(lmo_calls=self.steps(bounds))

    def inner_points(self, anchor, vertices):
        """x^1 .. x^K, with a leading axis."""
        return self._inner_points(anchor, vertices, jnp.arange(_length(vertices)))

    def last_point(self, anchor, vertices, steps):
        """x^{steps+1}; `steps` may be traced and below the number of vertices."""
        return self._inner_points(anchor, vertices, jnp.clip(steps, 1, _length(vertices)))

    def _inner_points(self, anchor, vertices, k):
        """x^{k+1} for each k, from the anchor x^1 and the vertices; k may also be one number."""
        k = k.astype(tree.dtype(anchor))
        j = jnp.arange(1, _length(vertices) + 1, dtype=k.dtype)
        if k.ndim == 1:
            k, j, anchor = k[:, None], j[None], jax.tree.map(lambda x: x[None], anchor)
        of_anchor, of_vertex = self.mixture(k, j)
        mixed = vertices.combine(jnp.where(j <= k, of_vertex, 0))
        return jax.tree.map(lambda leaf, x: leaf + of_anchor.reshape(-1, *(1,) * (x.ndim - 1)) * x, mixed, anchor)

    def _next_state(self, domain, anchor, totals, guesses, bounds, key):
        """The state after all inner learners have proposed new vertices for these totals."""
        bound = self.perturbation_bound(domain, bounds)
        size = self.noise.size(bound, bounds.horizon, domain.dimension)
        vertices = perturbed_leaders(domain, self.noise, totals, size, guesses, key, shared=False)
        return _State(self.last_point(anchor, vertices, self.steps(bounds)), anchor, totals, vertices)


def _length(vertices) -> int:
    return jax.tree.leaves(vertices)[0].shape[0]
