"""The unit of each multiplier: how much of the loss a unit of the constraint is worth, as far as can be seen."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..core import tree
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from ..problem.problem import Problem

_BEYOND = 3.0  # standard deviations by which a constraint is overspent before its unit may grow


class Units(eqx.Module):
    r"""$\ell_i=\frac{|\bar F|}{\sqrt{\mathrm{mean}|\nabla g_i|^2}}$, where $\bar F$ is the mean gradient of the loss.

    On boxes, entries are weighed by the distances that their coordinates have gone (`far`), so that those at which a
    decision is pinned do not count. Until the loss has a gradient, it counts as 1.

    The multiplier at which a move d neither pays nor costs is $|\langle\bar F,d\rangle|/|\langle\nabla g_i,d\rangle|$.
    Where the decisions' moves say that this is larger than $\ell_i$, the unit may grow up to it, but only while the
    constraint is overspent beyond noise: where a constraint is nothing but noise, so is that ratio.
    """

    loss_gradients: Point  # their sum
    awake: Bool[Array, ""]  # whether the loss has had one
    squares: Float[Array, " m ..."]  # sum of (grad g)^2, on boxes of each entry
    rounds: Float[Array, ""]
    counted: Float[Array, " m"]  # rounds in which g has a gradient
    move: Point  # the last one, x_new - x
    moves: Float[Array, ""]  # how many there were
    along_loss: Float[Array, ""]  # recent mean of <F, d>^2
    along_constraints: Float[Array, " m"]  # and of <grad g, d>^2
    growth: Float[Array, " m"]  # binary logarithm of how much larger than l a unit may be

    @classmethod
    def begin(cls, problem: Problem, start: Point) -> "Units":
        zero = jnp.zeros((), tree.dtype(start))
        each = jnp.zeros(problem.constraints, zero.dtype)
        nothing = tree.zeros_like(start)
        if problem.domain.intervals() is None:
            squares = each
        else:
            squares = jax.tree.map(lambda leaf: jnp.zeros((each.size, *leaf.shape), leaf.dtype), start)
        return cls(nothing, jnp.zeros((), bool), squares, zero, each, nothing, zero, zero, each, each)

    def observe(self, domain: AbstractDomain, of_loss, of_constraints, far, overspent, keep):
        """(the units, whether the loss has just got its first gradient, the length of F's mean, the new state)."""
        rounds = keep * self.rounds + 1
        loss_gradients = domain.truncate(tree.add(tree.scale(keep, self.loss_gradients), of_loss))
        lengths = jax.vmap(lambda gradient: tree.dot(gradient, gradient))(of_constraints)
        counted = keep * self.counted + (lengths > 0).astype(lengths.dtype)
        length = tree.norm(loss_gradients)
        awake = self.awake | (length > 0)
        if domain.intervals() is None:
            squares = keep * self.squares + lengths
            above, below = length, squares
        else:
            squares = jax.tree.map(lambda old, new: keep * old + new**2, self.squares, of_constraints)
            above = tree.norm(jax.tree.map(jnp.multiply, far, loss_gradients))
            below = jax.vmap(lambda each: tree.dot(jax.tree.map(lambda r: r**2, far), each))(squares)
        plain = ratio(jnp.where(awake, above, 1), jnp.sqrt(counted * below))

        wakes = awake & ~self.awake
        along_loss, along_constraints, moves = self._along(loss_gradients, of_constraints, rounds, awake, wakes)
        breaks_even = jnp.where(
            along_constraints > 0, jnp.sqrt(ratio(along_loss, along_constraints)), jnp.zeros_like(plain)
        )
        beyond = jnp.clip(overspent - _BEYOND, 0, 1)
        growth = self.growth + jnp.where(beyond > 0, 0.3 * beyond, -2 * self.growth / rounds)
        unit = jnp.maximum(plain, jnp.minimum(breaks_even, plain * 2 ** jnp.minimum(growth, 60)))
        state = Units(
            loss_gradients,
            awake,
            squares,
            rounds,
            counted,
            self.move,
            moves,
            along_loss,
            along_constraints,
            growth,
        )
        return unit, wakes, length / rounds, state

    def _along(self, loss_gradients, of_constraints, rounds, awake, wakes):
        """Means of the squared slopes along the moves, with the last one."""
        length = tree.norm(self.move)
        has_moved = length > 0
        one = ratio(jnp.ones_like(length), length)
        of_loss = one * jnp.where(awake, tree.dot(loss_gradients, self.move) / rounds, length)
        of_each = one * jax.vmap(lambda gradient: tree.dot(gradient, self.move))(of_constraints)
        keep = jnp.where(wakes, 0, jnp.where(has_moved, 1 - 1 / (self.moves + 2), 1))
        moves = jnp.where(wakes, 0, self.moves) + has_moved.astype(rounds.dtype)
        return keep * self.along_loss + of_loss**2, keep * self.along_constraints + of_each**2, moves

    def moved(self, domain: AbstractDomain, move: Point) -> "Units":
        """After the decision has moved."""
        return eqx.tree_at(lambda units: units.move, self, domain.truncate(move))
