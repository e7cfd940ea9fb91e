"""A service that paces the budgets of many campaigns: `cocoax serve examples/service.py`.

`fleet` is what it serves. `example` is a round, so that all is compiled before the first request comes. The service
goes on with the file if there is one; COCOAX_FLEET names another file, and COCOAX_FLEET= keeps nothing.
"""

import os

import jax
import jax.numpy as jnp

import cocoax as cx

SEGMENTS = 10


def loss(x, round):
    return -jnp.vdot(round["value"], x)


def spending(x, round):
    """Against the budget of the round."""
    return jnp.vdot(round["price"], x) - round["budget"]


problem = cx.Problem(cx.domains.Box(jnp.zeros(SEGMENTS), jnp.ones(SEGMENTS)), loss, spending)
path = os.environ.get("COCOAX_FLEET", "campaigns.fleet") or None
fleet = cx.Fleet(problem, cx.learners.Auto(), path, key=jax.random.key(0))
example = {"value": [0.1] * SEGMENTS, "price": [0.2] * SEGMENTS, "budget": 0.5}
