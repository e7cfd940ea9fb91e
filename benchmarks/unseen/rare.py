"""Families in which what is usual says little: rare gains, turns, kinks with a little curvature, scales in turn."""

import jax.numpy as jnp
import numpy as np

from cocoax.domains import L2Ball, ProbabilitySimplex

from .family import cube, family, limit, linear, square


def _gains(share, gain):
    """Moving costs 1 a round, and gains much in few."""

    def draw(random, T):
        way = np.abs(random.normal(size=5)) + 0.2
        sizes = np.where(random.random(T) < share, -gain, 1.0)
        return {"c": np.outer(sizes, way / np.linalg.norm(way)) + 0.05 * random.normal(size=(T, 5))}

    return draw


for _share, _gain in ((0.01, 1000.0), (0.03, 60.0), (0.05, 40.0)):
    family(f"moving costs 1, gains {_gain:g} in {_share:g}, l2 ball", L2Ball(5, 1.0), linear)(_gains(_share, _gain))
family("moving costs 1, gains 60 in 0.03, box", cube(5), linear)(_gains(0.03, 60.0))
family("moving costs 1, gains 60 in 0.03, simplex", ProbabilitySimplex(5), linear)(
    lambda random, T: {
        "c": np.outer(np.where(random.random(T) < 0.03, -60.0, 1.0), np.eye(5)[0]) + 0.05 * random.normal(size=(T, 5))
    }
)


@family(
    "insurance against rare ruin, simplex",
    ProbabilitySimplex(4),
    lambda x, r: r["premium"] @ x + r["ruin"] * jnp.maximum(0, 1 - x[1] - 0.5 * x[2]) ** 2,
    start=[1.0, 0.0, 0.0, 0.0],
)
def _(random, T):
    return {
        "premium": np.array([0, 1, 0.7, 0.2]) + 0.1 * random.normal(size=(T, 4)),
        "ruin": np.where(random.random(T) < 0.02, 80.0, 0.0),
    }


@family("a lottery: moving costs 1, gains with a tail of 1.2, l2 ball", L2Ball(3, 1.0), linear)
def _(random, T):
    sizes = 1 - 0.6 * random.pareto(1.2, size=T)
    return {"c": np.outer(sizes, [1, 0.5, 0.2]) + 0.1 * random.normal(size=(T, 3))}


@family("signs of 10 in turn, drift of 0.5, l2 ball", L2Ball(3, 1.0), linear)
def _(random, T):
    sizes = 10 * (-1.0) ** np.arange(T) - 0.5
    return {"c": np.outer(sizes, [1, 0.5, 0.2]) + 0.1 * random.normal(size=(T, 3))}


@family("40 rounds one way, 60 the other, l2 ball", L2Ball(3, 1.0), linear)
def _(random, T):
    sizes = np.where(np.arange(T) % 100 < 40, 1.0, -1.0)
    return {"c": np.outer(sizes, [1, 0.5, 0.2]) + 0.3 * random.normal(size=(T, 3))}


@family("a limit that binds from 0.7 T on, l2 ball", L2Ball(5, 1.0), linear, limit(0.2))
def _(random, T):
    a = np.abs(random.normal(size=5))
    a = a / np.linalg.norm(a)
    late = np.where((np.arange(T) >= 0.7 * T)[:, None], a, 0.0)
    return {"c": -a + 0.3 * random.normal(size=(T, 5)), "a": late + 0.1 * random.normal(size=(T, 5))}


def _kinks(x, r):
    return jnp.sum(jnp.abs(x - r["z"])) + 0.5e-6 * jnp.sum(x**2)


@family("kinks with a curvature of 1e-6, start optimal, l2 ball of 1000", L2Ball(5, 1000.0), _kinks)
def _(random, T):
    return {"z": random.normal(size=(T, 5))}


@family("kinks with a curvature of 1e-6, optimum near, l2 ball of 1000", L2Ball(5, 1000.0), _kinks)
def _(random, T):
    return {"z": 3 * random.normal(size=5) + random.normal(size=(T, 5))}


@family("curvatures 1 and 1e6 in turn, l2 ball", L2Ball(5, 1.0), lambda x, r: r["w"] * square(x, r))
def _(random, T):
    at = 0.2 * random.normal(size=5)
    return {"w": np.where(np.arange(T) % 2 == 0, 1.0, 1e6), "z": at + 0.1 * random.normal(size=(T, 5))}


@family("squares, optimum near, l2 ball of 1000", L2Ball(5, 1000.0), square)
def _(random, T):
    return {"z": random.normal(size=5) + random.normal(size=(T, 5))}


@family("powers 1.5, l2 ball of 20", L2Ball(5, 20.0), lambda x, r: jnp.sum(((x - r["z"]) ** 2 + 1e-12) ** 0.75))
def _(random, T):
    return {"z": random.normal(size=5) + 0.5 * random.normal(size=(T, 5))}
