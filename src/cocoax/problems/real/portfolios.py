"""Stocks of the past: growth of wealth after fees, within limits on volatility, tail losses and turnover."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...comparators.hindsight import hindsight
from ...core import check
from ...core.facts import ProblemFacts, with_facts
from ...data.stored import load
from ...domains import ProbabilitySimplex
from ...dual.robust_pi import RobustPI
from ...errors import ProblemError
from ...games.play import play
from ...learners.primal_dual import PrimalDual
from ...primal.exponentiated_gradient import ExponentiatedGradient
from ...problem.problem import Problem, Round
from .recorded import RealInstance

_TAIL = 0.05  # CVaR is the mean loss on the worst days, this part of all
_THRESHOLD = 0.7  # of the limit on CVaR: about where the tail begins, if losses are as those of stocks
LIMITS: dict[str, dict[str, Any]] = {
    "nyse_o": {"volatility": 0.009, "cvar": 0.019, "turnover": 0.005},
    "sp500": {"volatility": 0.012, "cvar": 0.027, "turnover": 0.005},
}
"""Limits that bind, for the data sets: about the risk of equal shares, which a growing portfolio exceeds."""


class _Wealth(eqx.Module):
    """The loss: the negative logarithm of growth, plus fees."""

    fee: Float[Array, ""]

    def __call__(self, x, r, previous):
        held = previous * r["before"]  # prices have moved the shares since
        traded = jnp.abs(x - held / held.sum()).sum()
        return -jnp.log(jnp.vdot(r["growth"], x)) + self.fee.astype(x.dtype) * traded


class _Limits(eqx.Module):
    """The constraints that were asked for, by name; each is relative to its limit."""

    volatility: Float[Array, ""] | None
    cvar: Float[Array, ""] | None
    turnover: Float[Array, ""] | None

    def __call__(self, x, r, previous):
        change = jnp.vdot(r["growth"], x) - 1
        used = {}
        if self.volatility is not None:
            used["variance"] = (change / self.volatility.astype(x.dtype)) ** 2 - 1
        if self.cvar is not None:
            limit = self.cvar.astype(x.dtype)
            used["cvar"] = _THRESHOLD - 1 + jnp.maximum(-change / limit - _THRESHOLD, 0) / _TAIL
        if self.turnover is not None:
            used["turnover"] = jnp.abs(x - previous).sum() / (2 * self.turnover.astype(x.dtype)) - 1
        return used


@with_facts(ProblemFacts("a probability simplex", "real stocks: wealth after fees; volatility, CVaR, turnover"))
def portfolio(
    key: PRNGKeyArray | None = None,
    *,
    data: Any = "nyse_o",
    volatility: float | None = None,
    cvar: float | None = None,
    turnover: float | None = None,
    fee: float = 1e-3,
    folder: Any = None,
) -> RealInstance:
    r"""$f_t(x) = -\log\langle r_t, x\rangle + c\,|x - h_t|_1$ over the probability simplex, one round per day.

    $r_t$ has the day's growth factors. $h_t$ has the shares that are held before trading: those of the day before,
    changed by its prices. c is the `fee`, 10 basis points by default. Wealth after fees is $e^{-\sum_t f_t(x_t)}$. Each
    limit is optional (`LIMITS` has some for each data set). Its constraint is relative, so that 0.03 is 3% too much:

    - `volatility` $\sigma$: $\langle r_t - 1, x\rangle^2/\sigma^2 - 1$.
    - `cvar` C: $\tau + [-\langle r_t - 1, x\rangle - \tau]_+/0.05$ over C, less 1, with $\tau = 0.7C$. For every
      $\tau$ its mean is at least the mean loss of the worst 5% of the days (Rockafellar, Uryasev, 2000).
    - `turnover` $\rho$: $\frac12|x - x_{t-1}|_1/\rho - 1$. It counts changes of the decision; fees count what is
      traded.

    `data` is "nyse_o", "sp500" (`cocoax data fetch` gets them), or your own growth factors of shape (days, assets): for
    prices, `prices[1:] / prices[:-1]`. Baselines: "uniform" (equal shares), "EG" (Helmbold et al., 1998, step 0.05),
    "best constant" (rebalanced daily; chosen afterwards).

    >>> import numpy as np
    >>> growth = np.exp(0.01 * np.random.default_rng(0).normal(size=(50, 4)))
    >>> instance = portfolio(data=growth, volatility=0.006)
    >>> instance.baseline("uniform").constraint.shape
    (50, 1)
    """
    if isinstance(data, str) and data not in LIMITS:
        raise ProblemError(f"data must be {' or '.join(map(repr, LIMITS))}, or growth factors, got {data!r}")
    growth = growth_factors(data, folder) if isinstance(data, str) else _own_factors(data)
    given = {"volatility": volatility, "cvar": cvar, "turnover": turnover}
    for name, limit in {"fee": fee, **given}.items():
        size = 1.0 if limit is None else check.scalar(limit, name, ProblemError)
        if not (size > 0 or (name == "fee" and size == 0)):
            raise ProblemError(f"{name} must be positive, got {limit}")
    limits = _Limits(**{name: None if limit is None else jnp.asarray(limit, float) for name, limit in given.items()})
    called = {"volatility": "variance", "cvar": "cvar", "turnover": "turnover"}
    names = tuple(called[name] for name, limit in given.items() if limit is not None)
    before = np.concatenate([np.ones_like(growth[:1]), growth[:-1]])
    domain, wealth = ProbabilitySimplex(growth.shape[1]), _Wealth(jnp.asarray(fee, float))
    problem = Problem(domain, wealth, limits, constraints=names) if names else Problem(domain, wealth)
    rounds = {"growth": growth, "before": before}
    return RealInstance(problem, rounds, uniform=_uniform, EG=exponentiated_gradient, **{"best constant": _best})


def growth_factors(data: str, folder: Any = None) -> Float[np.ndarray, "days assets"]:
    """The data set's growth factors: each day's price over that of the day before."""
    prices = load(data, folder)["prices"]
    table = np.stack([column for name, column in prices.items() if name != "Date"], 1)
    return table[1:] / table[:-1]


def _own_factors(data: Any) -> Float[np.ndarray, "days assets"]:
    """The user's own growth factors, checked; a `ProblemError` says what is wrong with them."""
    growth = np.asarray(data)
    if not check.is_numeric(growth.dtype):
        raise ProblemError("growth factors must be a table of numbers; leave out dates, names and other text")
    if growth.ndim != 2 or not growth.size:
        raise ProblemError(f"growth factors must have shape (days, assets), at least (1, 1), got {growth.shape}")
    growth = growth.astype(float)
    bad = np.argwhere(~(np.isfinite(growth) & (growth > 0)))
    if bad.size:
        day, asset = bad[0]
        where = f"row {day}, column {asset} has {growth[day, asset]:g}"
        raise ProblemError(f"growth factors must be positive, but {where}; fill gaps, or leave out that asset")
    usual = np.median(growth, 0)
    far = int(np.abs(np.log(usual)).argmax())
    if not 0.5 < usual[far] < 2:
        wanted = "growth factors are prices over those of the day before, near 1"
        found = f"but column {far} has the median {usual[far]:g}"
        raise ProblemError(f"{wanted}, {found}; of prices give prices[1:] / prices[:-1]")
    return growth


def conditional_value_at_risk(changes: Float[np.ndarray, " days"]) -> float:
    """The mean loss of the worst 5% of the days."""
    worst = np.sort(np.asarray(changes))[: max(1, round(_TAIL * len(changes)))]
    return float(-worst.mean())


def exponentiated_gradient(problem: Problem, rounds: Round, step: float = 0.05) -> Float[Array, "days assets"]:
    r"""Baseline: $x_{t+1} \propto x_t\exp(\eta r_t/\langle r_t, x_t\rangle)$, without limits or fees; one x per day."""
    learner = PrimalDual(ExponentiatedGradient(step), RobustPI())
    game = play(Problem(problem.domain, _no_fees), learner, rounds, key=jax.random.key(0), keep_decisions=True)
    return jnp.asarray(game.decisions)


def _no_fees(x, r):
    return -jnp.log(jnp.vdot(r["growth"], x))


def _uniform(problem, rounds):
    return problem.domain.start()


def _best(problem, rounds):
    return jnp.asarray(hindsight(Problem(problem.domain, problem.loss), rounds, progress=False).x)
