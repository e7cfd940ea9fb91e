"""The baselines of the related work: against plain NumPy loops, against CVXPY, and against what is proven of them."""

import itertools
import math
from types import SimpleNamespace

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from slow_tools import slow_but
from transcription_tools import (
    LIPSCHITZ,
    ROUNDS,
    SIMPLEX,
    assert_same_game,
    constraint_values,
    loss_gradient,
    one_by_one,
    simplex_projection,
    some_rounds,
    weighted_gradient,
)
from transcription_tools import constraint as curved_constraint
from transcription_tools import loss as curved_loss

import cocoax as cx
from cocoax import baselines, learners, theory
from cocoax.primal.proximal import penalised_step

BOUND = 2.5  # on the constraints; a parameter here, as LIPSCHITZ is


def ball_projection(x):
    return x / max(1, np.linalg.norm(x) / 2)


PLACES = {  # the domain, its projection, its start and its diameter
    "simplex": (SIMPLEX[0], simplex_projection, *SIMPLEX[2:]),
    "l2 ball": (cx.domains.L2Ball(4, radius=2.0), ball_projection, np.zeros(4), 4.0),
}
everywhere = pytest.mark.parametrize("place", slow_but(["simplex"], PLACES))
simply = pytest.mark.parametrize("place", slow_but(["l2 ball"], PLACES))  # where a proximal step compiles sooner


def play(domain, learner, rounds, constraints):
    regularity = cx.Regularity(lipschitz=LIPSCHITZ, constraint_bound=BOUND)
    problem = cx.Problem(domain, curved_loss, curved_constraint, constraints=constraints, regularity=regularity)
    return cx.play(problem, learner, rounds, key=jax.random.key(0), keep_decisions=True)


def transcribe(start, rounds, constraints, update):
    """`update(t, x, dual, r) -> (x, dual, multiplier)`, round by round; the dual starts at zero."""
    x, dual, plays, multipliers = start, np.zeros(constraints), [start], []
    for t, r in enumerate(one_by_one(rounds), start=1):
        x, dual, multiplier = update(t, x, dual, r)
        plays.append(x)
        multipliers.append(multiplier)
    return plays, multipliers


def slopes(x, r):
    return np.array([a + 0.5 * x for a in r["a"]])


# Primal-dual gradients


def primal_dual(project, step, ascend):
    def update(t, x, multiplier, r):
        after = project(x - step(t) * weighted_gradient(x, r, multiplier))
        return after, ascend(t, multiplier, constraint_values(x, r)), multiplier

    return update


def regularised(theta, mu):
    return lambda t, multiplier, values: np.maximum((1 - theta(t) * mu(t)) * multiplier + mu(t) * values, 0)


@everywhere
def test_pdogd_trades_regret_for_violation_by_beta(place):
    domain, project, start, width = PLACES[place]
    rounds, level, scale = some_rounds(domain.shape, 2), ROUNDS ** (0.5 + 0.2), 0.05
    theta = 6 * 2 * width * LIPSCHITZ / level * scale
    ascent = regularised(lambda t: theta, lambda t: 1 / (theta * (ROUNDS + 2)))
    expected = transcribe(start, rounds, 2, primal_dual(project, lambda t: width / (LIPSCHITZ * level), ascent))
    assert_same_game(play(domain, baselines.PDOGD(beta=0.2, theta_scale=scale), rounds, 2), *expected)


@everywhere
def test_adaptive_pdogd_trades_regret_for_violation_by_beta(place):
    domain, project, start, width = PLACES[place]
    rounds = some_rounds(domain.shape, 2)

    def theta(t):
        return 6 * 2 * width * LIPSCHITZ / t**0.8

    ascent = regularised(theta, lambda t: 1 / (theta(t) * (t + 1)))
    expected = transcribe(start, rounds, 2, primal_dual(project, lambda t: width / (LIPSCHITZ * t**0.8), ascent))
    assert_same_game(play(domain, learners.AdaptivePDOGD(beta=0.8), rounds, 2), *expected, least=1e-3)


@everywhere
def test_valls_is_its_transcription(place):
    domain, project, start, width = PLACES[place]
    rounds = some_rounds(domain.shape, 2)
    update = primal_dual(
        project,
        lambda t: width / (LIPSCHITZ * t**0.4),
        lambda t, multiplier, values: np.maximum(multiplier + values / (width * LIPSCHITZ * t**0.4), 0),
    )
    assert_same_game(play(domain, baselines.Valls(epsilon=0.4), rounds, 2), *transcribe(start, rounds, 2, update))


