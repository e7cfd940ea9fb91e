"""What transcriptions share: a problem in JAX and in NumPy, its domains, and the comparison of two games."""

import math

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx

ROUNDS = 50  # OCG's blocks are 14, 14, 14 and 8 rounds long; ORGFW's 8 and, at the end, 2
LIPSCHITZ = 3.0  # a parameter of the methods; nothing here needs it to be true
SMOOTHNESS = 1.5

# The problem: f = |x - y|^2 / 2 + <c, x> and g_i = <a_i, x> + |x|^2 / 4 - b


def loss(x, r):
    return 0.5 * jnp.sum((x - r["y"]) ** 2) + jnp.vdot(r["c"], x)


def constraint(x, r):
    return jax.vmap(lambda a: jnp.vdot(a, x))(r["a"]) + 0.25 * jnp.sum(x**2) - r["b"]


def loss_gradient(x, r):
    return x - r["y"] + r["c"]


def constraint_values(x, r):
    return np.array([np.sum(a * x) + 0.25 * np.sum(x**2) - r["b"] for a in r["a"]])


def weighted_gradient(x, r, weights, loss_weight=1.0):
    return loss_weight * loss_gradient(x, r) + sum(w * (a + 0.5 * x) for w, a in zip(weights, r["a"]))


def some_rounds(shape, constraints, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "y": rng.normal(size=(ROUNDS, *shape)),
        "c": rng.normal(size=(ROUNDS, *shape)),
        "a": rng.normal(size=(ROUNDS, constraints, *shape)) + 0.5,
        "b": rng.uniform(-0.8, 0.2, ROUNDS),
    }


def one_by_one(rounds):
    return [{name: values[t] for name, values in rounds.items()} for t in range(ROUNDS)]


# The domains: linear minimisation, projection, Euclidean diameter


def simplex_lmo(c):
    return np.eye(len(c))[np.argmin(c)]


def simplex_projection(x):
    """By bisection on the level, not by sorting."""
    low, high = x.min() - 1, x.max()
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.maximum(x - level, 0).sum() > 1 else (low, level)
    return np.maximum(x - (low + high) / 2, 0)


def ball_lmo(c):
    return -2 * c / np.linalg.norm(c)


def nuclear_lmo(c):
    u, _, vt = np.linalg.svd(c)
    return -1.5 * np.outer(u[:, 0], vt[0])


LOWER, UPPER = np.array([-1.0, 0.0, 0.5]), np.array([1.0, 2.0, 0.75])
SIMPLEX = (cx.domains.ProbabilitySimplex(5), simplex_lmo, np.full(5, 0.2), math.sqrt(2))
BALL = (cx.domains.L2Ball(4, radius=2.0), ball_lmo, np.zeros(4), 4.0)
NUCLEAR = (cx.domains.NuclearNormBall((3, 4), 1.5, method="exact"), nuclear_lmo, np.zeros((3, 4)), 3.0)
DOMAINS = {"simplex": SIMPLEX, "l2 ball": BALL, "nuclear ball": NUCLEAR}
BOX = (
    cx.domains.Box(LOWER, UPPER),
    lambda x: np.clip(x, LOWER, UPPER),
    (LOWER + UPPER) / 2,
    np.linalg.norm(UPPER - LOWER),
)
PROJECTIONS = {"box": BOX, "simplex": (SIMPLEX[0], simplex_projection, *SIMPLEX[2:])}


def play(domain, learner, rounds, constraints):
    regularity = cx.Regularity(lipschitz=LIPSCHITZ, smoothness=SMOOTHNESS)
    problem = cx.Problem(domain, loss, constraint, constraints=constraints, regularity=regularity)
    return cx.play(problem, learner, rounds, key=jax.random.key(0), keep_decisions=True)


def assert_same_game(game, plays, multipliers, tol=1e-10, least=0.05):
    np.testing.assert_allclose(game.multiplier, multipliers, rtol=tol, atol=tol)
    np.testing.assert_allclose(game.decisions, plays[:ROUNDS], rtol=tol, atol=tol)
    np.testing.assert_allclose(game.decision, plays[ROUNDS], rtol=tol, atol=tol)
    assert np.max(multipliers) > least  # else the dual was never tested


# What Algorithm 2 and AdaMFW share


def inner_loop(start, vertices):
    """x^1, .., x^{K+1} by x^{k+1} = x^k + 2 (v^k - x^k) / (k + 1)."""
    points = [start]
    for k, vertex in enumerate(vertices, start=1):
        points.append(points[-1] + 2 / (k + 1) * (vertex - points[-1]))
    return points


def ball_constant(d):
    return math.gamma(d / 2 + 1) / (math.sqrt(math.pi) * math.gamma((d + 1) / 2))
