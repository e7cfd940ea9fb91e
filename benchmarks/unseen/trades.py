"""Families from trades: energy, queues, prices, radio, surveys, ads."""

import jax
import jax.numpy as jnp
import numpy as np

from cocoax.domains import Fantope, HyperSimplex, L1Ball, L2Ball, ProbabilitySimplex, Product

from .family import cube, family, limit, linear, square


@family(
    "charging of 24 hours, limit on the peak, box",
    cube(24, 0.0),
    lambda x, r: r["p"] @ x + 0.5 * (x.sum() - r["need"]) ** 2,
    lambda x, r: jnp.max(x + r["base"]) - 1.2,
)
def _(random, T):
    price = 1 + 0.5 * np.sin(2 * np.pi * np.arange(24) / 24)
    base = 0.5 + 0.4 * np.sin(2 * np.pi * (np.arange(24) + 6) / 24)
    return {
        "p": price + 0.2 * random.normal(size=(T, 24)),
        "need": 8 + random.normal(size=T),
        "base": base + 0.05 * random.normal(size=(T, 24)),
    }


@family(
    "queues with loads up to 0.9, limit on energy, simplex",
    ProbabilitySimplex(6),
    lambda x, r: jnp.sum(r["load"] * x / (jnp.linspace(1.2, 2.0, 6) - r["load"] * x)),
    limit(0.4),
)
def _(random, T):
    return {"load": 0.5 + 0.4 * random.random(T), "a": np.linspace(0.2, 0.9, 6) + 0.1 * random.normal(size=(T, 6))}


@family(
    "a group of 2% has a floor, simplex",
    ProbabilitySimplex(10),
    linear,
    lambda x, r: r["rare"] * (0.5 - r["b"] @ x),
)
def _(random, T):
    good, wanted = random.random(10), random.random(10)
    return {
        "c": 0.3 * random.normal(size=(T, 10)) - good,
        "b": wanted + 0.1 * random.normal(size=(T, 10)),
        "rare": 1.0 * (random.random(T) < 0.02),
    }


@family(
    "logistic, features with mean 10, l2 ball",
    L2Ball(6, 20.0),
    lambda x, r: jax.nn.softplus(-r["y"] * (r["a"] @ x)),
)
def _(random, T):
    w, a = random.normal(size=5), random.normal(size=(T, 5))
    y = np.sign(a @ w + 0.5 * random.logistic(size=T))
    return {"a": np.concatenate([10 + a, np.ones((T, 1))], axis=1), "y": y}


@family(
    "20 campaigns, each with a budget of its own, box",
    cube(20, 0.0),
    linear,
    lambda x, r: r["a"] * x - jnp.logspace(-2, 0, 20) / 2,
    20,
)
def _(random, T):
    v = 0.2 + random.random(20)
    return {"c": -v * (0.5 + random.random((T, 20))), "a": 2 * random.random((T, 20))}


@family("losses of one arm over its chance of 2% to 50%, simplex", ProbabilitySimplex(8), linear, rounds=2000)
def _(random, T):
    chances = np.geomspace(0.02, 0.5, 8) / np.geomspace(0.02, 0.5, 8).sum()
    arms, means = random.choice(8, size=T, p=chances), random.uniform(0.2, 0.8, 8)
    losses = 1.0 * (random.random(T) < means[arms])
    return {"c": np.eye(8)[arms] * (losses / chances[arms])[:, None]}


@family(
    "volumes with a log-normal tail in loss and limit, simplex",
    ProbabilitySimplex(8),
    lambda x, r: r["v"] * (r["c"] @ x),
    lambda x, r: r["v"] * (r["a"] @ x - 0.4),
)
def _(random, T):
    a, noise = np.linspace(0.1, 1, 8), 0.2 * random.normal(size=(2, T, 8))
    return {"c": noise[0] - a, "a": noise[1] + a, "v": np.exp(1.5 * random.normal(size=T))}


@family(
    "water filling under fading, limit on interference, simplex",
    ProbabilitySimplex(12),
    lambda x, r: -jnp.sum(jnp.log1p(10 * r["h"] * x)),
    limit(0.3),
)
def _(random, T):
    means, a = np.geomspace(0.1, 3, 12), np.geomspace(0.05, 1.2, 12)
    return {"h": means * random.exponential(size=(T, 12)), "a": a * random.exponential(size=(T, 12))}