@everywhere
def test_castiglioni_is_its_transcription(place):
    domain, project, start, width = PLACES[place]
    rounds, cap = some_rounds(domain.shape, 2), 1 / 1.25
    dual_step = cap / (BOUND * math.sqrt(ROUNDS))
    update = primal_dual(
        project,
        lambda t: width / (LIPSCHITZ * (1 + 2 * cap) * math.sqrt(ROUNDS)),
        lambda t, multiplier, values: np.clip(multiplier + dual_step * values, 0, cap),
    )
    expected = transcribe(start, rounds, 2, update)
    assert np.max(expected[1]) == cap or place == "l2 ball"
    assert_same_game(play(domain, baselines.Castiglioni(1.25), rounds, 2), *expected)


@everywhere
def test_yuan_lamperski_is_its_transcription(place):
    domain, project, start, width = PLACES[place]
    rounds, step = some_rounds(domain.shape, 2), width / (LIPSCHITZ * ROUNDS**0.6)

    def update(t, x, dual, r):
        multiplier = np.maximum(constraint_values(x, r), 0) / (2 * 2 * LIPSCHITZ**2 * step)
        return project(x - step * weighted_gradient(x, r, multiplier)), dual, multiplier

    expected = transcribe(start, rounds, 2, update)
    assert_same_game(play(domain, baselines.YuanLamperski(beta=0.6), rounds, 2), *expected)


@everywhere
def test_osphg_is_its_transcription(place):
    domain, project, start, width = PLACES[place]
    rounds, scale = some_rounds(domain.shape, 2), 0.02
    step = width / (LIPSCHITZ * math.sqrt(ROUNDS))
    theta = 12 * 2 * width * LIPSCHITZ / math.sqrt(ROUNDS) * scale
    mu = 1 / (theta * (ROUNDS + 2))
    proposals = [start] * math.ceil(math.sqrt(ROUNDS))

    def loop():
        points = [start]
        for k, proposal in enumerate(proposals, start=1):
            points.append(points[-1] + 2 / (k + 1) * (proposal - points[-1]))
        return points

    def update(t, x, multiplier, r):
        for k, point in enumerate(loop()[:-1]):
            proposals[k] = project(proposals[k] - step * weighted_gradient(point, r, multiplier))
        after = np.maximum((1 - theta * mu) * multiplier + mu * constraint_values(x, r), 0)
        return loop()[-1], after, multiplier

    expected = transcribe(start, rounds, 2, update)
    assert_same_game(play(domain, baselines.OSPHG(theta_scale=scale), rounds, 2), *expected)


# Drift plus penalty


def drift_plus_penalty(move, weight):
    def update(t, x, queue, r):
        after = move(x, weighted_gradient(x, r, queue, loss_weight=weight))
        ahead = constraint_values(x, r) + slopes(x, r) @ (after - x)
        return after, np.maximum(queue + ahead, 0), queue / weight

    return update


@pytest.mark.parametrize(
    "given, weight",
    [({}, math.sqrt(ROUNDS)), ({"window": 10}, 10.0), ({"loss_weight": 30.0, "window": 2}, 30.0)],
    ids=["default", "long window", "own weight"],
)
@everywhere
def test_liakopoulos_is_its_transcription(place, given, weight):
    domain, project, start, _ = PLACES[place]
    rounds, alpha = some_rounds(domain.shape, 2), max(ROUNDS, weight * math.sqrt(ROUNDS))
    update = drift_plus_penalty(lambda x, direction: project(x - direction / (2 * alpha)), weight)
    expected = transcribe(start, rounds, 2, update)
    assert_same_game(play(domain, baselines.Liakopoulos(**given), rounds, 2), *expected)


@everywhere
def test_dpp_by_mirror_descent_is_its_transcription(place):
    domain, project, start, _ = PLACES[place]
    rounds = some_rounds(domain.shape, 2)

    def entropic(x, direction):
        mixed = (1 - 1 / ROUNDS) * x + 1 / (ROUNDS * len(x))
        grown = mixed * np.exp(-direction / ROUNDS)
        return grown / grown.sum()

    move = entropic if place == "simplex" else lambda x, direction: project(x - direction / ROUNDS)
    expected = transcribe(start, rounds, 2, drift_plus_penalty(move, math.sqrt(ROUNDS)))
    assert_same_game(play(domain, baselines.DPPMirror(), rounds, 2), *expected)


