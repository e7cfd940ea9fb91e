"""Families with sets other than simplices, balls and boxes, or with two at once."""

import jax
import jax.numpy as jnp
import numpy as np

from cocoax.domains import (
    Birkhoff,
    Ellipsoid,
    NuclearNormBall,
    ProbabilitySimplex,
    Product,
    ShortestPath,
    Spectraplex,
)

from .family import cube, family, linear


def grid():
    """Edges from 0 to 16 through five layers of three."""
    inner = [(1 + 3 * i + a, 4 + 3 * i + b) for i in range(4) for a in range(3) for b in range(3)]
    return np.array([(0, 1 + a) for a in range(3)] + inner + [(13 + a, 16) for a in range(3)])


@family(
    "one-bit completion, limit on ratings, nuclear ball",
    NuclearNormBall((10, 8), radius=15.0),
    lambda x, r: jax.nn.softplus(-r["y"] * x[r["i"], r["j"]]),
    lambda x, r: x[r["i"], r["j"]] - 0.2,
)
def _(random, T):
    truth, i, j = (
        np.outer(random.normal(size=10), random.normal(size=8)),
        random.integers(10, size=T),
        random.integers(8, size=T),
    )
    return {"i": i, "j": j, "y": np.sign(truth[i, j] + 0.3 * random.normal(size=T) + 0.3)}


@family(
    "tomography, limit on energy, spectraplex",
    Spectraplex(6),
    lambda x, r: (r["m"] @ x @ r["m"] - r["y"]) ** 2,
    lambda x, r: jnp.diag(x) @ jnp.linspace(0, 1, 6) - 0.3 + r["e"],
)
def _(random, T):
    state, m = random.normal(size=6), random.normal(size=(T, 6))
    y = (m @ state) ** 2 / (state @ state) + 0.1 * random.normal(size=T)
    return {"m": m, "y": y, "e": 0.2 * random.normal(size=T)}


@family(
    "paths, limit on tolls",
    ShortestPath(grid(), 0, 16),
    lambda x, r: r["c"] @ x + 0.1 * jnp.sum(x**2),
    lambda x, r: r["a"] @ x - 2.5,
)
def _(random, T):
    a, c = random.random((2, 42))
    return {"c": c - 0.8 * a + 0.2 * random.normal(size=(T, 42)), "a": a + 0.1 * random.normal(size=(T, 42))}


@family(
    "assignment, limit, Birkhoff", Birkhoff(6), lambda x, r: jnp.vdot(r["c"], x), lambda x, r: jnp.vdot(r["a"], x) - 1.5
)
def _(random, T):
    a, c = random.random((2, 6, 6))
    return {"c": c - a + 0.3 * random.normal(size=(T, 6, 6)), "a": a + 0.1 * random.normal(size=(T, 6, 6))}


@family(
    "simplex times box of 1000",
    Product((ProbabilitySimplex(5), cube(3, -1000.0, 1000.0))),
    lambda x, r: r["c"] @ x[0] + jnp.sum(jnp.abs(x[1] - r["z"])) / 1000,
    lambda x, r: jnp.sum(x[1]) / 1000 + x[0][0] - 0.4,
)
def _(random, T):
    return {"c": 0.3 * random.normal(size=(T, 5)) - np.eye(5)[0], "z": 300 + 100 * random.normal(size=(T, 3))}


@family(
    "CVaR at 5%, simplex times interval",
    Product((ProbabilitySimplex(6), cube(1, -5.0, 5.0))),
    lambda x, r: x[1][0] + 20 * jnp.maximum(0, -(r["a"] @ x[0]) - x[1][0]),
)
def _(random, T):
    return {"a": 0.2 * random.random(6) + random.normal(size=(T, 6)) * np.linspace(0.3, 1.5, 6)}


@family("ellipsoid 1 : 1000", Ellipsoid(np.diag(np.logspace(0, 6, 8)), np.zeros(8), 1.0), linear)
def _(random, T):
    return {"c": (random.normal(size=8) + 0.5 * random.normal(size=(T, 8))) * np.logspace(0, 3, 8)}
