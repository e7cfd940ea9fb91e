"""AdaHedge: shares of several costs without a bound on them and without a horizon (de Rooij et al., 2014)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.compiling import one_kernel
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

    @classmethod
    def begin(cls, shares: Float[Array, " d"]) -> "Hedge":
        """A prior of at least 1/d^2 each."""
        prior = jnp.maximum(shares, 1 / shares.size**2)
        prior = prior / prior.sum()
        return cls(jnp.log(prior), jnp.zeros_like(shares), jnp.zeros((), shares.dtype), prior)

    def observe(self, costs: Float[Array, " d"], span, keep) -> "Hedge":
        """After a round with these costs, of which no two can differ by more than `span`; sums forget 1 - keep."""
        shares, rate = self.shares, _rate(self.gap, costs.size)
        least, lowest = tree.smallest(costs), tree.smallest(self.sums)
        above, before = costs - least, self.sums - lowest
        shift = tree.smallest(before + costs)  # so that no total below is 0

        def log_total(now):  # not of the shares, which may round to 0
            return jnp.log(jnp.exp(self.prior - rate * (before + now * (costs - shift))).sum())

        without, with_it = jax.vmap(log_total)(jnp.arange(2, dtype=costs.dtype))  # this round
        mixed = shift - least + ratio(without - with_it, rate)
        gap = jnp.where(self.gap > 0, keep * self.gap + jnp.maximum(tree.dot(shares, above) - mixed, 0), 0.5 * span)
        sums = keep * self.sums + costs
        away = sums - tree.smallest(sums)
        weights = jnp.exp(self.prior - _rate(gap, sums.size) * away)  # the largest is at least d^-3
        return Hedge(self.prior, sums, gap, weights * (1 / weights.sum()))

    def stepped(self, costs: Float[Array, " d"], rate) -> "Hedge":
        r"""After a round with these costs, by a given rate: $w\propto w\,e^{-\eta c}$, which is the next prior."""
        logs = jax.nn.log_softmax(self.prior - rate * costs)
        return Hedge(logs, self.sums, self.gap, jnp.exp(logs))


class Pair(eqx.Module):
    """`Hedge` over two, in numbers: S and w are the first's, compared with the second's."""

    sums: Float[Array, ""]
    gap: Float[Array, ""]
    share: Float[Array, ""]

    @classmethod
    def begin(cls, dtype) -> "Pair":
        return cls(jnp.zeros((), dtype), jnp.zeros((), dtype), jnp.full((), 0.5, dtype))

    @one_kernel
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
