"""The methods against plain NumPy loops, written from the mathematics and sharing no code with the library."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_tools import slow_but
from transcription_tools import (
    DOMAINS,
    LIPSCHITZ,
    PROJECTIONS,
    ROUNDS,
    SIMPLEX,
    SMOOTHNESS,
    assert_same_game,
    ball_constant,
    constraint,
    constraint_values,
    inner_loop,
    loss,
    one_by_one,
    play,
    some_rounds,
    weighted_gradient,
)

import cocoax as cx
from cocoax.domains.vertices import Dense

on_domains = pytest.mark.parametrize(
    "name, constraints",
    slow_but([("simplex", 3), ("l2 ball", 1), ("nuclear ball", 1)], itertools.product(DOMAINS, [1, 3])),
)
with_projections = pytest.mark.parametrize(
    "name, constraints", slow_but([("box", 3), ("simplex", 1)], itertools.product(PROJECTIONS, [1, 3]))
)

# Algorithm 1


def ocg_block(x, gradients, lipschitz, diameter, lmo):
    """The plays of one block, and the point after it."""
    eta = diameter / (2 * lipschitz * len(gradients) ** 0.75)
    first, total, plays = x, np.zeros_like(x), []
    for t, gradient in enumerate(gradients, start=1):
        plays.append(x)
        direction = eta * total + 2 * (x - first)
        vertex = lmo(direction) if direction.any() else x
        sigma = min(1.0, 2 / math.sqrt(t))
        total = total + gradient(x)
        x = (1 - sigma) * x + sigma * vertex
    return plays, x


def orgfw_block(x, gradients, lipschitz, diameter, lmo):
    plays = []
    for t, gradient in enumerate(gradients, start=1):
        estimate = gradient(x) if t == 1 else gradient(x) + (1 - 1 / (t + 1)) * (estimate - gradient(plays[-1]))
        plays.append(x)
        x = x + (lmo(estimate) - x) / (t + 1)
    return plays, x


def algorithm_1(block, slope, block_length, rounds, start, diameter, lmo, constraints, beta, theta_scale):
    blocks = math.ceil(ROUNDS / block_length)
    alpha = {ocg_block: 3 / 4, orgfw_block: 1 / 2}[block]
    theta = 3 * constraints * slope * block_length**alpha * ROUNDS**-beta * theta_scale
    mu = 1 / (theta * (blocks + 1))
    x, multiplier, plays, multipliers = start, np.zeros(constraints), [], []
    rounds = one_by_one(rounds)
    for first in range(0, ROUNDS, block_length):
        here = rounds[first : first + block_length]
        gradients = [lambda x, r=r, w=multiplier: weighted_gradient(x, r, w) for r in here]
        played, x = block(x, gradients, LIPSCHITZ * (1 + multiplier.sum()), diameter, lmo)
        plays += played
        multipliers += [multiplier] * len(here)
        total = sum(constraint_values(x, r) for x, r in zip(played, here))
        multiplier = np.maximum((1 - theta * mu) * multiplier + mu * total, 0)
    return [*plays, x], multipliers


@pytest.mark.parametrize("beta, theta_scale", [(0.0, 0.003), (1 / 6, 0.01)])
@on_domains
def test_algorithm_1_with_ocg_is_its_transcription(name, constraints, beta, theta_scale):
    domain, lmo, start, diameter = DOMAINS[name]
    rounds = some_rounds(domain.shape, constraints)
    learner = cx.learners.Blocks(cx.primal.OCG(), beta=beta, theta_scale=theta_scale)
    expected = algorithm_1(
        ocg_block, 8 * diameter * LIPSCHITZ, 14, rounds, start, diameter, lmo, constraints, beta, theta_scale
    )
    assert_same_game(play(domain, learner, rounds, constraints), *expected)


@on_domains
def test_algorithm_1_with_orgfw_is_its_transcription(name, constraints):
    domain, lmo, start, diameter = DOMAINS[name]
    rounds = some_rounds(domain.shape, constraints, seed=1)
    learner = cx.learners.Blocks(cx.primal.ORGFW(), beta=0.25, theta_scale=0.003)
    slope = 7 * diameter * LIPSCHITZ + 6.5 * diameter**2 * SMOOTHNESS
    expected = algorithm_1(orgfw_block, slope, 8, rounds, start, diameter, lmo, constraints, 0.25, 0.003)
    assert_same_game(play(domain, learner, rounds, constraints), *expected)


# Algorithm 2, fed with the library's own coins


@pytest.mark.parametrize("count", [1, 2, 9])
def test_the_inner_points_of_mfw_are_its_loop(count):
    vertices = np.random.default_rng(count).normal(size=(count, 2, 3))
    start = np.random.default_rng(0).normal(size=(2, 3))
    batch = Dense(jnp.asarray(vertices))
    points = inner_loop(start, vertices)
    np.testing.assert_allclose(
        cx.primal.MFW().inner_points(jnp.asarray(start), batch), points[:-1], rtol=1e-13, atol=1e-13
    )
    last = cx.primal.MFW().last_point(jnp.asarray(start), batch, jnp.asarray(count))
    np.testing.assert_allclose(last, points[-1], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_the_weights_of_mfw_are_2k_over_k_k_plus_1_and_sum_to_one(count):
    units = Dense(jnp.eye(count))
    weights = np.asarray(cx.primal.MFW().last_point(jnp.zeros(count), units, jnp.asarray(count)))
    k = np.arange(1, count + 1)
    np.testing.assert_allclose(weights, 2 * k / (count * (count + 1)), rtol=1e-14)
    assert abs(weights.sum() - 1) < 1e-13
    gammas = 2 / (k + 1)
    products = [gammas[j] * np.prod(1 - gammas[j + 1 :]) for j in range(count)]
    np.testing.assert_allclose(weights, products, rtol=1e-12)


@pytest.mark.parametrize(
    "perturbation, constraints, beta",
    [("cube", 1, 0.0), ("cube", 3, 0.3), ("centred", 1, 0.5), ("ball", 3, 0.0)],
)
def test_algorithm_2_is_its_transcription(perturbation, constraints, beta):
    domain, lmo, start, diameter = SIMPLEX
    d, theta_scale = 5, 0.01
    norm = 2 if perturbation == "ball" else jnp.inf
    regularity = cx.Regularity(lipschitz=LIPSCHITZ, smoothness=SMOOTHNESS, norm=norm)
    problem = cx.Problem(domain, loss, constraint, constraints=constraints, regularity=regularity)
    learner = cx.learners.PDMFW(beta=beta, theta_scale=theta_scale, perturbation=perturbation)
    rounds, key = some_rounds((d,), constraints, seed=2), jax.random.key(7)

    game = cx.play(problem, learner, rounds, key=key, keep_decisions=True)

    level, count = ROUNDS ** (0.5 + beta), math.ceil(math.sqrt(ROUNDS))
    factor = math.sqrt(2 * ball_constant(d)) if perturbation == "ball" else math.sqrt(d)
    width = 2 if perturbation != "ball" else diameter
    size = (1 if perturbation == "ball" else 2) * LIPSCHITZ * factor * level
    theta = 12 * constraints * width * LIPSCHITZ * factor / level * theta_scale
    mu = 1 / (theta * (ROUNDS + 2))

    @jax.jit
    def draw(key):
        return jax.vmap(lambda k: learner.primal.noise.draw(k, jnp.zeros(d)))(jax.random.split(key, count))

    def coins(t):
        of_round = jax.random.fold_in(jax.random.split(key)[0], t)
        return of_round if t == 0 else jax.random.split(of_round)[1]

    totals, multiplier = np.zeros((count, d)), np.zeros(constraints)
    plays, multipliers = [], []
    for t, r in enumerate([*one_by_one(rounds), None]):
        noise = size * np.asarray(draw(coins(t)))
        points = inner_loop(start, [lmo(p + total) for p, total in zip(noise, totals)])
        plays.append(points[-1])
        if r is not None:
            totals = totals + [weighted_gradient(x, r, multiplier) for x in points[:-1]]
            multipliers.append(multiplier)
            values = constraint_values(points[-1], r)
            multiplier = np.maximum((1 - theta * mu) * multiplier + mu * values, 0)

    assert_same_game(game, plays, multipliers)


# MORGFW


def masked_loss(x, r):
    return 0.5 * jnp.sum(r["mask"] * (x - r["y"]) ** 2)


def some_coordinates(r, key):
    return {**r, "mask": 2.0 * jax.random.bernoulli(key, 0.5, r["mask"].shape).astype(float)}


@jax.jit
def observe(learner, problem, state, r):
    return learner.observe(problem, state, r)[0]


@pytest.mark.parametrize("sample", [some_coordinates, None], ids=["sampled", "exact"])
def test_the_gradient_estimates_of_morgfw_are_their_recursion(sample):
    domain, _, start, _ = SIMPLEX
    count, d = 9, 5
    problem = cx.Problem(domain, masked_loss, regularity=cx.Regularity(lipschitz=LIPSCHITZ, smoothness=1.0))
    learner = cx.learners.PrimalDual(cx.primal.MORGFW(sample), cx.dual.RegularizedAscent(1.0, 0.1))
    key, y = jax.random.key(3), np.random.default_rng(3).normal(size=(count, d))
    state = learner.init(problem, key=key, horizon=count)
    totals = np.zeros((count, d))
    for t in range(1, count + 1):
        vertices = np.asarray(jax.vmap(lambda v: v.dense())(state.primal.vertices))
        points = [start]
        for k in range(1, count + 1):
            points.append(points[-1] + (vertices[k - 1] - points[-1]) / (k + 1))
        np.testing.assert_allclose(learner.decision(state), points[-1], rtol=1e-12)

        r = {"y": y[t - 1], "mask": np.ones(d)}
        coins = jax.random.split(jax.random.split(jax.random.fold_in(key, t))[0], count)
        masks = [r["mask"] if sample is None else np.asarray(sample(r, coin)["mask"]) for coin in coins]
        estimates = []
        for k in range(1, count + 1):
            here, mask = points[k - 1], masks[k - 1]
            estimate = mask * (here - r["y"])
            if k > 1:
                rho = 1 / (k + 1)
                estimate = estimate + (1 - rho) * (estimates[-1] - mask * (points[k - 2] - r["y"]))
            estimates.append(estimate)
        totals += estimates
        state = observe(learner, problem, state, r)
        np.testing.assert_allclose(state.primal.totals, totals, rtol=1e-11, atol=1e-11)


# Baselines with projections


@with_projections
def test_pdogd_is_its_transcription(name, constraints):
    domain, project, x, diameter = PROJECTIONS[name]
    rounds, theta_scale = some_rounds(domain.shape, constraints, seed=4), 0.05
    eta = diameter / (LIPSCHITZ * math.sqrt(ROUNDS))
    theta = 6 * constraints * diameter * LIPSCHITZ / math.sqrt(ROUNDS) * theta_scale
    mu = 1 / (theta * (ROUNDS + 2))
    multiplier, plays, multipliers = np.zeros(constraints), [x], []
    for r in one_by_one(rounds):
        multipliers.append(multiplier)
        values = constraint_values(x, r)
        x = project(x - eta * weighted_gradient(x, r, multiplier))
        multiplier = np.maximum((1 - theta * mu) * multiplier + mu * values, 0)
        plays.append(x)
    game = play(domain, cx.baselines.PDOGD(theta_scale=theta_scale), rounds, constraints)
    assert_same_game(game, plays, multipliers)


@with_projections
def test_adaptive_pdogd_is_its_transcription(name, constraints):
    domain, project, x, diameter = PROJECTIONS[name]
    rounds = some_rounds(domain.shape, constraints, seed=6)
    multiplier, plays, multipliers = np.zeros(constraints), [x], []
    for t, r in enumerate(one_by_one(rounds), start=1):
        multipliers.append(multiplier)
        eta = diameter / (LIPSCHITZ * math.sqrt(t))
        theta = 6 * constraints * diameter * LIPSCHITZ / math.sqrt(t)
        mu = 1 / (theta * (t + 1))
        values = constraint_values(x, r)
        x = project(x - eta * weighted_gradient(x, r, multiplier))
        multiplier = np.maximum((1 - theta * mu) * multiplier + mu * values, 0)
        plays.append(x)
    game = play(domain, cx.learners.AdaptivePDOGD(), rounds, constraints)
    assert_same_game(game, plays, multipliers, least=1e-3)  # at theory's theta multipliers are small


@with_projections
def test_dpp_is_its_transcription(name, constraints):
    domain, project, x, _ = PROJECTIONS[name]
    rounds = some_rounds(domain.shape, constraints, seed=5)
    weight, alpha = math.sqrt(ROUNDS), ROUNDS
    queue, plays, multipliers = np.zeros(constraints), [x], []
    for r in one_by_one(rounds):
        multipliers.append(queue / weight)
        after = project(x - weighted_gradient(x, r, queue, loss_weight=weight) / (2 * alpha))
        slopes = np.array([np.sum((a + 0.5 * x) * (after - x)) for a in r["a"]])
        queue = np.maximum(queue + constraint_values(x, r) + slopes, 0)
        x = after
        plays.append(x)
    assert_same_game(play(domain, cx.learners.DPP(), rounds, constraints), plays, multipliers)
