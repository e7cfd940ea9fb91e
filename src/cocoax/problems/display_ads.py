"""Single offers to buy or pass, and answers that use several resources; both decided after a request."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import check
from ..core.facts import ProblemFacts, with_facts
from ..domains import ProbabilitySimplex
from ..errors import ProblemError
from ..problem.environment import Environment, Sampler
from ..problem.problem import Problem
from .base import Instance

_PARETO = 1.6  # the exponent of the tail: its variance is infinite
_SPREAD = 0.7  # of the logarithm of a value
_CHEAPEST = 0.3  # cost over value, at least; 1 at most
_SWING = 0.8  # of a day


def _loss(x, r):
    return -jnp.vdot(r["value"], x)


def _constraint(x, r):
    return x @ r["cost"] - r["budget"]


class _Offers(Environment):
    """Draws rounds with the fields `value`, `cost` and `budget`, for the answers "pass" and "buy"."""

    budget: Float[Array, " 1"]
    day: Float[Array, ""] | None
    doubles_at: Float[Array, ""] | None
    heavy: bool = eqx.field(static=True)

    def init(self, key):
        return jnp.zeros((), float)

    def emit(self, state, decision, key):
        value_key, cost_key = jax.random.split(key)
        if self.heavy:
            value, cost = (jax.random.pareto(one, _PARETO, dtype=float) - 1 for one in (value_key, cost_key))
        else:
            value = jnp.exp(_SPREAD * jax.random.normal(value_key, dtype=float))
            cost = value * jax.random.uniform(cost_key, dtype=float, minval=_CHEAPEST)
        if self.day is not None:
            scale = 1 + _SWING * jnp.sin(2 * jnp.pi * state / self.day)
            value, cost = scale * value, scale * cost
        if self.doubles_at is not None:
            cost = cost * jnp.where(state < self.doubles_at, 1.0, 2.0)
        none = jnp.zeros_like(value)
        offer = {"value": jnp.stack([none, value]), "cost": jnp.stack([none, cost])[:, None], "budget": self.budget}
        return state + 1, offer


@with_facts(ProblemFacts("a simplex", "display ads: buy an offer or pass, decided after a request"))
def offers(
    key: PRNGKeyArray | None = None,
    *,
    share: Any = 0.2,
    tails: Literal["light", "heavy"] = "light",
    day: Any = None,
    doubles_at: Any = None,
) -> Instance:
    r"""$f_t(x) = -v_tx_2$ and $g_t(x) = c_tx_2 - \rho$: each round offers something of value $v_t$ at a cost $c_t$.

    The budget is the fraction `share` of the mean cost. Values are lognormal, costs 0.3 to 1 times as much; with heavy
    `tails` both are Pareto with exponent 1.6, independent of each other. With `day`, value and cost rise and fall by
    80% in each period of that many rounds. With `doubles_at`, all costs double after that many rounds, and the budget
    is a share of 1.5 times the first mean. The key is not used: all instances are the same, and their rounds differ.

    >>> import jax
    >>> instance = offers(share=0.1, day=500)
    >>> instance.rounds(100, jax.random.key(0))["cost"].shape
    (100, 2, 1)
    """
    if not share > 0 or tails not in ("light", "heavy"):
        raise ProblemError(f"offers needs share > 0 and tails 'light' or 'heavy', got {share} and {tails!r}")
    if day is not None and not day > 0:
        raise ProblemError(f"day must be a positive number of rounds, got {day}")
    if doubles_at is not None:
        check.whole(doubles_at, "doubles_at", ProblemError, low=0)
    mean = 1 / (_PARETO - 1) if tails == "heavy" else jnp.exp(_SPREAD**2 / 2) * (1 + _CHEAPEST) / 2
    budget = jnp.reshape(share * mean * (1.0 if doubles_at is None else 1.5), (1,)).astype(float)
    period, shift = (None if one is None else jnp.asarray(one, float) for one in (day, doubles_at))
    return Instance(_problem(2, 1), _Offers(budget, period, shift, tails == "heavy"), None, None)


class _Answers(eqx.Module):
    """Draws rounds with the fields `value`, `cost` and `budget`; the first answer has neither value nor cost."""

    budget: Float[Array, " m"]
    answers: int = eqx.field(static=True)

    def __call__(self, key):
        value_key, cost_key = jax.random.split(key)
        value = jax.random.uniform(value_key, (self.answers,), dtype=float).at[0].set(0)
        cost = jax.random.uniform(cost_key, (self.answers, len(self.budget)), dtype=float).at[0].set(0)
        return {"value": value, "cost": cost, "budget": self.budget}


@with_facts(ProblemFacts("a simplex", "answers that use several resources, decided after a request"))
def resources(key: PRNGKeyArray, *, answers: int = 5, constraints: int = 2, budget: Any = 0.2) -> Instance:
    r"""$f_t(x) = -\langle v_t, x\rangle$ and $g_t(x) = C_t^\top x - \rho$: values and costs are uniform in [0, 1].

    The first answer does nothing. The budget of each resource lies within a quarter of `budget`.

    >>> import jax
    >>> resources(jax.random.key(0), answers=20, constraints=10).problem.constraints
    10
    """
    if answers < 2 or constraints < 1 or not budget > 0:
        raise ProblemError(
            f"resources needs answers >= 2, constraints >= 1 and budget > 0, got {answers}, {constraints} and {budget}"
        )
    budgets = budget * jax.random.uniform(key, (constraints,), dtype=float, minval=0.75, maxval=1.25)
    return Instance(_problem(answers, constraints), Sampler(_Answers(budgets, answers)), None, None)


def _problem(answers, constraints):
    domain = ProbabilitySimplex(answers)
    return Problem(domain, _loss, _constraint, constraints=constraints, request=True, integral=True)