def test_mirror_descent_knows_the_total_of_the_simplex():
    rounds = some_rounds((5,), 1)
    game = play(cx.domains.ProbabilitySimplex(5, total=3.0), baselines.DPPMirror(), rounds, 1)
    np.testing.assert_allclose(game.decisions.sum(1), 3.0, rtol=1e-12)
    assert game.decisions.min() > 0 and np.ptp(game.decisions[-1]) > 0.1


def same_constraint(rounds):
    return {**rounds, **{name: np.broadcast_to(rounds[name][:1], rounds[name].shape) for name in ("a", "b")}}


@simply
def test_yu_neely_is_its_transcription(place):
    """As printed, with Q_1 from a constraint that is known before the first round."""
    domain, project, start, _ = PLACES[place]
    rounds = same_constraint({**some_rounds(domain.shape, 2), "b": np.array([0.1] * ROUNDS)})
    gamma, alpha = ROUNDS**0.25, 0.5 * (2 * LIPSCHITZ**2 + 1) * math.sqrt(ROUNDS)
    first = np.maximum(0, -gamma * constraint_values(start, one_by_one(rounds)[0]))

    def update(t, x, queue, r):
        queue = first if t == 1 else queue
        multiplier = gamma * (queue + gamma * constraint_values(x, r))
        after = project(x - weighted_gradient(x, r, multiplier) / (2 * alpha))
        seen = gamma * constraint_values(after, r)
        return after, np.maximum(-seen, queue + seen), multiplier

    expected = transcribe(start, rounds, 2, update)
    assert (first.max() > 0) == (place == "l2 ball")
    assert_same_game(play(domain, baselines.YuNeely(), rounds, 2), *expected)


# The proximal step, and the methods that take it


def proximal(project, r, gradient, centre, weight, alpha):
    """One constraint <a, x> + |x|^2 / 4 - b: for each multiplier the best point is a projection."""

    def best(nu):
        return project((2 * alpha * centre - gradient - nu * r["a"][0]) / (2 * alpha + nu / 2))

    low, high = 0.0, weight
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if constraint_values(best(middle), r)[0] > 0 else (low, middle)
    return best((low + high) / 2), (low + high) / 2


def by_proximal_steps(project, weigh, alpha, charge):
    def update(t, x, queue, r):
        after, multiplier = proximal(project, r, loss_gradient(x, r), x, weigh(t, queue[0]), alpha(t))
        queue = charge(t, queue, np.maximum(constraint_values(after, r), 0))
        return after, queue, np.array([multiplier])

    return update


@simply
def test_yi_is_its_transcription(place):
    domain, project, start, _ = PLACES[place]
    rounds = some_rounds(domain.shape, 1)
    update = by_proximal_steps(
        project,
        lambda t, queue: queue,
        lambda t: t**0.3,
        lambda t, queue, violation: queue + (t + 1) ** 0.3 * violation,
    )
    expected = transcribe(start, rounds, 1, update)
    assert_same_game(play(domain, baselines.Yi(c=0.3), rounds, 1), *expected, tol=1e-8)


@simply
def test_recoo_is_its_transcription(place):
    domain, project, start, _ = PLACES[place]
    rounds = some_rounds(domain.shape, 1)

    def charge(t, queue, violation):
        queue = np.ones(1) if t == 1 else queue
        return np.maximum(queue + t**0.75 * violation, math.sqrt(t))

    update = by_proximal_steps(
        project, lambda t, queue: t**0.75 * (1.0 if t == 1 else queue), lambda t: math.sqrt(t), charge
    )
    expected = transcribe(start, rounds, 1, update)
    assert_same_game(play(domain, baselines.RECOO(epsilon=0.25), rounds, 1), *expected, tol=1e-8)


SOLVED = {
    "simplex": (cx.domains.ProbabilitySimplex(4), lambda x: [x >= 0, cp.sum(x) == 1]),
    "l2 ball": (cx.domains.L2Ball(4, radius=0.7), lambda x: [cp.norm(x) <= 0.7]),
    "box": (cx.domains.Box(-jnp.ones(4), 2 * jnp.ones(4)), lambda x: [x >= -1, x <= 2]),
}


