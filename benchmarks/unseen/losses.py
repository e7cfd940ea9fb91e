"""Families without constraints, on simplices, balls and boxes."""

import jax
import jax.numpy as jnp
import numpy as np

from cocoax.domains import L1Ball, L2Ball, LinfBall, ProbabilitySimplex

from .family import cube, distance, family, hits, linear, square


@family(
    "quantile 0.9, simplex",
    ProbabilitySimplex(10),
    lambda x, r: jnp.maximum(0.9 * (r["y"] - r["a"] @ x), 0.1 * (r["a"] @ x - r["y"])),
)
def _(random, T):
    a = random.normal(1, 1, (T, 10))
    return {"a": a, "y": a @ random.dirichlet(np.full(10, 0.3)) + random.normal(size=T)}


@family(
    "Huber, outliers of 100, l1 ball",
    L1Ball(30, 3.0),
    lambda x, r: jnp.where(
        jnp.abs(r["a"] @ x - r["y"]) < 1, 0.5 * (r["a"] @ x - r["y"]) ** 2, jnp.abs(r["a"] @ x - r["y"]) - 0.5
    ),
)
def _(random, T):
    a = random.normal(size=(T, 30))
    outliers = 100 * random.normal(size=T) * (random.random(T) < 0.05)
    return {"a": a, "y": a[:, :3] @ [1, -1, 1] + 0.2 * random.normal(size=T) + outliers}


@family("exponential loss, l2 ball", L2Ball(5, 3.0), lambda x, r: jnp.exp(-r["y"] * (r["a"] @ x)))
def _(random, T):
    a = random.normal(size=(T, 5))
    return {"a": a, "y": np.sign(a @ random.normal(size=5) + random.normal(size=T))}


@family("distance to a fixed point, l2 ball of 10", L2Ball(10, 10.0), distance)
def _(random, T):
    return {"z": np.tile(random.normal(size=10), (T, 1))}


@family("distance to points at 300, l2 ball of 1000", L2Ball(10, 1000.0), distance)
def _(random, T):
    return {"z": 100 * random.normal(size=10) + random.normal(size=(T, 10))}


@family("distance to points at 3, l2 ball of 1000", L2Ball(10, 1000.0), distance)
def _(random, T):
    return {"z": random.normal(size=10) + random.normal(size=(T, 10))}


@family("1% of the rounds weigh 1000, box", cube(5), lambda x, r: r["w"] * square(x, r))
def _(random, T):
    z, rare = random.uniform(-0.5, 0.5, 5), random.random(T) < 0.01
    return {"w": np.where(rare, 1000, 1), "z": np.where(rare[:, None], z, -z) + 0.3 * random.normal(size=(T, 5))}


@family(
    "1% of the rounds are 1000 times as curved, simplex",
    ProbabilitySimplex(10),
    lambda x, r: square(x, r) + 0.5 * r["w"] * (r["u"] @ (x - r["z"])) ** 2,
    rounds=2000,
)
def _(random, T):
    away, u = random.normal(size=10), random.normal(size=(T, 10))
    away -= away.mean()
    return {
        "w": np.where(random.random(T) < 0.01, 1000, 0),
        "u": u / np.linalg.norm(u, axis=1, keepdims=True),
        "z": 0.1 + 0.05 * away / np.linalg.norm(away) + 0.1 * random.normal(size=(T, 10)),
    }


@family("one round in 50 says something, simplex", ProbabilitySimplex(10), linear)
def _(random, T):
    return {"c": (random.random(10) + 0.3 * random.normal(size=(T, 10))) * hits(T)[:, None]}


@family(
    "sparse logistic, d = 2000, l2 ball", L2Ball(2000, 10.0), lambda x, r: jax.nn.softplus(-r["y"] * jnp.sum(x[r["i"]]))
)
def _(random, T):
    w, i = random.normal(size=2000), (2000 * random.random((T, 5)) ** 3).astype(int)
    return {"i": i, "y": np.sign(w[i].sum(axis=1) + 0.5 * random.normal(size=T))}


