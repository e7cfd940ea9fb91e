"""Budget pacing: how much of each offer to buy, when value and price are seen only afterwards."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ..core import check
from ..core.facts import ProblemFacts, with_facts
from ..domains import Box
from ..errors import ProblemError
from ..problem.environment import Environment
from ..problem.problem import Problem, Regularity
from .base import Instance


def _loss(x, r):
    return -jnp.vdot(r["value"], x)


def _constraint(x, r):
    return jnp.vdot(r["price"], x) - r["budget"]


class _Offers(Environment):
    value: Float[Array, " n"]  # mean of each segment
    price: Float[Array, " n"]  # mean of each segment
    budget: Float[Array, ""]  # a round

    def init(self, key):
        return ()

    def emit(self, state, decision, key):
        value_key, price_key = jax.random.split(key)
        value = self.value * jax.random.uniform(value_key, self.value.shape, minval=0.5, maxval=1.5)
        price = self.price * jax.random.uniform(price_key, self.price.shape, minval=0.5, maxval=1.5)
        return state, {"value": value, "price": price, "budget": self.budget}


class _Dearer(Environment):
    """Offers whose prices double at some age."""

    offers: _Offers
    age: Int[Array, ""]

    def init(self, key):
        return jnp.zeros((), jnp.int32)

    def emit(self, state, decision, key):
        _, offer = self.offers.emit((), decision, key)
        factor = jnp.where(state >= self.age, 2.0, 1.0).astype(offer["price"].dtype)
        return state + 1, offer | {"price": factor * offer["price"]}


class _Expected(eqx.Module):
    price: Float[Array, " n"]
    budget: Float[Array, ""]

    def __call__(self, x):
        return jnp.vdot(self.price, x) - self.budget


@with_facts(ProblemFacts("a box", "budgeted buying; prices may double"))
def pacing(key: PRNGKeyArray, *, segments: int = 10, budget: Any = 0.5, doubles_at: Any = None) -> Instance:
    r"""$f_t(x) = -\langle v_t, x\rangle$ and $g_t(x) = \langle p_t, x\rangle - \rho$ over $[0,1]^n$.

    Each round offers n segments, of which any fraction x may be bought; `budget` is $\rho$ as a fraction of what buying
    everything costs on average. The best fixed decision buys the segments with the best value for money.
    `doubles_at` is the number of rounds after which all prices double; the comparator then meets the budget over the
    rounds that are played, and learners that adapt can do better than any fixed decision.

    >>> import jax
    >>> instance = pacing(jax.random.key(0), budget=0.2)
    >>> rounds = instance.rounds(200, jax.random.key(1))
    >>> best = instance.comparator(rounds)
    >>> bool(abs(best.constraint.mean()) < 0.05)
    True
    """
    if segments < 1 or not 0 < budget <= 1:
        raise ProblemError(f"pacing needs segments >= 1 and a budget in (0, 1], got {segments} and {budget}")
    if doubles_at is not None:
        check.whole(doubles_at, "doubles_at", ProblemError, low=0)
    value_key, price_key = jax.random.split(key)
    value = jax.random.uniform(value_key, (segments,), minval=0.2, maxval=1.0) / segments
    price = jax.random.uniform(price_key, (segments,), minval=0.2, maxval=1.0) / segments
    spend = budget * price.sum()
    dearest = 1.5 if doubles_at is None else 3.0
    problem = Problem(
        Box(jnp.zeros(segments), jnp.ones(segments)),
        _loss,
        _constraint,
        regularity=(
            Regularity(dearest / segments**0.5, 0.0, dearest),
            Regularity(dearest / segments, 0.0, dearest, norm=float("inf")),
        ),
    )
    offers = _Offers(value, price, spend)
    if doubles_at is None:
        return Instance(problem, offers, None, _Expected(price, spend))
    return Instance(problem, _Dearer(offers, jnp.asarray(doubles_at, jnp.int32)), None, None)
