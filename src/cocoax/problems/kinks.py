"""Losses with kinks: how much to stock (pinball), and a classifier (hinge)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core.facts import ProblemFacts, with_facts
from ..domains import Box, L2Ball
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem
from .base import Instance, used_beyond_budget


class _Stock(eqx.Module):
    """The loss: the cost of unmet demand and of leftover stock."""

    missed: Float[Array, " n"]
    left: Float[Array, " n"]

    def __call__(self, x, r):
        short = r["demand"] - x
        return jnp.sum(jnp.maximum(self.missed.astype(x.dtype) * short, -self.left.astype(x.dtype) * short))


def _hinge(x, r):
    return jnp.maximum(1 - jnp.vdot(r["features"], x), 0)


class _Demand(eqx.Module):
    """Draws rounds with the fields `demand`, `use` (prices) and `budget`."""

    demand: Float[Array, " n"]
    price: Float[Array, " n"]
    budget: Float[Array, ""]

    def __call__(self, key):
        demand_key, price_key = jax.random.split(key)
        demand = self.demand * jax.random.uniform(demand_key, self.demand.shape, minval=0.25, maxval=1.75)
        price = self.price * jax.random.uniform(price_key, self.price.shape, minval=0.5, maxval=1.5)
        return {"demand": demand, "use": price, "budget": self.budget}


class _Labelled(eqx.Module):
    """Draws rounds with the fields `features` (times the label), `use` and `budget`."""

    truth: Float[Array, " n"]
    group: Float[Array, " n"]

    def __call__(self, key):
        feature_key, label_key, group_key = jax.random.split(key, 3)
        raw = jax.random.normal(feature_key, self.truth.shape)
        label = jnp.sign(jnp.vdot(raw, self.truth)) * jnp.where(jax.random.uniform(label_key) < 0.1, -1.0, 1.0)
        use = self.group + 0.5 * jax.random.normal(group_key, self.truth.shape)
        return {"features": label * raw, "use": use, "budget": jnp.full((), 0.5)}


@with_facts(ProblemFacts("a box", "pinball losses within a budget"))
def newsvendor(key: PRNGKeyArray, *, goods: int = 8) -> Instance:
    r"""$f_t(x) = \sum_i\max(b_i(d_{ti}-x_i), h_i(x_i-d_{ti}))$, $g_t(x) = \langle p_t, x\rangle - \rho$ on $[0,1]^n$.

    How much of each good to stock before its demand d is seen: a unit that is missing costs b in [1, 3], a unit that is
    left over h in $[\frac14, 1]$. The optimum without a budget is a quantile of the demand for each good; the budget
    $\rho$ is half of what the mean demand costs.

    >>> import jax
    >>> instance = newsvendor(jax.random.key(0))
    >>> best = instance.comparator(instance.rounds(100, jax.random.key(1)))
    >>> bool(best.multiplier[0] > 0)
    True
    """
    if goods < 1:
        raise ProblemError(f"newsvendor needs goods >= 1, got {goods}")
    demand_key, price_key, missed_key, left_key = jax.random.split(key, 4)
    demand = jax.random.uniform(demand_key, (goods,), minval=0.2, maxval=0.5)
    price = jax.random.uniform(price_key, (goods,), minval=0.2, maxval=1.0)
    missed = jax.random.uniform(missed_key, (goods,), minval=1.0, maxval=3.0)
    left = jax.random.uniform(left_key, (goods,), minval=0.25, maxval=1.0)
    problem = Problem(Box(jnp.zeros(goods), jnp.ones(goods)), _Stock(missed, left), used_beyond_budget)
    return Instance(problem, Sampler(_Demand(demand, price, jnp.vdot(price, demand) / 2)), None, None)


@with_facts(ProblemFacts("an l2 ball", "hinge losses, a limit on what a group is favoured by"))
def classification(key: PRNGKeyArray, *, n: int = 10, radius: float = 3.0) -> Instance:
    r"""$f_t(x) = [1 - y_t\langle a_t, x\rangle]_+$ and $g_t(x) = \langle e_t, x\rangle - \frac12$ with $\|x\|_2\le r$.

    Features are normal. Labels come from a unit vector w, and one in ten is wrong. The direction that favours a group,
    the mean of e, is a unit vector at 45 degrees to w.

    >>> import jax
    >>> instance = classification(jax.random.key(0))
    >>> instance.rounds(30, jax.random.key(1))["features"].shape
    (30, 10)
    """
    if n < 2:
        raise ProblemError(f"classification needs n >= 2, got {n}")
    raw = jnp.linalg.qr(jax.random.normal(key, (n, 2))).Q.T
    problem = Problem(L2Ball(n, radius), _hinge, used_beyond_budget)
    return Instance(problem, Sampler(_Labelled(raw[0], (raw[0] + raw[1]) / 2**0.5)), None, None)
