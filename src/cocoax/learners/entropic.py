"""AdaHedge on a simplex, and how much of it to play beside another decision (de Rooij et al., 2014)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.tree import ratio


class Hedge(eqx.Module):
    r"""Shares $w\propto p\,e^{-\eta S}$ with $\eta=\ln d/\Delta$: S the sums of costs, $\Delta$ the mixability gap.

    It needs no bound on the costs, and no horizon. The gap begins with half of the first round's `span` (0 in the
    paper, which follows the leader at first, also where rounding alone sees one); before, shares are the prior's.
    """

    prior: Float[Array, " d"]  # logarithms
    sums: Float[Array, " d"]
    gap: Float[Array, ""]

    @classmethod
    def begin(cls, shares: Float[Array, " d"]) -> "Hedge":
        """A prior of at least 1/d^2 each."""
        prior = jnp.maximum(shares, 1 / shares.size**2)
        return cls(jnp.log(prior / prior.sum()), jnp.zeros_like(shares), jnp.zeros((), shares.dtype))

    def _rate(self):
        return ratio(jnp.log(jnp.asarray(float(self.sums.size), self.gap.dtype)), self.gap)

    def shares(self) -> Float[Array, " d"]:
        return jax.nn.softmax(self.prior - self._rate() * (self.sums - self.sums.min()))

    def observe(self, costs: Float[Array, " d"], span, keep) -> "Hedge":
        """After a round with these costs, of which no two can differ by more than `span`; sums forget 1 - keep."""
        shares, rate = self.shares(), self._rate()
        above = costs - costs.min()
        mixed = -ratio(jnp.log(shares @ jnp.exp(-rate * above)), rate)
        gap = jnp.where(self.gap > 0, keep * self.gap + jnp.maximum(shares @ above - mixed, 0), 0.5 * span)
        return Hedge(self.prior, keep * self.sums + costs, gap)


class Entropic(eqx.Module):
    """AdaHedge over the coordinates of a simplex; a second one weighs it against another decision."""

    total: Float[Array, ""]  # of the simplex's entries
    coordinates: Hedge
    both: Hedge

    @classmethod
    def begin(cls, total, start: Float[Array, " d"]) -> "Entropic":
        total = total.astype(start.dtype)
        return cls(total, Hedge.begin(start / total), Hedge.begin(jnp.full(2, 0.5, start.dtype)))

    def mixed_with(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        """What to play, where the other decision is `point`."""
        share = self.both.shares()
        return share[0] * point + share[1] * self.total * self.coordinates.shares()

    def observe(self, point: Float[Array, " d"], gradient: Float[Array, " d"], keep) -> "Entropic":
        costs = jnp.stack([gradient @ point, self.total * (gradient @ self.coordinates.shares())])
        span = gradient.max() - gradient.min()
        coordinates = self.coordinates.observe(gradient, span, keep)
        return Entropic(self.total, coordinates, self.both.observe(costs, self.total * span, keep))