def quadratic_constraint(x, r):
    return r["a"] @ x + 0.5 * r["q"] * jnp.sum((x - r["z"]) ** 2) - r["b"]


@pytest.mark.parametrize("name, constraints", slow_but([("simplex", 1), ("box", 3)], itertools.product(SOLVED, [1, 3])))
def test_the_proximal_step_is_a_generic_solvers(name, constraints):
    domain, membership = SOLVED[name]
    rng, count = np.random.default_rng(constraints), 12
    rounds = {
        "a": rng.normal(size=(count, constraints, 4)),
        "q": rng.uniform(0, 3, (count, constraints)) * (np.arange(count) % 2)[:, None],  # half of them linear
        "b": rng.uniform(-0.5, 0.3, (count, constraints)),
        "z": rng.normal(size=(count, 4)),
    }
    gradient, alpha = rng.normal(size=(count, 4)), rng.uniform(0.3, 2, count)
    weights = np.array([0.5, 5.0, 100.0])[np.arange(count) % 3][:, None] * rng.uniform(0.5, 1, (count, constraints))
    centre = np.asarray(jax.jit(jax.vmap(lambda x: domain.project(x)))(rng.normal(size=(count, 4))))
    rounds["a"][5], rounds["b"][5], rounds["z"][5] = 0.0, 0.02, centre[5]  # flat and met at the centre: no slope yet
    problem = cx.Problem(domain, lambda x, r: x[0], quadratic_constraint, constraints=constraints)
    found, multipliers, steps = jax.jit(jax.vmap(lambda *given: penalised_step(problem, *given)))(
        rounds, gradient, centre, weights, alpha
    )
    for i in range(count):
        x, r = cp.Variable(4), {key: value[i] for key, value in rounds.items()}
        penalty = sum(
            w * cp.pos(a @ x + 0.5 * q * cp.sum_squares(x - r["z"]) - b)
            for w, a, q, b in zip(weights[i], r["a"], r["q"], r["b"])
        )
        objective = gradient[i] @ x + penalty + alpha[i] * cp.sum_squares(x - centre[i])
        cp.Problem(cp.Minimize(objective), membership(x)).solve(solver="CLARABEL")
        best, x.value = objective.value, np.asarray(found[i])
        assert objective.value <= best + 1e-6 * (1 + abs(best))
        assert bool(domain.contains(found[i], 1e-9))
    assert np.all(multipliers >= 0) and np.all(multipliers <= weights) and np.any(multipliers > 0.1)
    assert steps[0] == 1 or constraints > 1  # one linear constraint: exact at once


# FW-CSOA's substitute


def test_the_margin_of_fwcsoa_is_the_bound_of_pdofw_a_round():
    problem = cx.Problem(
        SIMPLEX[0], curved_loss, curved_constraint, constraints=2, regularity=cx.Regularity(LIPSCHITZ, 1.0, BOUND)
    )
    for horizon in (100, 10**6):
        bounds = theory.pdofw(
            horizon,
            diameter=math.sqrt(2),
            lipschitz=LIPSCHITZ,
            constraint_bound=1.5 * BOUND,
            constraints=2,
            multiplier=2 * math.sqrt(2) * LIPSCHITZ / 0.5,
        )
        margin = baselines.FWCSOA(0.5).rule(problem, jnp.asarray(horizon)).margin
        expected = bounds.violation_strong_duality / horizon
        assert expected <= margin <= 1.01 * expected


def test_fwcsoa_is_pdofw_with_a_tightened_constraint():
    rounds, scales = some_rounds((5,), 1), {"theta_scale": 0.01, "margin_scale": 0.01}
    tight = baselines.FWCSOA(0.5, **scales)
    problem = cx.Problem(SIMPLEX[0], curved_loss, curved_constraint, regularity=cx.Regularity(LIPSCHITZ, 1.0, BOUND))
    margin = tight.rule(problem, jnp.asarray(ROUNDS)).margin
    tightened = {**rounds, "b": rounds["b"] - np.asarray(margin)}
    game = play(SIMPLEX[0], tight, rounds, 1)
    same = play(SIMPLEX[0], learners.PDOFW(theta_scale=0.01), tightened, 1)
    np.testing.assert_allclose(game.decisions, same.decisions, atol=1e-12)
    np.testing.assert_allclose(game.multiplier, same.multiplier, atol=1e-12)
    assert margin > 0.1 and game.multiplier.max() > 0.05


