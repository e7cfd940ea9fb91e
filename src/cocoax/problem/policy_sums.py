"""What the rounds so far prove about every policy that sees requests: sums of the dual function at fixed prices."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import tree
from ..core.sums import compensated_add
from ..domains.base import Point
from .lagrangian import best_answer, proven_least
from .linearity import is_linear
from .minorants import tangents
from .problem import Problem, Round

_FIRST = 64  # rounds after which prices are fixed
_SCALES = (0.0, *(2 ** (k / 6) for k in range(-12, 13)))  # of the mean multiplier of those rounds


class PolicySums(eqx.Module):
    r"""Sums of $D_t(\lambda)=\min_{x\in X}f_t(x)+\langle\lambda,g_t(x)\rangle$ at 26 prices $\lambda$.

    By weak duality no policy that meets $\sum_tg_t(x_t)\le0$ has less loss than $\sum_tD_t(\lambda)$, for any
    $\lambda\ge0$. The prices are 0 and multiples of the mean multiplier of the first 64 rounds, from a quarter to four
    times; these rounds are kept, as tangents, until the prices are known.
    """

    prices: Float[Array, "prices m"]
    sums: Float[Array, " prices"]
    lost: Float[Array, " prices"]  # what rounding has taken from them
    first: tuple[Float[Array, "first n"], Point]  # tangents of the first rounds: offsets and slopes
    multiplier: Float[Array, " m"]  # summed over the first rounds
    rounds: Int[Array, ""]

    @classmethod
    def none(cls, problem: Problem, like: Point) -> "PolicySums":
        """The sums over no rounds, for decisions like `like`."""
        m, kind = problem.constraints, tree.dtype(like)
        zero = jnp.zeros(len(_SCALES), kind)
        slopes = jax.tree.map(lambda leaf: jnp.zeros((_FIRST, m + 1, *leaf.shape), leaf.dtype), like)
        first = jnp.zeros((_FIRST, m + 1), kind), slopes
        return cls(jnp.zeros((len(_SCALES), m), kind), zero, zero, first, jnp.zeros(m, kind), jnp.zeros((), jnp.int32))

    def with_round(self, problem: Problem, x: Point, round: Round, multiplier: Any) -> "PolicySums":
        """The sums after one more round, in which x was played at this multiplier."""
        return jax.lax.cond(
            self.rounds < _FIRST,
            lambda: self._kept(problem, x, round, multiplier),
            lambda: self._added(problem, x, round),
        )

    def _kept(self, problem, x, round, multiplier):
        """The sums while the prices are not final: keep the round's tangents and recompute prices and sums."""
        first = jax.tree.map(
            lambda old, new: old.at[self.rounds].set(new), self.first, tangents(problem, x, round)
        )  # those that are not there yet are 0, and so is their minimum
        total = self.multiplier + multiplier
        mean = total / (self.rounds + 1).astype(total.dtype)
        prices = jnp.asarray(_SCALES, mean.dtype)[:, None] * jnp.maximum(mean, 0)[None]

        def of_all(price):
            values = jax.vmap(lambda tangent: proven_least(problem, tangent, _weights(price)))(first)
            rounding = 0.5 * _FIRST * float(jnp.finfo(values.dtype).eps)  # of that many additions
            return values.sum() - rounding * jnp.abs(values).sum()

        sums = jax.vmap(of_all)(prices)
        return PolicySums(prices, sums, jnp.zeros_like(sums), first, total, self.rounds + 1)

    def _added(self, problem, x, round):
        """The sums once the prices are final: add the round's minimum at each price."""
        linear = is_linear(problem, round)  # then all tangents are the same

        def least(price):
            at = x if linear else best_answer(problem, round, price, start=x).proof
            return proven_least(problem, tangents(problem, at, round), _weights(price))

        sums, lost = compensated_add(self.sums, self.lost, jax.vmap(least)(self.prices))
        return PolicySums(self.prices, sums, lost, self.first, self.multiplier, self.rounds + 1)

    def lower_bounds(self) -> Float[Array, " prices"]:
        """For each price: a lower bound on the total loss of every policy that meets the constraints."""
        return self.sums - self.lost

    def best_lower_bound(self) -> Float[Array, ""]:
        """The highest of `lower_bounds()`; minus infinity if none is finite."""
        lower = self.lower_bounds()
        return jnp.where(jnp.isfinite(lower), lower, -jnp.inf).max()


def _weights(price):
    """(1, price): the weights of the loss and of each constraint."""
    return jnp.concatenate([jnp.ones_like(price, shape=1), price])
