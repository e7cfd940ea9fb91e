"""What a family is: a problem, how its rounds are drawn, how many, and the start."""

import jax.numpy as jnp
import numpy as np

import cocoax as cx

FAMILIES = {}


def family(name, domain, loss, constraint=None, constraints=1, rounds=1000, start=None):
    """Put `draw(random, T)`, which returns a dict of arrays, into `FAMILIES` with its problem."""
    about = {} if constraint is None else {"constraint": constraint, "constraints": constraints}
    start = domain.start() if start is None else jnp.asarray(start, np.float32)
    return lambda draw: FAMILIES.setdefault(name, (cx.Problem(domain, loss, **about), draw, rounds, start))


def cube(d, low=-1.0, high=1.0):
    return cx.domains.Box(np.full(d, low), np.full(d, high))


def linear(x, r):
    return r["c"] @ x


def square(x, r):
    return 0.5 * jnp.sum((x - r["z"]) ** 2)


def distance(x, r):
    return jnp.sqrt(jnp.sum((x - r["z"]) ** 2) + 1e-12)


def limit(level):
    return lambda x, r: r["a"] @ x - level


def hits(T):
    """One round in 50."""
    return 1.0 * (np.arange(T) % 50 == 25)
