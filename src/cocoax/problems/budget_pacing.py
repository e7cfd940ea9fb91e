"""Budget pacing: how much of each offer to buy, when value and price are seen only afterwards."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ..core import check
from ..core.facts import ProblemFacts, with_facts
from ..domains import Box
from ..errors import ProblemError
from ..problem.environment import Environment
from ..problem.problem import Problem, Regularity
from .base import ExpectedLimit, Instance


def _loss(x, r):
    return -jnp.vdot(r["value"], x)


def _constraint(x, r):
    return jnp.vdot(r["price"], x) - r["budget"]


class _Offers(Environment):
    """Draws rounds with the fields `value`, `price` and `budget`, around the means held here."""

    value: Float[Array, " n"]  # mean of each segment
    price: Float[Array, " n"]  # mean of each segment
    budget: Float[Array, ""]  # a round
    spread: Float[Array, ""]

    def init(self, key):
        return ()

    def emit(self, state, decision, key):
        value_key, price_key = jax.random.split(key)
        low, high = 1 - self.spread, 1 + self.spread
        value = self.value * jax.random.uniform(value_key, self.value.shape, minval=low, maxval=high)
        price = self.price * jax.random.uniform(price_key, self.price.shape, minval=low, maxval=high)
        return state, {"value": value, "price": price, "budget": self.budget}


class _Dearer(Environment):
    """The same offers, whose prices are multiplied by `factor(t)` in round t."""

    offers: _Offers
    factor: Callable

    def init(self, key):
        return jnp.zeros((), jnp.int32)

    def emit(self, state, decision, key):
        _, offer = self.offers.emit((), decision, key)
        return state + 1, offer | {"price": self.factor(state).astype(offer["price"].dtype) * offer["price"]}


class _Doubled(eqx.Module):
    """The factor 1 before round `age`, and 2 from then on."""

    age: Int[Array, ""]

    def __call__(self, t):
        return jnp.where(t >= self.age, 2.0, 1.0)


class _Season(eqx.Module):
    """A factor that rises and falls by 80% in each period."""

    period: Float[Array, ""]

    def __call__(self, t):
        return 1 + 0.8 * jnp.sin(2 * jnp.pi * t.astype(float) / self.period)


class _FromNothing(Box):
    """A box whose start is its lowest point."""

    def start(self):
        return self.lower

    def inradius(self):
        return jnp.zeros((), self.lower.dtype)


@with_facts(ProblemFacts("a box", "budgeted buying; prices may double, change with the season or span decades"))
def pacing(
    key: PRNGKeyArray,
    *,
    segments: int = 10,
    budget: Any = 0.5,
    doubles_at: Any = None,
    season: Any = None,
    decades: float = 0.0,
    values: Any = None,
    prices: Any = None,
    noise: float = 0.5,
    from_nothing: bool = False,
) -> Instance:
    r"""$f_t(x) = -\langle v_t, x\rangle$ and $g_t(x) = \langle p_t, x\rangle - \rho$ over $[0,1]^n$.

    Each round offers n segments, of which any fraction x may be bought; `budget` is $\rho$ as a fraction of what buying
    everything costs on average. The best fixed decision buys the segments with the best value for money.

    `doubles_at` is the number of rounds after which all prices double. The comparator then meets the budget over the
    rounds that are played, and learners that adapt can do better than any fixed decision. The same holds with `season`,
    the number of rounds in a period in which prices rise and fall by 80%.

    Prices differ by a factor of 5 at most, or are spread over `decades` powers of ten. `values` and `prices` are means
    to use instead of random ones; each round is uniform around them by `noise`. The first decision buys half of
    everything; with `from_nothing=True`, nothing.

    >>> import jax
    >>> instance = pacing(jax.random.key(0), budget=0.2)
    >>> rounds = instance.rounds(200, jax.random.key(1))
    >>> best = instance.comparator(rounds)
    >>> bool(abs(best.constraint.mean()) < 0.05)
    True
    """
    if values is not None or prices is not None:
        if values is None or prices is None or np.ndim(values) != 1 or np.shape(values) != np.shape(prices):
            raise ProblemError("values and prices must be given together, as vectors of one length")
        segments = len(values)
    if segments < 1 or not 0 < budget <= 1:
        raise ProblemError(f"pacing needs segments >= 1 and a budget in (0, 1], got {segments} and {budget}")
    if doubles_at is not None:
        check.whole(doubles_at, "doubles_at", ProblemError, low=0)
    if season is not None and (doubles_at is not None or not season > 0):
        raise ProblemError(f"season={season} must be a positive number of rounds, without doubles_at")
    value_key, price_key = jax.random.split(key)
    value = jax.random.uniform(value_key, (segments,), minval=0.2, maxval=1.0) / segments
    price = jax.random.uniform(price_key, (segments,), minval=0.2, maxval=1.0) / segments
    if decades:
        price = 10 ** jax.random.uniform(price_key, (segments,), minval=-decades, maxval=0.0) / segments
    if values is not None:
        value, price = jnp.asarray(values, float), jnp.asarray(prices, float)
    spend = budget * price.sum()
    dearest = 1.5 if doubles_at is None else 3.0
    usual = values is None and season is None and noise <= 0.5
    problem = Problem(
        (_FromNothing if from_nothing else Box)(jnp.zeros(segments), jnp.ones(segments)),
        _loss,
        _constraint,
        regularity=(
            Regularity(dearest / segments**0.5, 0.0, dearest),
            Regularity(dearest / segments, 0.0, dearest, norm=float("inf")),
        )
        if usual
        else None,
    )
    offers = _Offers(value, price, spend, jnp.asarray(noise, float))
    if doubles_at is not None:
        return Instance(problem, _Dearer(offers, _Doubled(jnp.asarray(doubles_at, jnp.int32))), None, None)
    if season is not None:
        return Instance(problem, _Dearer(offers, _Season(jnp.asarray(season, float))), None, None)
    return Instance(problem, offers, None, ExpectedLimit(price, spend))