@family("fourth powers, l2 ball of 10", L2Ball(10, 10.0), lambda x, r: jnp.sum((x - r["z"]) ** 4))
def _(random, T):
    return {"z": 2 * random.normal(size=10) + 0.5 * random.normal(size=(T, 10))}


@family(
    "sparse least squares, d = 200, l1 ball",
    L1Ball(200, 3.0),
    lambda x, r: 0.5 * (r["a"] @ x - r["y"]) ** 2,
)
def _(random, T):
    a = random.normal(size=(T, 200))
    return {"a": a, "y": a[:, :3] @ [1, -1, 1] + 0.3 * random.normal(size=T)}


@family(
    "5 of 40, limit on a genre, hypersimplex",
    HyperSimplex(40, 5),
    lambda x, r: r["c"] @ x,
    lambda x, r: r["g"] @ x - 1.0,
)
def _(random, T):
    taste, genre = random.random(40), 1.0 * (np.arange(40) < 12)
    taste[:12] += 0.4
    return {"c": 0.5 * random.normal(size=(T, 40)) - taste, "g": genre * (0.5 + random.random((T, 40)))}


@family(
    "prices of 3 goods in [0, 100], limit on sales, box",
    cube(3, 0.0, 100.0),
    lambda x, r: -(x @ (r["a"] - r["b"] * x)),
    lambda x, r: jnp.sum(r["a"] - r["b"] * x) - 60,
)
def _(random, T):
    b = np.array([0.3, 0.6, 1.2])
    return {
        "a": np.array([30.0, 40.0, 50.0]) * (1 + 0.2 * random.normal(size=(T, 3))),
        "b": b * (1 + 0.1 * random.normal(size=(T, 3))),
    }


@family(
    "weekdays, a weekly budget, box",
    cube(5, 0.0),
    linear,
    lambda x, r: r["s"] * (r["a"] @ x) - 1.0,
)
def _(random, T):
    week = np.array([2.0, 1, 1, 1, 2, 0.1, 0.1])[np.arange(T) % 7]
    v, a = random.random(5), 0.3 + random.random(5)
    return {
        "c": -(v + 0.2 * random.normal(size=(T, 5))) * week[:, None],
        "a": a + 0.1 * random.normal(size=(T, 5)),
        "s": week,
    }


@family("two directions of ten, small gap, Fantope", Fantope(10, 2), lambda x, r: -(r["a"] @ x @ r["a"]))
def _(random, T):
    turn = np.linalg.qr(random.normal(size=(10, 10)))[0]
    return {"a": random.normal(size=(T, 10)) * np.sqrt(np.linspace(1.5, 0.5, 10)) @ turn}


@family(
    "shares and a level together, floor for the worst, simplex times interval",
    Product((ProbabilitySimplex(5), cube(1, 0.0, 10.0))),
    lambda x, r: -x[1][0] + 0.05 * (r["c"] @ x[0]),
    lambda x, r: x[1][0] - r["A"] @ x[0],
    5,
)
def _(random, T):
    A = random.random((5, 5)) + 2 * np.eye(5)
    return {"A": A + 0.3 * random.normal(size=(T, 5, 5)), "c": random.normal(size=(T, 5))}


@family("a target that is far outside the set, simplex of 50", ProbabilitySimplex(50), square)
def _(random, T):
    return {"z": 20 * random.normal(size=50) + 5 * random.normal(size=(T, 50))}


@family(
    "features a thousand times apart, one bound for all, box of 1000",
    cube(2, -1000.0, 1000.0),
    lambda x, r: 0.5 * (r["a"] @ x - r["y"]) ** 2,
)
def _(random, T):
    a = random.normal(size=(T, 2)) * [1.0, 1000.0]
    return {"a": a, "y": a @ [1.0, -1e-3] + 0.1 * random.normal(size=T)}


@family(
    "a place in Cauchy noise, l2 ball of 20",
    L2Ball(5, 20.0),
    lambda x, r: jnp.sum(jnp.sqrt(1 + (x - r["z"]) ** 2) - 1),
)
def _(random, T):
    return {"z": 3 + random.standard_cauchy((T, 5))}


@family(
    "rare positives, logistic, box of 5",
    cube(8, -5.0, 5.0),
    lambda x, r: jax.nn.softplus(-r["y"] * (r["a"] @ x - 4)),
)
def _(random, T):
    a = random.normal(size=(T, 8))
    return {"a": a, "y": np.where(a[:, 0] + 0.5 * a[:, 1] + 0.5 * random.normal(size=T) > 2.4, 1.0, -1.0)}