# What is proven, in games against adversaries that see every decision. Largest ratios measured/bound: PDOGD 0.30,
# OSPHG 0.11, Castiglioni 0.18, YuanLamperski 0.51; Yi's regret 0.18, RECOO's 0.04

HORIZON, GAMES = 200, 12
ARENAS = {
    "l2 ball": cx.domains.L2Ball(3, radius=1.5),
    "box": cx.domains.Box(-jnp.ones(3), jnp.array([1.0, 2.0, 1.0])),
}
SAFE = np.array([0.3, -0.2, 0.1])  # meets all constraints in all rounds


def spiteful_loss(x, r):
    return jnp.vdot(r["cost"], x) + 0.5 * r["curvature"] * jnp.sum((x - SAFE) ** 2)


def spiteful_constraint(x, r):
    return r["use"] @ (x - SAFE)


class Spite(cx.Environment):
    """Losses and constraints along a table, and against the decision just taken."""

    costs: Float[Array, "T d"]
    uses: Float[Array, "T m d"]
    spite: Float[Array, ""]
    curvature: Float[Array, ""]  # of the losses

    def init(self, key):
        return jnp.zeros((), jnp.int32)

    def emit(self, state, decision, key):
        gap = self.spite * (decision - SAFE)
        cost, use = self.costs[state] + gap, self.uses[state] + gap[None]
        unit = jax.vmap(lambda v: v / jnp.maximum(jnp.linalg.norm(v), 1))
        return state + 1, {"cost": unit(cost[None])[0], "use": unit(use), "curvature": self.curvature}


