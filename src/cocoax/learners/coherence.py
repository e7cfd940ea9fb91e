"""Which constraints have gradients with a direction in common: the others cannot be met by moving."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point

_TIMES = 4.0  # how many times what noise has counts as agreement


class Coherence(eqx.Module):
    r"""Of each constraint, after n gradients: $\frac{|\sum\nabla g|^2}{4\sum|\nabla g|^2}$, at least 1/4 and at most 1.

    (For n < 4, n stands in place of 4.) It is 1 as long as gradients agree, and wherever each has a share of a common
    direction that is large enough to be seen through the noise of n. Where gradients are noise around 0, the square of
    their sum is about the sum of their squares: then it is a fourth. No decision lowers the mean of such a constraint,
    and following it only disturbs the loss. It keeps one more point for each constraint.
    """

    sums: Point  # of gradients, along a leading axis
    squares: Float[Array, " m"]  # sum of |grad g|^2
    count: Float[Array, " m"]
    share: Float[Array, " m"]

    @classmethod
    def begin(cls, constraints: int, start: Point) -> "Coherence":
        zeros = jnp.zeros(constraints, tree.dtype(start))
        return cls(jax.vmap(lambda _: tree.zeros_like(start))(zeros), zeros, zeros, zeros + 1)

    def observe(self, domain: AbstractDomain, gradients: Point, factors, lengths, sampled) -> "Coherence":
        """With one more gradient of each constraint, clipped to these lengths, in rounds that are `sampled`."""

        def with_one(total, gradient, factor):
            total = domain.truncate(tree.add(total, tree.scale(factor, gradient)))
            return total, tree.dot(total, total)

        def more() -> Coherence:
            sums, of_sums = jax.vmap(with_one)(self.sums, gradients, factors)
            squares = self.squares + lengths**2
            count = self.count + (lengths > 0).astype(lengths.dtype)
            agreeing = jnp.clip(ratio(of_sums, squares) / jnp.clip(count, 1, _TIMES), 1 / _TIMES, 1)
            return Coherence(sums, squares, count, jnp.where(count > 0, agreeing, 1))

        return jax.lax.cond(sampled, more, lambda: self)
