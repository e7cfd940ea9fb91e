"""Losses that have a pole at the boundary of the simplex: x log x, and log-loss."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, Float, PRNGKeyArray

from ..comparators.comparator import Comparator
from ..core.facts import ProblemFacts, with_facts
from ..domains import ProbabilitySimplex
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem
from .base import Instance, used_beyond_budget


def _entropy(x, r):
    return jnp.vdot(r["cost"], x) + jnp.sum(xlogy(x, x))


def _log_loss(x, r):
    return -jnp.log(x[r["symbol"]])


class _Rounds(eqx.Module):
    """Draws rounds with the fields `cost`, `symbol`, `use` and `budget`."""

    likely: Float[Array, " n"]  # the optimum without constraint
    use: Float[Array, " n"]
    budget: Float[Array, ""]

    def __call__(self, key):
        symbol_key, cost_key, use_key = jax.random.split(key, 3)
        cost = -jnp.log(self.likely) + jax.random.uniform(cost_key, self.likely.shape, minval=-3, maxval=3)
        use = self.use + 0.25 * jax.random.uniform(use_key, self.use.shape, minval=-1, maxval=1)
        symbol = jax.random.categorical(symbol_key, jnp.log(self.likely)).astype(jnp.int32)
        return {"cost": cost, "symbol": symbol, "use": use, "budget": self.budget}


class _Entropic(Instance):
    """The instance with the entropy, whose comparator has a formula."""

    def comparator(self, rounds, **options):
        r"""The point $x\propto\exp(-(\sum_tc_t + \lambda\sum_ta_t)/T)$, whose Lagrangian bound is exact.

        $\lambda$ is found by bisection. `hindsight` would run into the pole.
        """
        cost, use, budget = (np.asarray(rounds[name], np.float64).sum(0) for name in ("cost", "use", "budget"))
        count = len(rounds["budget"])

        def point(multiplier):
            """(x for this multiplier, its Lagrangian lower bound)."""
            logits = -(cost + multiplier * use) / count
            weights = np.exp(logits - logits.max())
            bound = -count * (np.log(weights.sum()) + logits.max()) - multiplier * budget
            return weights / weights.sum(), bound

        def slack(multiplier):
            return budget - use @ point(multiplier)[0]

        low, high = 0.0, float(slack(0.0) < 0)
        while slack(high) < 0 and high < 1e9:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if slack(middle) < 0 else (low, middle)
        x, bound = point(high)
        best, multiplier = Comparator.fixed(self.problem, rounds, x), np.array([high])
        price = np.maximum(2 * multiplier, best.price)
        bound = np.asarray(bound)
        return Comparator(best.x, best.loss, best.constraint, best.value, bound, multiplier, price, best.names)


@with_facts(ProblemFacts("a probability simplex", "losses with poles at the boundary"))
def poles(key: PRNGKeyArray, *, n: int = 10, loss: Literal["entropy", "log"] = "entropy") -> Instance:
    r"""$f_t(x) = \langle c_t, x\rangle + \sum_i x_i\log x_i$ or $f_t(x) = -\log x_{i_t}$ over the probability simplex.

    Where an entry is 0, the entropy's gradient and the log-loss itself are infinite. The optimum without constraint is
    p with $p_i\propto1/i^2$, or $1/i$ for log-loss, in random order: costs are $c_t = -\log p + U[-3,3]^n$, and symbols
    $i_t$ are drawn from p. The constraint is $g_t(x) = \langle a_t, x\rangle - b$ as in `simplex`. With the entropy,
    unlikely entries use more, so that the constraint drives decisions towards the boundary; with log-loss it is the
    other way round. The limit b lies half-way between the least possible use and that of p.

    >>> import jax
    >>> instance = poles(jax.random.key(0))
    >>> best = instance.comparator(instance.rounds(100, jax.random.key(1)))
    >>> bool(best.x.min() > 0)
    True
    """
    if n < 2:
        raise ProblemError(f"poles needs n >= 2, got {n}")
    if loss not in ("entropy", "log"):
        raise ProblemError(f"loss must be 'entropy' or 'log', got {loss!r}")
    weights = (1 + jax.random.permutation(key, n).astype(float)) ** (-2 if loss == "entropy" else -1)
    likely = weights / weights.sum()
    share = likely / likely.max()
    use = 0.25 + 0.5 * (1 - share if loss == "entropy" else share)
    budget = (use.min() + jnp.vdot(use, likely)) / 2
    problem = Problem(ProbabilitySimplex(n), _entropy if loss == "entropy" else _log_loss, used_beyond_budget)
    kind = _Entropic if loss == "entropy" else Instance
    return kind(problem, Sampler(_Rounds(likely, use, budget)), None, None)
