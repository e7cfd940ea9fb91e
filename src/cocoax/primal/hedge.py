"""AdaHedge: shares of several costs without a bound on them and without a horizon (de Rooij et al., 2014)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.tree import ratio


class Hedge(eqx.Module):
    r"""Shares $w\propto p\,e^{-\eta S}$ with $\eta=\ln d/\Delta$: S the sums of costs, $\Delta$ the mixability gap.

    It needs no bound on the costs, and no horizon. Shares are the prior's until the first round, whose gap is half of
    its `span`. (In the paper it is 0: shares then follow the leader, and rounding alone may decide who that is.)
    """

    prior: Float[Array, " d"]  # logarithms
    sums: Float[Array, " d"]
    gap: Float[Array, ""]
    shares: Float[Array, " d"]  # w
    lowest: Float[Array, ""]  # of the sums
    normaliser: Float[Array, ""]  # sum of p exp(-eta (S - min S)), by which the shares were divided

    @classmethod
    def begin(cls, shares: Float[Array, " d"]) -> "Hedge":
        """A prior of at least 1/d^2 each."""
        prior = jnp.maximum(shares, 1 / shares.size**2)
        prior, zero = prior / prior.sum(), jnp.zeros((), shares.dtype)
        return cls(jnp.log(prior), jnp.zeros_like(shares), zero, prior, zero, zero + 1)

    def forget_costs(self, when) -> "Hedge":
        """Begin the sums anew, where costs have got another unit; the present shares are still those of this round."""
        sums, gap, lowest = (jnp.where(when, 0, each) for each in (self.sums, self.gap, self.lowest))
        return Hedge(self.prior, sums, gap, self.shares, lowest, jnp.where(when, 1, self.normaliser))

    def observe(self, costs: Float[Array, " d"], span, keep) -> "Hedge":
        """After a round with these costs, of which no two can differ by more than `span`; sums forget 1 - keep."""
        shares, rate = self.shares, _rate(self.gap, costs.size)
        least = costs.min()
        above, before = costs - least, self.sums - self.lowest
        shift = (before + costs).min()  # so that the weight below is not 0
        later = jnp.exp(self.prior - rate * (before + (costs - shift))).sum()  # not of the shares, which may round to 0
        mixed = shift - least + ratio(jnp.log(self.normaliser) - jnp.log(later), rate)
        gap = jnp.where(self.gap > 0, keep * self.gap + jnp.maximum(tree.dot(shares, above) - mixed, 0), 0.5 * span)
        sums = keep * self.sums + costs
        lowest = sums.min()
        weights = jnp.exp(self.prior - _rate(gap, sums.size) * (sums - lowest))  # the largest is at least d^-3
        normaliser = weights.sum()
        return Hedge(self.prior, sums, gap, weights * (1 / normaliser), lowest, normaliser)

    def stepped(self, costs: Float[Array, " d"], rate) -> "Hedge":
        r"""After a round with these costs, by a given rate: $w\propto w\,e^{-\eta c}$, which is the next prior.

        Sums stay 0: it is never mixed with `observe`.
        """
        logs = jax.nn.log_softmax(self.prior - rate * costs)
        return Hedge(logs, self.sums, self.gap, jnp.exp(logs), self.lowest, self.normaliser)


class Pair(eqx.Module):
    """`Hedge` over two, in numbers: S and w are the first's, compared with the second's."""

    sums: Float[Array, ""]
    gap: Float[Array, ""]
    share: Float[Array, ""]

    @classmethod
    def begin(cls, dtype) -> "Pair":
        return cls(jnp.zeros((), dtype), jnp.zeros((), dtype), jnp.full((), 0.5, dtype))

    def forget_costs(self, when) -> "Pair":
        """Begin the sums anew, where costs have got another unit; the present share is still that of this round."""
        return Pair(jnp.where(when, 0, self.sums), jnp.where(when, 0, self.gap), self.share)

    def observe(self, excess, span, keep) -> "Pair":
        """After a round in which the first cost `excess` more than the second."""
        rate, above = _rate(self.gap, 2), jnp.abs(excess)
        worse = jnp.where(excess > 0, self.share, 1 - self.share)
        odds = jnp.where(excess > 0, -1, 1) * rate * self.sums  # their logarithm; the share may round to 1
        mixed = ratio(jax.nn.softplus(odds) - jax.nn.softplus(odds - rate * above), rate)
        gap = jnp.where(self.gap > 0, keep * self.gap + jnp.maximum(worse * above - mixed, 0), 0.5 * span)
        sums = keep * self.sums + excess
        return Pair(sums, gap, jax.nn.sigmoid(-_rate(gap, 2) * sums))


def _rate(gap, d: int):
    return math.log(d) / jnp.where(gap != 0, gap, jnp.inf)