@family("the best expert is bad in the first half", ProbabilitySimplex(10), linear)
def _(random, T):
    late, best = (np.arange(T) > T // 2)[:, None], np.eye(10)[3]
    return {"c": 0.3 * random.normal(size=(T, 10)) + np.where(late, 1 - best, 0.3 * best)}


@family("losses grow by 10^4, l2 ball", L2Ball(10, 1.0), linear)
def _(random, T):
    return {"c": (0.3 * random.normal(size=10) + random.normal(size=(T, 10))) * np.logspace(0, 4, T)[:, None]}


@family("d = 1, median of exponentials, [0, 1000]", cube(1, 0, 1000.0), lambda x, r: jnp.abs(x[0] - r["y"]))
def _(random, T):
    return {"y": random.exponential(size=T)}


@family("d = 1, signs alternate", cube(1), lambda x, r: r["c"] * x[0])
def _(random, T):
    return {"c": (-1.0) ** np.arange(T) * (1 + 0.1 * random.normal(size=T))}


@family("d = 1, signs in blocks that double", cube(1), lambda x, r: r["c"] * x[0])
def _(random, T):
    return {"c": (-1.0) ** np.floor(np.log2(1 + np.arange(T))) * (1 + 0.1 * random.normal(size=T))}


@family("the start is the optimum, l2 ball of 10", L2Ball(10, 10.0), square)
def _(random, T):
    return {"z": random.normal(size=(T, 10))}


@family("start at the worst vertex, simplex of 100", ProbabilitySimplex(100), linear, start=np.eye(100)[0])
def _(random, T):
    return {"c": np.linspace(1, 0, 100) + 0.5 * random.normal(size=(T, 100))}


@family("start at the worst corner, box", cube(20, 0), square, start=np.ones(20))
def _(random, T):
    return {"z": 0.1 * random.random(20) + 0.3 * random.normal(size=(T, 20))}


@family("Poisson counts, box", cube(6, -2.0, 2.0), lambda x, r: jnp.exp(r["a"] @ x) - r["y"] * (r["a"] @ x))
def _(random, T):
    a = random.normal(size=(T, 6))
    return {"a": a, "y": random.poisson(np.exp(np.minimum(a @ (0.7 * random.normal(size=6)), 5)))}


@family("kinks 100 : 1, l2 ball", L2Ball(2, 5.0), lambda x, r: 100 * jnp.abs(x[0] - x[1] + r["e"]) + r["c"] @ x)
def _(random, T):
    return {"c": 0.3 * random.normal(size=(T, 2)) - 0.5, "e": 0.01 * random.normal(size=T)}


@family(
    "the truth flips at 0.4 T, hinge, l2 ball", L2Ball(10, 3.0), lambda x, r: jnp.maximum(0, 1 - r["y"] * (r["a"] @ x))
)
def _(random, T):
    a = random.normal(size=(T, 10))
    return {"a": a, "y": np.sign(a @ random.normal(size=10)) * np.where(np.arange(T) < 0.4 * T, -1, 1)}


@family("log-loss of mixtures, simplex", ProbabilitySimplex(8), lambda x, r: -jnp.log(r["p"] @ x + 1e-6))
def _(random, T):
    return {"p": np.exp(-((0.5 * random.normal(size=(T, 1)) + 2 - np.arange(8)) ** 2))}


@family(
    "squared hinge, features 0.1 to 10, cube",
    LinfBall(20, 1.0),
    lambda x, r: jnp.maximum(0, 1 - r["y"] * (r["a"] @ x)) ** 2,
)
def _(random, T):
    a, scales = random.normal(size=(T, 20)), np.logspace(-1, 1, 20)
    return {"a": a * scales, "y": np.sign(a @ random.normal(size=20) + random.normal(size=T))}


@family(
    "squared hinge, features 0.1 to 10, l2 ball",
    L2Ball(20, 4.0),
    lambda x, r: jnp.maximum(0, 1 - r["y"] * (r["a"] @ x)) ** 2,
)
def _(random, T):
    a, scales = random.normal(size=(T, 20)), np.logspace(-1, 1, 20)
    return {"a": a * scales, "y": np.sign(a @ random.normal(size=20) + random.normal(size=T))}


@family("T = 50, least squares, l2 ball", L2Ball(5, 2.0), lambda x, r: 0.5 * (r["a"] @ x - r["y"]) ** 2, rounds=50)
def _(random, T):
    a = random.normal(size=(T, 5))
    return {"a": a, "y": a @ (0.5 * random.normal(size=5)) + 0.3 * random.normal(size=T)}
