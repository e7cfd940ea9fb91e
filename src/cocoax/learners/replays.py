"""Remembered rounds, whose gradients at the present decision join those of the present round."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from ..core import check
from ..domains.base import Point
from ..errors import LearnerError
from ..problem.problem import Problem, Round
from ..problem.rounds import as_rounds


class Replays(eqx.Module):
    """A reservoir: of all rounds so far, every set of as many as it holds is equally likely to be in it."""

    rounds: Round  # stacked
    seen: Int[Array, ""]
    key: PRNGKeyArray

    @classmethod
    def begin(cls, size: int, like: Round, key: PRNGKeyArray) -> "Replays":
        rounds = jax.tree.map(lambda leaf: jnp.zeros((size, *jnp.shape(leaf)), jnp.result_type(leaf)), like)
        return cls(rounds, jnp.zeros((), jnp.int32), key)

    @property
    def size(self) -> int:
        return len(jax.tree.leaves(self.rounds)[0])

    def gradients(self, problem: Problem, x: Point, round: Round) -> tuple[Point, Point]:
        """The mean of `problem.gradients` over this round and those remembered; empty places count as this round."""
        self._check(round)
        filled = jnp.arange(self.size, dtype=self.seen.dtype) < self.seen

        def remembered(is_filled, stored):
            stored = jax.tree.map(lambda old, new: jnp.where(is_filled, old, new), stored, round)
            return problem.gradients(x, stored)

        others = jax.vmap(remembered)(filled, self.rounds)
        return jax.tree.map(
            lambda one, many: (one + many.sum(axis=0)) / (self.size + 1), problem.gradients(x, round), others
        )

    def _check(self, round: Round) -> None:
        """Rounds are stored as the example says: whole numbers for whole numbers, in the same shapes."""
        stored, given = _form(jax.tree.map(lambda leaf: leaf[0], self.rounds)), _form(round)
        if stored != given:
            advice = "give a round itself, such as jax.tree.map(lambda leaf: leaf[0], rounds)"
            raise LearnerError(f"like= is {stored}, but a round is {given}; {advice}")

    def add(self, round: Round) -> "Replays":
        """After a round: it takes the place that the key draws, if there is one."""
        key = jax.random.fold_in(self.key, self.seen)
        drawn = jax.random.randint(key, (), 0, self.seen + 1, self.seen.dtype)
        place = jnp.where(self.seen < self.size, self.seen, drawn)  # beyond the last one, nothing is written
        rounds = jax.tree.map(lambda stack, leaf: stack.at[place].set(leaf, mode="drop"), self.rounds, round)
        return Replays(rounds, self.seen + 1, self.key)


def shapes(like: Any) -> Any:
    """A round of zeros: only shapes and dtypes of the example count."""
    try:
        return jax.tree.map(lambda leaf: jnp.zeros(jnp.shape(leaf), jnp.result_type(leaf)), as_rounds(like))
    except (TypeError, ValueError):
        raise LearnerError(f"like= must be a round, of arrays, got {check.described(like)}") from None


def _form(round: Round) -> str:
    """Shapes and kinds of numbers, for a comparison and for a sentence."""

    def of_leaf(leaf):
        dtype = jnp.result_type(leaf)
        kind = next(kind for kind in (jnp.bool_, jnp.integer, jnp.inexact, jnp.generic) if jnp.issubdtype(dtype, kind))
        return f"{kind.__name__.removesuffix('_').replace('inexact', 'float')}{list(jnp.shape(leaf))}"

    return str(jax.tree.map(of_leaf, round)).replace("'", "")
