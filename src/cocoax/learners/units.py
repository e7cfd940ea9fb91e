"""The unit of each multiplier: how much of the loss a unit of the constraint is worth, as far as can be seen."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..core import tree
from ..core.compiling import one_kernel
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from ..problem.problem import Problem

_BEYOND = 3.0  # standard deviations by which a constraint is overspent before its unit may grow
_NEAR = 1.0  # and before all slopes along moves of matrices are taken
_FIRST = 64  # moves whose slopes are always taken
_EVERY = 8  # one of so many rounds, too
_GROWN = 0.01  # a growth that is less than that changes no unit by 1%


class Clipped(NamedTuple):
    """A gradient, or several along a leading axis, with their lengths and the factors that clip them."""

    gradient: Point
    length: Float[Array, "..."]
    factor: Float[Array, "..."]


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

    @property
    def numbers(self) -> "Units":
        """Without what has an entry for each coordinate; `eqx.combine(numbers, units)` is whole again."""
        sizes = self.sizes if isinstance(self.sizes, jax.Array) and self.sizes.ndim == 1 else None
        return dataclasses.replace(self, loss_gradients=None, sizes=sizes)

    @property
    def without_loss(self) -> "Units":
        """Without its gradients, which only `with_loss` changes."""
        return dataclasses.replace(self, loss_gradients=None)

    def with_loss(self, domain: AbstractDomain, of_loss: Clipped, keep) -> "Units":
        """With one more gradient of the loss."""
        if self.ages.size == 0:  # nothing to compare the loss with
            return self
        sums = tree.add(tree.scale(keep, self.loss_gradients), tree.scale(of_loss.factor, of_loss.gradient))
        return eqx.tree_at(lambda units: units.loss_gradients, self, domain.truncate(sums))

    def with_constraints(self, of_constraints: Clipped, far, keep) -> "tuple[Units, Squares | None]":
        """(the state with one more gradient of each constraint, squared lengths for `unit`). `far` is for boxes."""
        if self.ages.size == 0:
            return self, None
        loss_gradients, sizes, weighed = self.loss_gradients, self.sizes, None
        if far is not None:
            new = jax.vmap(tree.scale)(of_constraints.factor, of_constraints.gradient)
            sizes = jax.tree.map(lambda old, new: keep * old + jnp.abs(new), sizes, new)
            gone = jax.tree.map(jnp.multiply, far, loss_gradients)
            below = jax.vmap(lambda each: _square(jax.tree.map(jnp.multiply, far, each)))(sizes)
            weighed = _square(gone), below, _square(far)
        units = eqx.tree_at(lambda units: units.sizes, self, sizes)
        return units, Squares(_square(loss_gradients), weighed)

    def unit(self, squares: "Squares | None", lengths, factors, overspent, keep):
        """(the units, whether the loss has just got its first gradient, and how large that is, the new state)."""
        rounds = keep * self.rounds + 1
        if squares is None:
            return self.ages, jnp.zeros((), bool), rounds, eqx.tree_at(lambda units: units.rounds, self, rounds)
        sizes = self.sizes
        if squares.weighed is None:
            sizes = keep * sizes + factors * lengths
            above, below, asleep = jnp.sqrt(squares.loss), sizes, jnp.ones_like(squares.loss)
        else:
            above, below, asleep = map(jnp.sqrt, squares.weighed)
        seen = (lengths > 0) | (self.ages > 0)
        ages = keep * self.ages + seen.astype(rounds.dtype)
        awake = self.awake | (squares.loss > 0)
        plain = ratio(jnp.where(awake, above / rounds, asleep) * ages, below)

        wakes = awake & ~self.awake
        # what was seen while the loss slept has another unit
        means = self.moves, self.along_loss, self.along_constraints
        moves, along_loss, along_each = (jnp.where(wakes, 0, mean) for mean in means)
        breaks_even = jnp.sqrt(ratio(along_loss, along_each))
        beyond = jnp.clip(overspent - _BEYOND, 0, 1)
        growth = self.growth + jnp.where(beyond > 0, 0.3 * beyond, -2 * self.growth / rounds)
        unit = jnp.maximum(plain, jnp.minimum(breaks_even, plain * 2 ** jnp.minimum(growth, 60)))
        state = Units(self.loss_gradients, awake, sizes, rounds, ages, moves, along_loss, along_each, growth)
        return unit, wakes, ratio(above / rounds, asleep), state

    def moved(self, old: Point, new: Point, of_constraints: Clipped, overspent, keep, always: bool) -> "Units":
        """After a move of the decision: the slopes along it join their means, `always` or where they may matter."""
        if self.ages.size == 0:
            return self

        def with_slopes() -> Units:
            move = tree.sub(new, old)
            square, of_loss = tree.dots(move, [move, self.loss_gradients])
            of_each = jax.vmap(lambda gradient: tree.dot(gradient, move))(of_constraints.gradient)
            return _with_slopes(self.numbers, square, of_loss, of_constraints.factor, of_each)

        if always:
            return eqx.combine(with_slopes(), self)
        matters = self.sampled(keep) | ((overspent > _NEAR) | (self.growth > _GROWN)).any()
        return eqx.combine(tree.choose(matters, with_slopes, self.numbers, old), self)

    def sampled(self, keep) -> Bool[Array, ""]:
        """Whether this is a round in which passes over memory are made that others can do without."""
        return (self.moves < _FIRST) | (self.rounds % _EVERY == 0) | (keep < 1)  # with memory, rounds are no count


class Squares(NamedTuple):
    """Squared lengths of the sum of the loss's gradients; on boxes, also weighed by distances."""

    loss: Float[Array, ""]
    weighed: tuple[Float[Array, ""], Float[Array, " m"], Float[Array, ""]] | None  # of the loss, constraints, and 1


@one_kernel
def _with_slopes(units: Units, square, of_loss, factors, of_each) -> Units:
    has_moved = square > 0
    of_loss, of_each = of_loss / units.rounds, factors * of_each
    keep = jnp.where(has_moved, 1 - 1 / (units.moves + 2), 1)
    slope = jnp.where(units.awake, ratio(of_loss**2, square), has_moved.astype(square.dtype))
    return eqx.tree_at(
        lambda units: (units.moves, units.along_loss, units.along_constraints),
        units,
        (
            units.moves + has_moved.astype(square.dtype),
            keep * units.along_loss + slope,
            keep * units.along_constraints + ratio(of_each**2, square),
        ),
    )


def _square(x: Point) -> Float[Array, ""]:
    return tree.dot(x, x)
