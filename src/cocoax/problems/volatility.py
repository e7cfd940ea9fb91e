"""A portfolio with a limit on its variance, while volatility drifts."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core.facts import ProblemFacts, with_facts
from ..domains import ProbabilitySimplex
from ..errors import ProblemError
from ..problem.environment import Environment
from ..problem.problem import Problem
from .base import Instance

_CALM, _WILD = 0.5, 2.5  # variance in the two regimes, times the usual one
_LEAVING = 1 / 250, 1 / 60  # chance a round to leave the calm and the wild regime
_SHOCK, _MEMORY = 0.1, 0.85  # of GARCH(1, 1)


def _loss(x, r):
    return -jnp.vdot(r["growth"], x)


def _constraint(x, r):
    return jnp.vdot(r["change"], x) ** 2 - r["budget"]


class _Market(Environment):
    """Draws rounds with the fields `growth`, `change` and `budget`; the state is (is the regime wild, variance)."""

    growth: Float[Array, " n"]  # mean
    loadings: Float[Array, "n k"]
    budget: Float[Array, ""]

    def init(self, key):
        return jnp.zeros((), bool), jnp.ones(())  # whether the regime is wild; the variance

    def emit(self, state, decision, key):
        wild, variance = state
        switch_key, factor_key, growth_key = jax.random.split(key, 3)
        wild = jnp.where(jax.random.uniform(switch_key) < jnp.where(wild, _LEAVING[1], _LEAVING[0]), ~wild, wild)
        factors = jax.random.normal(factor_key, self.loadings.shape[1:])
        now = variance * jnp.where(wild, _WILD, _CALM)
        shock = jnp.mean(factors**2)
        after = (1 - _SHOCK - _MEMORY) + (_SHOCK * shock + _MEMORY) * variance
        growth = now * self.growth * jax.random.uniform(growth_key, self.growth.shape, minval=0, maxval=2)
        change = jnp.sqrt(now) * (self.loadings @ factors)
        return (wild, after), {"growth": growth, "change": change, "budget": self.budget}


@with_facts(ProblemFacts("a probability simplex", "a limit on variance while volatility drifts"))
def volatile_portfolio(key: PRNGKeyArray, *, assets: int = 8) -> Instance:
    r"""$f_t(x) = -\langle m_t, x\rangle$ and $g_t(x) = \langle r_t, x\rangle^2 - \rho$ over the probability simplex.

    The forecasts m of an asset's growth are about a tenth of a per cent, and its changes r about a per cent, like daily
    ones. Assets that grow more vary more; the first asset is cash. The changes have GARCH(1, 1) volatility, times that
    of a regime: calm for 250 rounds on average, then wild for 60 with 5 times the variance. Growth is proportional to
    the current variance, so that a fixed portfolio is good at all times: waiting for calm gains nothing. The budget
    $\rho$ is a third of the variance of the asset that grows most.

    >>> import jax
    >>> instance = volatile_portfolio(jax.random.key(0))
    >>> best = instance.comparator(instance.rounds(500, jax.random.key(1)))
    >>> bool(best.multiplier[0] > 0)
    True
    """
    if assets < 2:
        raise ProblemError(f"volatile_portfolio needs assets >= 2, got {assets}")
    growth_key, load_key = jax.random.split(key)
    risk = jnp.linspace(0.0, 0.02, assets)
    growth = 2e-4 + 0.05 * risk * jax.random.uniform(growth_key, (assets,), minval=0.7, maxval=1.3)
    directions = jnp.ones((assets, 1)) + jax.random.normal(load_key, (assets, assets)) / assets**0.5
    loadings = risk[:, None] * directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
    usual = 0.8 * _CALM + 0.2 * _WILD
    budget = usual * risk[jnp.argmax(growth)] ** 2 / 3
    problem = Problem(ProbabilitySimplex(assets), _loss, _constraint)
    return Instance(problem, _Market(growth, loadings, budget), None, None)
