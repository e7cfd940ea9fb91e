"""Families with constraints, on simplices, balls and boxes."""

import jax
import jax.numpy as jnp
import numpy as np

from cocoax.domains import Box, L2Ball, ProbabilitySimplex

from .family import cube, family, hits, limit, linear, square


@family(
    "logistic, limit parallel to it, l2 ball",
    L2Ball(10, 5.0),
    lambda x, r: jax.nn.softplus(-r["y"] * (r["a"] @ x)),
    lambda x, r: r["s"] * (r["a"] @ x) - 0.1,
)
def _(random, T):
    a = random.normal(size=(T, 10))
    y = np.sign(a @ random.normal(size=10) + 0.5 * random.normal(size=T))
    return {"a": a, "y": y, "s": y + 0.3 * random.normal(size=T)}


@family(
    "largest of 5 affine, floor for one, simplex",
    ProbabilitySimplex(20),
    lambda x, r: jnp.max(r["A"] @ x),
    lambda x, r: 0.3 - r["b"] * x[0],
)
def _(random, T):
    A = random.normal(size=(5, 20)) + np.eye(20)[0]
    return {"A": A + 0.5 * random.normal(size=(T, 5, 20)), "b": 2 * random.random(T)}


@family("one round in 50 says something, box, budget", cube(10, 0), linear, lambda x, r: r["g"] * (x.sum() - 3))
def _(random, T):
    return {"c": -(random.random(10) + 0.3 * random.normal(size=(T, 10))) * hits(T)[:, None], "g": hits(T)}


@family("losses fall by 10^4, budget, l2 ball", L2Ball(10, 1.0), linear, lambda x, r: x[0] + r["e"] - 0.2)
def _(random, T):
    c = 0.3 * random.normal(size=10) - np.eye(10)[0] + random.normal(size=(T, 10))
    return {"c": c * np.logspace(0, -4, T)[:, None], "e": 0.3 * random.normal(size=T)}


@family("losses of 1e-8, budget, box", cube(8, 0), lambda x, r: 1e-8 * square(x, r), limit(1.0))
def _(random, T):
    return {"z": 0.8 + 0.3 * random.normal(size=(T, 8)), "a": random.random((T, 8))}


@family("losses of 1e8, budget, box", cube(8, 0), lambda x, r: 1e8 * square(x, r), limit(1.0))
def _(random, T):
    return {"z": 0.8 + 0.3 * random.normal(size=(T, 8)), "a": random.random((T, 8))}


@family(
    "almost an equality, box",
    cube(10),
    lambda x, r: r["c"] @ x + 0.5 * jnp.sum(x**2),
    lambda x, r: jnp.stack([r["a"] @ x - 0.501, 0.499 - r["a"] @ x]),
    2,
)
def _(random, T):
    c, a = random.normal(size=(2, 10))
    return {"c": c + 0.3 * random.normal(size=(T, 10)), "a": a + 0.3 * random.normal(size=(T, 10))}


@family("limit against the loss, angle 0.03, l2 ball", L2Ball(10, 1.0), linear, limit(0.3))
def _(random, T):
    a, noise = random.normal(size=10), 0.1 * random.normal(size=(T, 10))
    a /= np.linalg.norm(a)
    return {"c": noise - a, "a": noise + a + 0.01 * random.normal(size=10)}


@family(
    "noise 100 times the limit's mean, simplex", ProbabilitySimplex(10), linear, lambda x, r: r["a"] @ x - 0.3 + r["e"]
)
def _(random, T):
    a = random.random(10)
    c, noise = 0.1 * random.normal(size=(2, T, 10))
    e = 10 * random.normal(size=T)
    return {"c": c - a, "a": a + noise, "e": e - e.mean()}


@family("noise 5 in the limit's gradient, l2 ball", L2Ball(10, 1.0), linear, limit(0.1))
def _(random, T):
    a = random.normal(size=10) / 3
    return {"c": 0.1 * random.normal(size=(T, 10)) - a, "a": a + 5 * random.normal(size=(T, 10))}


@family("limit with kinks (l1 distance), box", cube(10), linear, lambda x, r: jnp.sum(jnp.abs(x - r["p"])) - 2)
def _(random, T):
    return {
        "c": random.normal(size=10) + 0.5 * random.normal(size=(T, 10)),
        "p": 0.5 + 0.2 * random.normal(size=(T, 10)),
    }


@family("limit only in the last tenth, box", cube(10, 0), linear, lambda x, r: r["g"] * (x.sum() - 3))
def _(random, T):
    return {"c": 0.2 * random.normal(size=(T, 10)) - random.random(10), "g": 1.0 * (np.arange(T) >= 0.9 * T)}


@family(
    "10 copies of a limit, 10^-3 to 10^3, simplex",
    ProbabilitySimplex(10),
    linear,
    lambda x, r: (r["a"] @ x - 0.3) * jnp.logspace(-3, 3, 10),
    10,
)
def _(random, T):
    a, noise = random.random(10), 0.2 * random.normal(size=(2, T, 10))
    return {"c": noise[0] - a, "a": noise[1] + a}


@family("T = 50, budget, simplex", ProbabilitySimplex(5), linear, limit(0.3), rounds=50)
def _(random, T):
    a, noise = np.linspace(0.1, 0.9, 5), 0.2 * random.normal(size=(2, T, 5))
    return {"c": noise[0] - a, "a": noise[1] + a}


@family("no room: within 0.01 of a point, box", cube(5), linear, lambda x, r: jnp.sum((x - r["p"]) ** 2) - 1e-4)
def _(random, T):
    return {
        "c": random.normal(size=5) + 0.3 * random.normal(size=(T, 5)),
        "p": np.tile(random.uniform(-0.5, 0.5, 5), (T, 1)),
    }


@family("set points near the start, budget, box", cube(10, 250.0, 330.0), square, lambda x, r: x.mean() + r["e"] - 290)
def _(random, T):
    away = 1 + 0.1 * random.normal(size=10)
    z = 290 + 4 * away / np.linalg.norm(away)
    return {"z": z + 4 * random.normal(size=(T, 10)), "e": 0.3 * random.normal(size=T)}


@family(
    "newsvendors of 1 to 1000, budget, box",
    Box(np.zeros(20), 3 * np.logspace(0, 3, 20)),
    lambda x, r: jnp.sum(jnp.maximum(3 * (r["y"] - x), x - r["y"])),
    lambda x, r: r["a"] @ x / 1000 - 3,
)
def _(random, T):
    return {"y": np.logspace(0, 3, 20) * random.exponential(size=(T, 20)), "a": 0.5 + random.random((T, 20))}


@family(
    "budget in dollars, then in cents, simplex", ProbabilitySimplex(6), linear, lambda x, r: r["s"] * (r["a"] @ x - 0.3)
)
def _(random, T):
    a, noise = np.linspace(0.05, 1, 6), 0.2 * random.normal(size=(2, T, 6))
    return {"c": noise[0] - a, "a": noise[1] + a, "s": np.where(np.arange(T) < T // 2, 1, 100)}
