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
_NEAR = 1.0  # and before all slopes along moves of matrices are taken
_FIRST = 64  # moves whose slopes are always taken
_EVERY = 8  # one of so many rounds, too
_GROWN = 0.01  # a growth that is less than that changes no unit by 1%


class Units(eqx.Module):
    r"""$\ell_i$ is the length of the loss's mean gradient $\bar F$ over the mean of $|\nabla g_i|$ since its first one.

    On boxes, entries are weighed by the distances that their coordinates have gone (`far`), so that those at which a
    decision is pinned do not count. Until the loss has a gradient, it counts as 1.

    The multiplier at which a move d neither pays nor costs is $|\langle\bar F,d\rangle|/|\langle\nabla g_i,d\rangle|$.
    Where the decisions' moves say that this is larger than $\ell_i$, the unit may grow up to it, but only while the
    constraint is overspent beyond noise: where a constraint is nothing but noise, so is that ratio. On matrices, where
    slopes take passes over memory, only the first 64 moves count, one round in eight, and all while that is near, or
    while a unit is larger than $\ell_i$, or with memory. (Without the first two, a decision that is pinned early has no
    slopes.)
    """

    loss_gradients: Point  # their sum
    awake: Bool[Array, ""]  # whether the loss has had one
    sizes: Float[Array, " m ..."] | None  # sum of |grad g|, on boxes of each entry
    rounds: Float[Array, ""]
    ages: Float[Array, " m"]  # rounds since g had its first gradient
    moves: Float[Array, ""]  # how many there were
    along_loss: Float[Array, ""]  # recent mean of <F, d>^2
    along_constraints: Float[Array, " m"]  # and of <grad g, d>^2
    growth: Float[Array, " m"]  # binary logarithm of how much larger than l a unit may be

    @classmethod
    def begin(cls, problem: Problem, start: Point) -> "Units":
        zero = jnp.zeros((), tree.dtype(start))
        zeros = jnp.zeros(problem.constraints, zero.dtype)
        if problem.domain.intervals() is None:
            sizes = zeros
        else:
            sizes = jax.tree.map(lambda leaf: jnp.zeros((zeros.size, *leaf.shape), leaf.dtype), start)
        return cls(tree.zeros_like(start), jnp.zeros((), bool), sizes, zero, zeros, zero, zero, zeros, zeros)

    def observe(self, domain: AbstractDomain, gradients: tuple[Point, Point], factors, lengths, far, overspent, keep):
        """(the units, how large the loss's first gradient is in its round, and 1 in all others, the new state).

        `factors` clip the gradients of f and of all g to these `lengths`; `far` is for boxes.
        """
        rounds = keep * self.rounds + 1
        if self.ages.size == 0:  # nothing to compare the loss with
            return self.ages, jnp.ones_like(rounds), eqx.tree_at(lambda units: units.rounds, self, rounds)
        of_loss, lengths = tree.scale(factors[0], gradients[0]), lengths[1:]
        loss_gradients = domain.truncate(tree.add(tree.scale(keep, self.loss_gradients), of_loss))
        length = tree.norm(loss_gradients)
        if far is None:
            sizes = keep * self.sizes + lengths
            above, below, asleep = length, sizes, jnp.ones_like(length)
        else:
            clipped = jax.vmap(tree.scale)(factors[1:], gradients[1])
            sizes = jax.tree.map(lambda old, new: keep * old + jnp.abs(new), self.sizes, clipped)
            above, asleep = _weighed_norm(far, loss_gradients), tree.norm(far)
            below = jax.vmap(lambda each: _weighed_norm(far, each))(sizes)
        ages = keep * self.ages + ((lengths > 0) | (self.ages > 0)).astype(rounds.dtype)
        awake = self.awake | (length > 0)
        plain = ratio(jnp.where(awake, above / rounds, asleep) * ages, below)

        wakes = awake & ~self.awake
        # what was seen while the loss slept has another unit
        means = self.moves, self.along_loss, self.along_constraints
        moves, along_loss, along_each = (jnp.where(wakes, 0, mean) for mean in means)
        breaks_even = jnp.sqrt(ratio(along_loss, along_each))
        beyond = jnp.clip(overspent - _BEYOND, 0, 1)
        growth = self.growth + jnp.where(beyond > 0, 0.3 * beyond, -2 * self.growth / rounds)
        unit = jnp.maximum(plain, jnp.minimum(breaks_even, plain * 2 ** jnp.minimum(growth, 60)))
        state = Units(loss_gradients, awake, sizes, rounds, ages, moves, along_loss, along_each, growth)
        return unit, jnp.where(wakes, ratio(above / rounds, asleep), 1), state

    def moved(self, old: Point, new: Point, gradients: Point, factors, overspent, keep, always: bool) -> "Units":
        """After a move of the decision: the slopes along it join their means, `always` or where they may matter."""
        if self.ages.size == 0:
            return self

        def with_slopes():
            move = tree.sub(new, old)
            square, of_loss = tree.dot(move, move), tree.dot(move, self.loss_gradients) / self.rounds
            of_each = factors * jax.vmap(lambda gradient: tree.dot(gradient, move))(gradients)
            has_moved = (square > 0).astype(square.dtype)
            recent = jnp.where(square > 0, 1 - 1 / (self.moves + 2), 1)
            slope = jnp.where(self.awake, ratio(of_loss**2, square), has_moved)
            along_each = recent * self.along_constraints + ratio(of_each**2, square)
            return self.moves + has_moved, recent * self.along_loss + slope, along_each

        def slopes(units):
            return units.moves, units.along_loss, units.along_constraints

        if always:
            return eqx.tree_at(slopes, self, with_slopes())
        matters = self.sampled(keep) | ((overspent > _NEAR) | (self.growth > _GROWN)).any()
        return eqx.tree_at(slopes, self, jax.lax.cond(matters, with_slopes, lambda: slopes(self)))

    def sampled(self, keep) -> Bool[Array, ""]:
        """Whether this is a round in which passes over memory are made that others can do without."""
        return (self.moves < _FIRST) | (self.rounds % _EVERY == 0) | (keep < 1)  # with memory, rounds are no count


def _weighed_norm(weights: Point, x: Point) -> Float[Array, ""]:
    return tree.norm(jax.tree.map(jnp.multiply, weights, x))
