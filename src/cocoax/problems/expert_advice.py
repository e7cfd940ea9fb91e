"""Very many experts, few of which are good."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..comparators.comparator import Comparator
from ..core.facts import ProblemFacts, with_facts
from ..domains import ProbabilitySimplex
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem
from .base import Instance


class _Costs(eqx.Module):
    """The loss: mean costs, plus noise that each round shifts around the circle."""

    cost: Float[Array, " n"]  # mean
    noise: Float[Array, " n"]  # each round shifts it around the circle

    def __call__(self, x, r):
        return jnp.vdot(self.cost.astype(x.dtype) + jnp.roll(self.noise.astype(x.dtype), r["shift"]), x)


class _Shifts(eqx.Module):
    """Draws rounds with the field `shift`."""

    n: int = eqx.field(static=True)

    def __call__(self, key):
        return {"shift": jax.random.randint(key, (), 0, self.n, jnp.int32)}


class _Experts(Instance):
    """The instance whose comparator is a vertex."""

    def comparator(self, rounds, **options):
        """The exact best decision: the vertex with the least total cost."""
        loss, shifts = self.problem.loss, np.asarray(rounds["shift"])
        noise, total = np.asarray(loss.noise, np.float64), len(shifts) * np.asarray(loss.cost, np.float64)  # pyright: ignore
        for shift in shifts:
            total += np.roll(noise, shift)
        best = Comparator.fixed(self.problem, rounds, np.eye(1, len(total), int(total.argmin()))[0])
        return eqx.tree_at(lambda best: best.lower_bound, best, best.value)


@with_facts(ProblemFacts("a probability simplex", "very many experts, few of them good"))
def experts(key: PRNGKeyArray, *, n: int = 100_000, good: int = 5) -> Instance:
    r"""$f_t(x) = \langle c_t, x\rangle$ over a simplex with very many vertices, without constraints.

    Costs are uniform in $[-1,1]$ around means: 0 for `good` experts, uniform in [0.9, 1] for all others. So the start
    pays nearly 1 per round. Euclidean steps spread over all vertices; entropic methods lose only a factor log n.
    A round holds one number, by which the noise is shifted around the circle.

    >>> import jax
    >>> instance = experts(jax.random.key(0), n=1000)
    >>> best = instance.comparator(instance.rounds(50, jax.random.key(1)))
    >>> int((best.x > 0).sum()), float(best.gap)
    (1, 0.0)
    """
    if not 1 <= good < n:
        raise ProblemError(f"good must lie between 1 and n - 1 = {n - 1}, got {good}")
    place_key, cost_key, noise_key = jax.random.split(key, 3)
    rank = jax.random.permutation(place_key, n)
    cost = jnp.where(rank < good, 0.0, jax.random.uniform(cost_key, (n,), minval=0.9, maxval=1.0))
    noise = jax.random.uniform(noise_key, (n,), minval=-1, maxval=1)
    problem = Problem(ProbabilitySimplex(n), _Costs(cost, noise))
    return _Experts(problem, Sampler(_Shifts(n)), None, None)
