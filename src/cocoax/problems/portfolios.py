"""A portfolio that grows in the long run, within a limit on its risk."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core.facts import ProblemFacts, with_facts
from ..domains import ProbabilitySimplex
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem, Regularity
from .base import ExpectedLimit, Instance

_SPREAD = 0.3  # of an asset's growth around its mean


def _loss(x, r):
    return -jnp.log(jnp.vdot(r["growth"], x))


def _constraint(x, r):
    return jnp.vdot(r["risk"], x) - r["limit"]


class _Market(eqx.Module):
    """Draws rounds with the fields `growth`, `risk` and `limit`, around the means held here."""

    growth: Float[Array, " n"]  # mean
    risk: Float[Array, " n"]  # mean
    limit: Float[Array, ""]

    def __call__(self, key):
        growth_key, risk_key = jax.random.split(key)
        growth = self.growth + _SPREAD * jax.random.uniform(growth_key, self.growth.shape, minval=-1, maxval=1)
        risk = self.risk * jax.random.uniform(risk_key, self.risk.shape, minval=0.5, maxval=1.5)
        return {"growth": growth, "risk": risk, "limit": self.limit}


@with_facts(ProblemFacts("a probability simplex", "growth of wealth within a limit on risk"))
def portfolio(key: PRNGKeyArray, *, assets: int = 10) -> Instance:
    r"""$f_t(x) = -\log\langle r_t, x\rangle$ and $g_t(x) = \langle s_t, x\rangle - \rho$ over the probability simplex.

    In each round an asset's price is multiplied by $r$, uniform around a mean in [0.95, 1.15]; $s$ is the risk of a
    portfolio of that asset alone. Risk grows with the mean growth, more or less by chance, and is at most 1. The limit
    lies half-way between the safest asset and the one that grows most. Wealth after T rounds is $e^{-\sum_t f_t(x_t)}$,
    if rebalancing is free.

    >>> import jax
    >>> instance = portfolio(jax.random.key(0))
    >>> best = instance.comparator(instance.rounds(200, jax.random.key(1)))
    >>> bool(best.value < 0 < best.multiplier[0])
    True
    """
    if assets < 2:
        raise ProblemError(f"portfolio needs assets >= 2, got {assets}")
    growth_key, risk_key = jax.random.split(key)
    growth = jax.random.uniform(growth_key, (assets,), minval=0.95, maxval=1.15)
    luck = jax.random.uniform(risk_key, (assets,), minval=0.7, maxval=1.3)
    risk = luck * (0.1 + 0.4 * (growth - 0.95) / 0.2)
    limit = (risk.min() + risk[jnp.argmax(growth)]) / 2
    ratio = (1.15 + _SPREAD) / (0.95 - _SPREAD)
    problem = Problem(
        ProbabilitySimplex(assets),
        _loss,
        _constraint,
        regularity=(
            Regularity(ratio * assets**0.5, ratio**2 * assets, 1.0),
            Regularity(ratio, ratio**2, 1.0, norm=float("inf")),
        ),
    )
    return Instance(problem, Sampler(_Market(growth, risk, limit)), None, ExpectedLimit(risk, limit))
