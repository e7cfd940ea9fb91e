"""Problems with requests: answers with values and costs, one of which is to do nothing."""

import functools

import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.domains import ProbabilitySimplex


def loss(x, r):
    return -jnp.vdot(r["value"], x)


def constraint(x, r):
    return x @ r["cost"] - r["budget"]


@functools.cache
def problem(answers=3, resources=2, request=True, integral=True):
    domain = ProbabilitySimplex(answers)
    return cx.Problem(domain, loss, constraint, constraints=resources, request=request, integral=integral)


def drawn(count, answers=3, resources=2, seed=0, budget=0.2):
    """Uniform values and costs; the budget is a share of the mean cost."""
    rng = np.random.default_rng(seed)
    value, cost = rng.uniform(0, 1, (count, answers)), rng.uniform(0, 1, (count, answers, resources))
    value[:, 0], cost[:, 0] = 0, 0
    return as_rounds(value, cost, np.full(resources, budget / 2))


def pacing(count, seed=0, share=0.2, scale=None):
    """Buy or not, at lognormal values; `scale` multiplies value and cost by time."""
    rng = np.random.default_rng(seed)
    value = rng.lognormal(0, 0.7, count) * (1 if scale is None else scale)
    cost = value * rng.uniform(0.3, 1, count)
    none = np.zeros(count)
    return as_rounds(np.stack([none, value], 1), np.stack([none, cost], 1)[..., None], np.array([share * cost.mean()]))


def as_rounds(value, cost, budget):
    budgets = np.broadcast_to(budget, (len(value), len(budget)))
    return {"value": jnp.asarray(value), "cost": jnp.asarray(cost), "budget": jnp.asarray(budgets)}


def lost_and_overspent(game, best, rounds):
    """Per cent of the best policy's value that was lost, and of the budget that was overspent."""
    over = np.asarray(game.violation()[-1]) / np.asarray(rounds["budget"]).sum(0)
    return 100 * float(1 - game.loss.sum() / best.value), 100 * float(over.max())
