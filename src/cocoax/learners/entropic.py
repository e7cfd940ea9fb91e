"""AdaHedge on a simplex, and how much of it to play beside another decision (de Rooij et al., 2014)."""

import equinox as eqx
from jaxtyping import Array, Float

from ..core import tree
from ..primal.hedge import Hedge, Pair


class Entropic(eqx.Module):
    """AdaHedge over the coordinates of a simplex; a second one weighs it against another decision."""

    total: Float[Array, ""]  # of the simplex's entries
    coordinates: Hedge
    both: Pair

    @classmethod
    def begin(cls, total, start: Float[Array, " d"]) -> "Entropic":
        total = total.astype(start.dtype)
        return cls(total, Hedge.begin(start / total), Pair.begin(start.dtype))

    def mixed_with(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        """What to play, where the other decision is `point`."""
        share = self.both.share
        return share * point + (1 - share) * self.total * self.coordinates.shares

    def forget_costs(self, when) -> "Entropic":
        return Entropic(self.total, self.coordinates.forget_costs(when), self.both.forget_costs(when))

    def observe(self, point: Float[Array, " d"], gradient: Float[Array, " d"], keep) -> "Entropic":
        least = gradient.min()
        span = gradient.max() - least
        cost = self.total * (least + tree.dot(self.coordinates.shares, gradient - least))
        coordinates = self.coordinates.observe(gradient, span, keep)
        return Entropic(
            self.total, coordinates, self.both.observe(tree.dot(gradient, point) - cost, self.total * span, keep)
        )