def spiteful_tables(fixed):
    """Losses: noise, or a direction that stays, turns at half time or turns often. Constraints: against them, noise."""
    rng, t = np.random.default_rng(0), np.arange(HORIZON)
    way = rng.normal(size=(GAMES, 1, 3))
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    sign = [np.where(t < HORIZON // 2, 1.0, -1.0), np.where(t // 9 % 2, 1.0, -1.0), np.ones(HORIZON)]
    costs = np.stack([sign[i % 3][:, None] * way[i] for i in range(GAMES)])
    costs[::4] = rng.normal(size=costs[::4].shape)
    uses = np.stack([-costs, rng.normal(size=costs.shape)], 2)
    spite = np.where(np.arange(GAMES) % 2, rng.choice([0.3, 3.0], GAMES), 0.0)
    if fixed:
        uses, spite = np.broadcast_to(uses[:, :1], uses.shape), np.zeros(GAMES)
    return jnp.asarray(costs), jnp.asarray(uses), jnp.asarray(spite)


@jax.jit
def _games(problem, learner, environments, points):
    @jax.vmap
    def run(environment):
        game = cx.play(problem, learner, environment, key=jax.random.key(0), horizon=HORIZON, keep_rounds=True)
        there = jax.vmap(lambda x: jax.vmap(lambda r: problem.values(x, r))(game.rounds))(points)
        return game, *there

    return run(environments)


def spiteful_games(arena, learner, *, curvature=0.0, fixed=False):
    """R, D, all games, and for many fixed points x the regrets and the sums of <lambda_t, g_t(x)>; x = SAFE first."""
    domain = ARENAS[arena]
    width = float(domain.diameter(2))
    lipschitz = 1 + curvature * width
    regularity = cx.Regularity(lipschitz, curvature, width)
    problem = cx.Problem(domain, spiteful_loss, spiteful_constraint, constraints=2, regularity=regularity)
    environments = Spite(*spiteful_tables(fixed), jnp.full(GAMES, curvature))
    others = 2 * np.random.default_rng(1).normal(size=(30, 3))
    others = np.asarray(jax.jit(jax.vmap(lambda x: domain.project(x)))(others))
    points = jnp.asarray(np.concatenate([SAFE[None], others]))
    game, losses, values = _games(problem, learner, environments, points)
    regret = game.loss.sum(-1)[:, None] - losses.sum(-1)
    return width, lipschitz, game, regret, jnp.einsum("gtm,gptm->gp", game.multiplier, values)


def saddle_gap(game, regret, lent, weight):
    """The largest Reg(x) + <lambda, V> - sum <lambda_t, g_t(x)> - weight |lambda|^2 over lambda >= 0 and the points."""
    over = np.maximum(game.constraint.sum(1), 0)
    return (regret - lent).max(-1) + (over**2).sum(-1) / (4 * weight)


in_arenas = pytest.mark.parametrize("arena", slow_but(["l2 ball"], ARENAS))


@pytest.mark.parametrize("beta", [0.0, 0.3])
@in_arenas
def test_pdogd_obeys_its_saddle_inequality(arena, beta):
    width, lipschitz, game, regret, lent = spiteful_games(arena, baselines.PDOGD(beta=beta))
    unit, level = width * lipschitz, HORIZON**beta
    theta = 2 * 6 * unit / (level * math.sqrt(HORIZON))
    bound = (level / 2 + 1 / level) * unit * math.sqrt(HORIZON) + 2 * width**2 / theta
    gap = saddle_gap(game, regret, lent, theta * (HORIZON + 1))
    assert gap.max() <= bound and gap.max() > 0.1 * bound


@in_arenas
def test_osphg_obeys_its_saddle_inequality(arena):
    width, lipschitz, game, regret, lent = spiteful_games(arena, baselines.OSPHG(), curvature=0.1)
    unit, rho = width * lipschitz, 2 * width**2 * 0.1
    theta = 2 * 12 * unit / math.sqrt(HORIZON)
    bound = (1.5 * unit + rho + rho**2 / (4 * unit)) * math.sqrt(HORIZON) + 2 * width**2 / theta
    gap = saddle_gap(game, regret, lent, theta * (HORIZON + 1))
    assert gap.max() <= bound and gap.max() > 0.05 * bound


@in_arenas
def test_castiglioni_obeys_its_saddle_inequality(arena):
    slater = 0.8
    width, lipschitz, game, regret, lent = spiteful_games(arena, baselines.Castiglioni(slater))
    over = np.maximum(game.constraint.sum(1), 0).sum(-1) / slater
    primal = width * lipschitz * (1 + 2 / slater) * math.sqrt(HORIZON)
    bound = primal + 2 * width / slater * math.sqrt(HORIZON)
    gap = (regret - lent).max(-1) + over
    assert gap.max() <= bound and gap.max() > 0.1 * bound
    assert game.multiplier.max() <= 1 / slater


@pytest.mark.parametrize("beta", [0.3, 0.5, 0.8])
@in_arenas
def test_yuan_lamperski_obeys_its_inequality(arena, beta):
    width, lipschitz, game, regret, _ = spiteful_games(arena, baselines.YuanLamperski(beta=beta))
    eta = width / (lipschitz * HORIZON**beta)
    squares = (np.maximum(game.constraint, 0) ** 2).sum((1, 2)) / (4 * 2 * lipschitz**2 * eta)
    bound = width**2 / (2 * eta) + eta * lipschitz**2 * HORIZON
    value = regret[:, 0] + squares
    assert value.max() <= bound and value.max() > 0.02 * bound


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("c", [0.3, 0.5])
def test_yi_obeys_its_theorem(c, fixed):
    width, lipschitz, game, regret, _ = spiteful_games("l2 ball", baselines.Yi(c=c), fixed=fixed)
    t = np.arange(1, HORIZON + 1)
    bound = width**2 * HORIZON**c + lipschitz**2 / 4 * np.sum(t**-c)
    gamma = (HORIZON + 1) ** c
    most = math.sqrt(2) * width * gamma + math.sqrt(2 * gamma * (width * lipschitz * HORIZON + bound))
    assert np.max(regret[:, 0]) <= bound
    assert np.linalg.norm(game.state.learner.queue, axis=-1).max() <= most


@pytest.mark.parametrize("fixed", [True, False])
def test_recoo_obeys_its_theorem(fixed):
    epsilon, t = 0.2, np.arange(1, HORIZON + 1)
    width, lipschitz, game, regret, _ = spiteful_games("box", baselines.RECOO(epsilon=epsilon), fixed=fixed)
    bound = width**2 + lipschitz**2 / 2
    assert np.max(regret[:, 0]) <= bound * math.sqrt(HORIZON)
    if fixed:
        spent = width * lipschitz * t + bound * np.sqrt(t)  # bounds the sum of gamma_t Q_t [g(x_{t+1})]_+
        weights = np.sqrt(np.maximum(t - 1, 1)) * t ** (0.5 + epsilon)  # at most gamma_t Q_t
        most = (spent[:-1] * -np.diff(1 / weights)).sum() + spent[-1] / weights[-1]
        hard = np.maximum(game.constraint, 0).sum(-1)
        assert hard[:, 1:].sum(1).max() <= most
        assert hard.sum(1).max() > 0.01 and hard[:, HORIZON // 2 :].sum(1).max() < 1e-6  # it comes to an end


def test_yu_neely_pays_for_a_fixed_constraint_once():
    """Its violation does not grow with T: four times the rounds, nearly the same."""
    _, _, game, _, _ = spiteful_games("l2 ball", baselines.YuNeely(), fixed=True)
    running = game.constraint.cumsum(1).max(-1)
    assert running[:, -1].max() <= 1.05 * running[:, : HORIZON // 4].max()


@pytest.mark.parametrize("value", [-2.0, 0.5])
def test_the_floored_queue_begins_at_the_first_slack(value):
    """By hand: Q_1 = max(0, -unit g(x_1)), the weight unit (Q_1 + unit g(x_1)), and Q_2 with g(x_2) = 1/4."""
    unit, first = 3.0, max(0.0, -3.0 * value)
    rule = cx.dual.FlooredQueue(unit)
    weights, queue = rule.weigh(rule.init(1, float), jnp.array([value]))
    np.testing.assert_allclose(weights.constraint, [unit * (first + unit * value)])
    np.testing.assert_allclose(queue, [first])
    np.testing.assert_allclose(rule.settle(queue, SimpleNamespace(exact=lambda: jnp.array([0.25]))), [first + 0.75])
    np.testing.assert_allclose(rule.settle(queue, SimpleNamespace(exact=lambda: jnp.array([-9.0]))), [27.0])


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: baselines.PDOGD(beta=0.6), "beta must lie in"),
        (lambda: learners.AdaptivePDOGD(beta=-0.1), "beta must lie in"),
        (lambda: baselines.YuanLamperski(beta=2.0), "beta must lie in"),
        (lambda: baselines.Yi(c=1.5), "c must lie in"),
        (lambda: baselines.RECOO(epsilon=0.0), "epsilon must be positive"),
        (lambda: baselines.Valls(epsilon=-1.0), "epsilon must lie in"),
        (lambda: baselines.Liakopoulos(window=0), "window must be at least 1"),
        (lambda: baselines.Liakopoulos(window=1.5), "window must be a whole number"),
        (lambda: baselines.Liakopoulos(loss_weight=-1.0), "loss_weight must be positive"),
        (lambda: baselines.Castiglioni(0.0), "slater must be positive"),
        (lambda: baselines.Castiglioni(0.1, cx.primal.OGD), "Castiglioni takes one of cocoax.primal"),
        (lambda: baselines.FWCSOA(-1.0), "slater must be positive"),
        (lambda: baselines.FWCSOA(1.0, margin_scale=0.0), "margin_scale must be positive"),
        (lambda: cx.dual.BoundedAscent(0.0, 1.0), "cap must be positive"),
        (lambda: cx.dual.BoundedAscent(1.0, math.inf), "step must be positive and finite"),
        (lambda: cx.dual.FlooredQueue(-1.0), "unit must be positive"),
    ],
)
def test_bad_numbers_get_one_sentence(make, sentence):
    with pytest.raises(cx.errors.LearnerError, match=sentence):
        make()


@pytest.mark.parametrize(
    "learner", [baselines.YuNeely(), baselines.DPPMirror(), baselines.Yi(), baselines.RECOO(), baselines.Liakopoulos()]
)
def test_a_domain_without_projection_says_so(learner):
    edges = [(0, 1), (1, 2), (0, 2)]
    problem = cx.Problem(
        cx.domains.ShortestPath(edges, 0, 2), lambda x, r: jnp.vdot(r, x), regularity=cx.Regularity(1.0)
    )
    sentence = r"ShortestPath has no cheap exact projection; .* such as learners.Auto\(\)"
    with pytest.raises(cx.errors.DomainError, match=sentence):
        cx.play(problem, learner, jnp.ones((3, 3)), key=jax.random.key(0))


def test_missing_constants_are_asked_for():
    problem = cx.Problem(SIMPLEX[0], curved_loss, curved_constraint, regularity=cx.Regularity(lipschitz=1.0))
    for learner in (baselines.Castiglioni(0.5), baselines.FWCSOA(0.5)):
        with pytest.raises(cx.errors.ProblemError, match="needs constraint_bound"):
            learner.init(problem, key=jax.random.key(0), horizon=5)
