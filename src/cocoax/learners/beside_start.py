"""The start beside a decision: it is left as soon as moving has surely paid."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.tree import ratio
from ..domains.base import Point

_ODDS = 4.0  # of the decision against the start, where nothing is sure
_SURE = 2.0  # by how much one standard deviation changes the logarithm of the odds
_FIRST = 2.0  # as if so many usual rounds had said that moving pays


class BesideStart(eqx.Module):
    r"""A share $1/(1+4e^{-2z})$ of the start is kept, where z says how surely the start would have cost less.

    $z=\sum c/\sqrt{\sum c^2}$, where c is by how much the decision cost more than the start in a round, over the mean
    size of that so far, to which the k-th round counts k times. So large costs of the first rounds do not keep a share
    of the start for ever, and rare costs count by their size. The sums begin with two rounds of c = -1, and the share
    at 1.5%: so the start is left at once where each round says so.
    """

    sum: Float[Array, ""]
    squares: Float[Array, ""]
    size: Float[Array, ""]  # mean |c|, in the unit of costs
    rounds: Float[Array, ""]  # those in which the two differed

    @classmethod
    def begin(cls, dtype) -> "BesideStart":
        zero = jnp.zeros((), dtype)
        return cls(zero - _FIRST, zero + _FIRST, zero, zero)

    @property
    def share(self) -> Float[Array, ""]:
        """Of the start."""
        return 1 / (1 + _ODDS * jnp.exp(-_SURE * ratio(self.sum, jnp.sqrt(self.squares))))

    def mixed_with(self, point: Point, start: Point) -> Point:
        """What to play, where the decision would be `point`."""
        return tree.mix(point, start, self.share)

    def forget_costs(self, when) -> "BesideStart":
        """Begin anew, where costs have got another unit."""
        return tree.where(when, BesideStart.begin(self.size.dtype), self)

    def observe(self, excess, keep) -> "BesideStart":
        """After a round in which the decision cost `excess` more than the start."""
        differs = excess != 0
        share = jnp.where(differs, 2 / (self.rounds + 2), 0)
        size = self.size + share * (jnp.abs(excess) - self.size)
        cost = ratio(excess, size)
        rounds = keep * self.rounds + differs.astype(size.dtype)
        return BesideStart(keep * self.sum + cost, keep * self.squares + cost**2, size, rounds)
