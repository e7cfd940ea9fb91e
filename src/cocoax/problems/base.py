"""The class of ready problems."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..comparators.comparator import Comparator
from ..problem.environment import Environment
from ..problem.problem import Problem, Round


class Instance(eqx.Module):
    """A problem, the source of its rounds, and what is known of its optimum.

    All arrays are leaves, so instances of one shape can be made by `jax.vmap` and share one compilation.

    >>> import jax
    >>> import cocoax as cx
    >>> instance = cx.problems.pacing(jax.random.key(0), budget=0.2)
    >>> rounds = instance.rounds(5, jax.random.key(1))
    >>> rounds["price"].shape, instance.problem.constraints
    ((5, 10), 1)
    """

    problem: Problem
    environment: Environment  # for play(..., horizon=T): rounds are drawn as they are played
    optimum: jax.Array | None  # x*, where it is known
    expected_constraint: Callable | None  # x -> E g(x), where it is known

    def rounds(self, horizon: int, key: PRNGKeyArray) -> Round:
        """`horizon` rounds, drawn in advance."""
        return self.environment.draw(horizon, key)

    def comparator(self, rounds: Round, **options: Any) -> Comparator:
        """The best fixed decision for these rounds, or with requests the best policy.

        It is exact where the optimum is known; otherwise it comes from `hindsight`, which takes the options.
        """
        if self.optimum is not None:
            best = Comparator.fixed(self.problem, rounds, self.optimum)
            return eqx.tree_at(lambda best: best.lower_bound, best, best.value)  # known to be optimal
        from ..comparators.hindsight import hindsight  # loads a solver, which a game does not need

        if self.problem.has_policies:
            return hindsight(self.problem, rounds, policy=True, **options)
        return hindsight(self.problem, rounds, expected_constraint=self.expected_constraint, **options)


class ExpectedLimit(eqx.Module):
    """E g(x), where a round's use is linear and its mean is known."""

    use: Float[Array, "*shape"]
    limit: Float[Array, ""]

    def __call__(self, x) -> Float[Array, ""]:
        return jnp.vdot(self.use, x) - self.limit


def used_beyond_budget(x, r) -> Float[Array, ""]:
    return jnp.vdot(r["use"], x) - r["budget"]
