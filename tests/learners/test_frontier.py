"""The proven frontier, played: each method's inequality on adversaries that see the decision, and each method against a
plain NumPy loop. Ratios measured/bound in comments are the largest seen."""

import itertools
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
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
    loss_gradient,
    one_by_one,
    some_rounds,
    weighted_gradient,
)

import cocoax as cx
from cocoax import theory
from cocoax.errors import LearnerError, ProblemError
from cocoax.primal import loo_bogd

LONGEST, PERIOD, DUELS = 1024, 12, 64
HORIZONS = np.array([LONGEST] * 5 + [1, 2, 5, 30, 63, 64, 200])[np.arange(DUELS) % 12]
GROUNDS = {  # the domain; min_x <c, x>; a point that meets all constraints; the largest |x - that point|
    "simplex": (cx.domains.ProbabilitySimplex(4), lambda c: c.min(-1), np.full(4, 0.25), math.sqrt(0.75)),
    "l2 ball": (cx.domains.L2Ball(3, radius=2.0), lambda c: -2 * np.linalg.norm(c, axis=-1), np.zeros(3), 2.0),
    "box": (
        cx.domains.Box(-jnp.ones(3), 2 * jnp.ones(3)),
        lambda c: np.minimum(-c, 2 * c).sum(-1),
        np.full(3, 0.5),
        1.5 * math.sqrt(3),
    ),
}


def linear_loss(x, r):
    return jnp.vdot(r["cost"], x)


def linear_constraint(x, r):
    return r["use"] @ (x - r["safe"])


def unit(c):
    return c / jnp.maximum(jnp.linalg.norm(c, axis=-1, keepdims=True), 1)


class Adversary(cx.Environment):
    """Linear losses and constraints with gradients at most `sizes` and 1: tables, over and over, and spite against the
    decision that was just taken. No constraint is violated at `safe`."""

    domain: cx.domains.ProbabilitySimplex | cx.domains.L2Ball | cx.domains.Box
    safe: Float[Array, " d"]
    costs: Float[Array, "period d"]
    uses: Float[Array, "period m d"]
    sizes: Float[Array, " period"]
    spite: Float[Array, ""]

    def init(self, key):
        return jnp.zeros((), jnp.int32), jnp.zeros(self.domain.shape)

    def emit(self, state, decision, key):
        t, total = state
        row = t % PERIOD
        gap = decision - self.domain.lmo(total).dense()
        cost = self.sizes[row] * unit(self.costs[row] + self.spite * gap)
        use = unit(self.uses[row] + self.spite * (decision - self.safe)[None])
        return (t + 1, total + cost), {"cost": cost, "use": use, "safe": self.safe}


def adversaries(name, constraints=1, largest=0, seed=0):
    """A batch: sparse tables as drawn, one-sided, or with a sign that switches; sizes up to 10**largest."""
    domain, _, safe, _ = GROUNDS[name]
    rng = np.random.default_rng(seed)
    d = len(safe)
    switch = np.where(np.arange(PERIOD) % 2, 1.0, -1.0)[:, None]
    shapes = [lambda w: w, np.abs, lambda w: -np.abs(w), lambda w: switch * np.abs(w)]
    drawn = rng.choice([0.0, 1.0, -1.0, 0.3, -0.5], size=(DUELS, PERIOD, d))
    costs = np.stack([shapes[i % 4](table) for i, table in enumerate(drawn)])
    uses = rng.choice([0.0, 1.0, -1.0, 0.3, -0.5], size=(DUELS, PERIOD, constraints, d))
    uses[::2] = np.where(np.arange(d) == 0, np.abs(uses[::2]), -np.abs(uses[::2]))  # the same side every round
    sizes = 10.0 ** rng.uniform(-largest, largest, size=(DUELS, PERIOD))
    spite = np.array([0.0, 0.5, 10.0])[rng.integers(3, size=DUELS)]
    given = [jnp.asarray(each) for each in (np.tile(safe, (DUELS, 1)), costs, uses, sizes, spite)]
    return jax.vmap(lambda *each: Adversary(domain, *each))(*given)


@jax.jit
def duels(problem, learner, environments, horizons):
    """One game for each adversary; a plan of `horizons`, whose rounds count, in games of LONGEST."""

    def one(environment, rounds):
        game = cx.play(
            problem,
            learner,
            environment,
            key=jax.random.key(0),
            horizon=cx.Horizon(rounds, LONGEST),
            length=LONGEST,
            start=problem.domain.vertex().dense(),
            keep_rounds=True,
        )
        fields = game.loss, game.constraint, game.multiplier, game.rounds["cost"], game.rounds["use"], game.lmo_calls
        return (*fields, game.state.learner)

    return jax.vmap(one)(environments, horizons)


def worst_ratio(value, bound, horizons):
    """The largest value/bound, each of shape (games, rounds), within the horizons."""
    counts = np.arange(LONGEST) < horizons[:, None]
    return np.max(np.where(counts, value / bound, -np.inf))


# Primals alone


def regrets(name, method, environments, horizons=HORIZONS):
    """Running regret, sum of squared gradients, and the fields of the games."""
    domain, best, *_ = GROUNDS[name]
    problem = cx.Problem(domain, linear_loss, regularity=cx.Regularity(lipschitz=1.0))
    learner = cx.learners.PrimalDual(method, cx.dual.RegularizedAscent(1.0, 0.1))
    played = duels(problem, learner, environments, horizons)
    loss, cost = np.asarray(played[0]), np.asarray(played[3])
    return np.cumsum(loss, 1) - best(np.cumsum(cost, 1)), np.cumsum((cost**2).sum(-1), 1), cost, played


@pytest.mark.parametrize("name", slow_but(["simplex"], GROUNDS))
def test_ofw_obeys_its_constant_and_its_second_order_form(name):
    diameter = float(GROUNDS[name][0].diameter(2))
    regret, _, _, _ = regrets(name, cx.primal.OFW(), adversaries(name))
    last = regret[np.arange(DUELS), HORIZONS - 1]
    bounds = [theory.constants.ofw(diameter).regret(int(T), 1.0) for T in HORIZONS]
    assert np.max(last / bounds) <= 1 + 1e-9  # 0.57

    for rate, mixing in ((None, None), (1.0, 1.0), (0.1, 3.0), (20.0, 0.5)):  # gradients of 1e-2 to 1e2
        method = cx.primal.OFW(rate, mixing)
        regret, squares, _, _ = regrets(name, method, adversaries(name, largest=2, seed=1))
        a, b = (0.5 * 3**0.75, 3**0.5) if rate is None else (rate, mixing)
        eta, sigma = a * diameter / HORIZONS**0.75, np.minimum(1, b / np.sqrt(HORIZONS))
        given = {"rate": eta[:, None], "mixing": sigma[:, None]}
        rounds = np.arange(1, LONGEST + 1)
        bound = theory.regret.ofw(rounds, diameter=diameter, squares=squares, **given)
        assert worst_ratio(regret, bound, HORIZONS) <= 1 + 1e-9  # 0.62
    assert cx.primal.OFW(1.0, 1.0).constants(GROUNDS[name][0]).c1 > theory.constants.ofw(diameter).c1


@pytest.mark.parametrize("largest", [0, 3])
@pytest.mark.parametrize("name", slow_but(["simplex"], GROUNDS))
def test_adaptive_primals_obey_after_every_round_with_gradients_of_any_size(name, largest):
    diameter = float(GROUNDS[name][0].diameter(2))
    for method in (cx.primal.AdaOFW(), cx.primal.AdaGrad()):
        regret, squares, *_ = regrets(name, method, adversaries(name, largest=largest, seed=2))
        known = cx.Regularity(lipschitz=1.0)
        growth = np.asarray(method.growth(GROUNDS[name][0], known, jnp.asarray(HORIZONS, float)))
        assert worst_ratio(regret, growth[:, None] * np.sqrt(squares), HORIZONS) <= 1 + 1e-9  # 0.33, 0.74
        factor = 3 * HORIZONS**0.25 if isinstance(method, cx.primal.AdaOFW) else np.full(DUELS, 2**0.5)
        np.testing.assert_allclose(growth, factor * diameter, rtol=1e-12)


@pytest.mark.parametrize("name", slow_but(["simplex"], GROUNDS))
def test_loo_bogd_obeys_on_every_interval_at_seven_lmos_a_round(name):
    diameter = float(GROUNDS[name][0].diameter(2))
    best = GROUNDS[name][1]
    regret, _, cost, (loss, *_, calls, state) = regrets(name, cx.primal.LOOBOGD(), adversaries(name, seed=3))
    last = regret[np.arange(DUELS), HORIZONS - 1]
    block = np.ceil(np.sqrt(HORIZONS) - 1e-9)
    bounds = theory.regret.loo_bogd(HORIZONS, diameter=diameter, lipschitz=1.0, block=block)
    assert np.max(last / bounds) <= 1 + 1e-9  # 0.52
    assert np.max(last / [theory.constants.loo_bogd(diameter).regret(int(T), 1.0) for T in HORIZONS]) <= 1 + 1e-9
    total = np.cumsum(np.where(np.arange(LONGEST) < HORIZONS[:, None], calls, 0), 1)[:, -1]
    assert np.all(total <= 7 * HORIZONS + 14)

    long = HORIZONS == LONGEST  # (R + sqrt(3 eps))^2 for R^2
    inner = np.sum(np.asarray(loss)[long, 300:900], 1) - best(cost[long, 300:900].sum(1))
    reach = diameter * (1 + math.sqrt(3) * LONGEST**-0.25)
    eta = diameter / math.sqrt(32 * LONGEST)
    partial = 2 * 32 * diameter  # of two blocks, in which the interval begins and ends
    bound = reach**2 / (2 * eta) + eta * 32 * 600 / 2 + 600 * math.sqrt(3) * diameter * LONGEST**-0.25 + partial
    assert np.max(inner) <= bound
    apart = np.asarray(state.primal.point - state.primal.outside)
    at_ends = (LONGEST % block) == 0
    assert np.all((apart**2).sum(-1)[at_ends] <= 3 * diameter**2 / np.sqrt(HORIZONS[at_ends]) * (1 + 1e-9))


class Growing(cx.dual.AbstractDual):
    """Weighs the loss by a table of numbers, known before the round."""

    table: Float[Array, " period"]
    predictable: ClassVar[bool] = True

    def init(self, constraints, dtype):
        return jnp.zeros((), jnp.int32)

    def forecast(self, state):
        return cx.dual.Weights(self.table[state % len(self.table)], jnp.zeros((0,)))

    def weigh(self, state, values, norms=None):
        return self.forecast(state), state + 1


class Grudge(cx.Environment):
    """Pushes against the decision before this one, or to and fro."""

    sign: Float[Array, ""]

    def init(self, key):
        return jnp.zeros((), jnp.int32), jnp.zeros(3).at[0].set(1.0)

    def emit(self, state, decision, key):
        t, last = state
        push = jnp.where(self.sign == 0, jnp.array([1.0, 0, 0]) * (-1.0) ** t.astype(float), self.sign * last)
        return (t + 1, decision), {"cost": unit(push)}


@pytest.mark.parametrize("sign", slow_but([1.0], [1.0, -1.0, 0.0]))
def test_adamfw_obeys_in_the_mean_after_every_round(sign):
    rounds, seeds = 64, 200
    domain = cx.domains.L2Ball(3, radius=1.0)
    table = np.random.default_rng(0).uniform(0.1, 3.0, rounds) * np.linspace(0.1, 4, rounds)
    problem = cx.Problem(domain, linear_loss, regularity=cx.Regularity(lipschitz=1.0, smoothness=0.0))
    learner = cx.learners.PrimalDual(cx.primal.AdaMFW(), Growing(jnp.asarray(table)))

    @jax.jit
    @jax.vmap
    def games(key):
        game = cx.play(problem, learner, Grudge(jnp.asarray(sign)), key=key, horizon=rounds, keep_rounds=True)
        return game.loss, game.rounds["cost"]

    loss, cost = (np.asarray(each) for each in games(jax.random.split(jax.random.key(1), seeds)))
    weighted = np.cumsum(table[:, None] * cost, 1)
    regret = np.cumsum(table * loss, 1) + np.linalg.norm(weighted, axis=-1)
    bound = theory.regret.ftpl_adaptive(np.cumsum(np.square(table)), diameter=2.0, dimension=3)
    error = regret.std(0, ddof=1) / math.sqrt(seeds)
    assert np.all(regret.mean(0) + 4 * error <= bound)  # 0.25
    known = cx.Regularity(lipschitz=1.0, smoothness=0.0)
    growth = cx.primal.AdaMFW().growth(domain, known, jnp.asarray(float(rounds)))
    np.testing.assert_allclose(growth * np.sqrt(np.cumsum(np.square(table))), bound, rtol=1e-12)


# Learners: inequalities for every x, every multiplier and, where they say so, after every round


def learner_duels(name, learner, constraints, seed):
    """What the base's regret became: max_x sum_s v(f_s(x_s) - f_s(x)) - <w_s, g_s(x)>, running; and the values."""
    domain, best, safe, reach = GROUNDS[name]
    regularity = cx.Regularity(lipschitz=1.0, constraint_bound=reach)
    problem = cx.Problem(domain, linear_loss, linear_constraint, constraints=constraints, regularity=regularity)
    played = duels(problem, learner, adversaries(name, constraints, seed=seed), HORIZONS)
    loss, values, weights, cost, use = (np.asarray(each) for each in played[:5])
    slopes = np.cumsum(cost + np.einsum("btm,btmd->btd", weights, use), 1)
    offsets = np.cumsum(np.einsum("btm,btmd,d->bt", weights, use, safe), 1)
    return np.cumsum(loss, 1) - best(slopes) + offsets, values, weights, float(domain.diameter(2)), reach


CASES = slow_but([("simplex", 3)], [("simplex", 3), ("box", 1)])


@pytest.mark.parametrize("beta, theta_scale", [(0.0, 1.0), (0.25, 1.0), (0.0, 0.5), (0.1, 0.3)])
@pytest.mark.parametrize("name, constraints", CASES)
def test_pdofw_obeys_its_inequality_for_every_x_and_multiplier(name, constraints, beta, theta_scale):
    learner = cx.learners.PDOFW(beta=beta, theta_scale=theta_scale)
    against, values, weights, diameter, reach = learner_duels(name, learner, constraints, seed=4)
    for game, horizon in enumerate(HORIZONS):
        bounds = theory.pdofw(
            int(horizon),
            diameter=diameter,
            lipschitz=1.0,
            constraint_bound=reach,
            beta=beta,
            constraints=constraints,
            theta_scale=theta_scale,
        )
        if bounds.regret == math.inf:
            continue
        over = np.maximum(values[game, :horizon].sum(0), 0)
        best_multiplier = (over**2).sum() / (4 * bounds.theta * (horizon + 1))
        assert against[game, horizon - 1] + best_multiplier <= bounds.regret * (1 + 1e-9)  # 0.67
        assert weights[game, :horizon].max() <= theory.multiplier_cap(reach, bounds.theta) * (1 + 1e-9)


@pytest.mark.parametrize("beta", [0.0, 0.25])
@pytest.mark.parametrize("name, constraints", CASES)
def test_penofw_obeys_its_inequality_after_every_round(name, constraints, beta):
    against, values, weights, diameter, _ = learner_duels(name, cx.learners.PENOFW(beta=beta), constraints, seed=5)
    hard = np.maximum(values.max(-1), 0)
    zeta = 5 * diameter * HORIZONS ** -(0.25 + beta)
    bounds = [theory.penofw(int(T), diameter=diameter, lipschitz=1.0, beta=beta) for T in HORIZONS]
    left = against + np.cumsum(hard**2, 1) / (2 * zeta[:, None])
    assert worst_ratio(left, np.array([b.regret for b in bounds])[:, None], HORIZONS) <= 1 + 1e-9  # 0.43
    assert worst_ratio(np.cumsum(hard, 1), np.array([b.violation for b in bounds])[:, None], HORIZONS) <= 1
    np.testing.assert_allclose(weights.sum(-1), hard / zeta[:, None], rtol=1e-9)
    assert np.all(weights[values < values.max(-1, keepdims=True)] == 0)


BASES = {"AdaOFW": cx.primal.AdaOFW, "AdaGrad": cx.primal.AdaGrad}


def factors(base):
    """c_T: regret after t rounds <= c_T R sqrt(V_t)."""
    return 3 * HORIZONS**0.25 if base == "AdaOFW" else np.full(DUELS, 2**0.5)


def base_constants(base, diameter):
    return {"AdaOFW": theory.constants.adaofw, "AdaGrad": theory.constants.adagrad}[base](diameter)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name, constraints", CASES)
def test_lyap_hard_obeys_its_inequality_after_every_round(name, constraints, base):
    learner = cx.learners.LyapHard(BASES[base]())
    against, values, weights, diameter, _ = learner_duels(name, learner, constraints, seed=6)
    start = factors(base) * np.sqrt(HORIZONS)
    rate = 1 / (2 * start * diameter)[:, None]
    hard = np.maximum(values.max(-1), 0)
    queue = np.cumsum(hard, 1)
    potential = np.exp(rate * queue)
    left = potential - 1 + against / diameter
    assert worst_ratio(left, start[:, None] + potential / 2, HORIZONS) <= 1 + 1e-9  # 0.70
    np.testing.assert_allclose(weights.sum(-1) / diameter, np.where(hard > 0, rate * potential, 0), rtol=1e-9)

    bounds = [
        theory.lyap_hard(int(T), base_constants(base, diameter), diameter=diameter, lipschitz=1.0) for T in HORIZONS
    ]
    assert worst_ratio(queue, np.array([b.violation for b in bounds])[:, None], HORIZONS) <= 1
    expected = 2 * diameter * start * np.log(2 + 2 * start + 2 * HORIZONS)
    np.testing.assert_allclose([b.violation for b in bounds], expected, rtol=1e-12)
    np.testing.assert_allclose([b.regret for b in bounds], diameter * (start + 0.5), rtol=1e-12)


def drift_numbers(base, diameter, reach, constraints):
    """(ell, lambda, Gbar, C) as columns."""
    c = factors(base)
    gbar = reach + 2 * c * diameter
    ell = np.minimum(np.sqrt(np.log(2 * HORIZONS + 8 * c * np.sqrt(HORIZONS) + 4)), 0.18 * np.sqrt(HORIZONS))
    return [each[:, None] for each in (ell, ell / (gbar * np.sqrt(constraints * HORIZONS)), gbar, c * diameter)]


def queues(values, rate, gbar, growth, diameter):
    """Q_2, Q_3, ... and the weights of each round, from the values alone; axes (games, rounds, constraints)."""
    games, rounds, constraints = values.shape
    queue, squares, after, weights = np.zeros((games, constraints)), np.zeros((games, 1)), [], []
    for t in range(rounds):
        w = rate * (np.exp(rate * queue) - 1)
        total = w.sum(-1, keepdims=True)
        squares = squares + (1 / diameter + total) ** 2
        kappa = 0.864 * rate * gbar**2 + 2 * growth * total / np.sqrt(squares)
        queue = np.maximum(0, queue + values[:, t] - kappa)
        after.append(queue)
        weights.append(w)
    return np.stack(after, 1), np.stack(weights, 1)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name, constraints", CASES)
@pytest.mark.parametrize("kind", ["LyapStoch", "LyapPred"])
def test_drift_potentials_obey_their_inequality_after_every_round(name, constraints, base, kind):
    learner = getattr(cx.learners, kind)(BASES[base]())
    against, values, weights, diameter, reach = learner_duels(name, learner, constraints, seed=7)
    if kind == "LyapPred":
        values, constraints = np.maximum(values.max(-1, keepdims=True), 0), 1
    ell, rate, gbar, growth = drift_numbers(base, diameter, reach, constraints)
    after, expected = queues(values, rate, gbar, growth, diameter)
    if kind == "LyapPred":
        weights, expected = weights.sum(-1, keepdims=True), np.where(values > 0, expected, 0)
    np.testing.assert_allclose(weights / diameter, expected, rtol=1e-9, atol=1e-12)

    t = np.arange(1, LONGEST + 1)
    scaled = rate[..., None] * after
    potential = (np.exp(scaled) - scaled - 1).sum(-1)
    right = 4 * growth / diameter * np.sqrt(t) + 0.864 * ell**2 * t / HORIZONS[:, None]
    assert worst_ratio(against / diameter + potential, right, HORIZONS) <= 1 + 1e-9  # 0.18

    given = {"diameter": diameter, "lipschitz": 1.0, "constraint_bound": reach}
    constants = base_constants(base, diameter)
    bound = (
        [theory.lyap_pred(int(T), constants, **given) for T in HORIZONS]
        if kind == "LyapPred"
        else [theory.lyap_stoch(int(T), constants, constraints=constraints, **given) for T in HORIZONS]
    )
    if kind == "LyapPred":  # surely
        violation = np.cumsum(values[..., 0], 1)
        assert worst_ratio(violation, np.array([b.violation for b in bound])[:, None], HORIZONS) <= 1
    ell, rate, gbar, growth = (each[:, 0] for each in (ell, rate, gbar, growth))
    b = HORIZONS + 4 * growth / diameter * np.sqrt(HORIZONS) + 0.864 * ell**2 + 1
    queue = math.sqrt(constraints) * np.log(2 * b) / ell + 0.864 * ell / math.sqrt(constraints)
    log = np.log(HORIZONS * (1 + 2 * constraints * diameter * rate * b))
    expected = gbar * np.sqrt(HORIZONS) * queue + 2 * growth * np.sqrt(HORIZONS * (1 + 2 * log))
    np.testing.assert_allclose([each.violation for each in bound], expected, rtol=1e-12)
    np.testing.assert_allclose(
        [each.regret for each in bound], diameter * (4 * growth / diameter * np.sqrt(HORIZONS) + 0.864 * ell**2)
    )


def noisy_constraint(x, r):
    return x[0] - 0.2 + r["noise"]


def test_lyap_stoch_with_adamfw_obeys_its_inequality_in_the_mean():
    """With the library's coins, on losses and constraints that ignore them."""
    rounds, seeds, reach = 64, 200, 1.7
    domain = cx.domains.L2Ball(3, radius=1.0)
    regularity = cx.Regularity(lipschitz=1.0, smoothness=0.0, constraint_bound=reach)
    problem = cx.Problem(domain, linear_loss, noisy_constraint, regularity=regularity)
    learner = cx.learners.LyapStoch(cx.primal.AdaMFW(), scale=1.0)
    rng = np.random.default_rng(0)
    cost = np.array([-1.0, 0, 0]) * rng.uniform(0, 1, (rounds, 1))
    data = {"cost": jnp.asarray(cost), "noise": jnp.asarray(rng.uniform(-0.5, 0.5, rounds))}

    @jax.jit
    @jax.vmap
    def games(key):
        game = cx.play(problem, learner, data, key=key)
        return game.loss, game.constraint[:, 0], game.multiplier[:, 0], game.state.dual.queue[0], game.state.rule.rate

    drawn = games(jax.random.split(jax.random.key(2), seeds))
    loss, _, weights, queue, rate = (np.asarray(each) for each in drawn)
    slope = cost.sum(0) + np.array([1.0, 0, 0]) * weights.sum(1, keepdims=True)
    offset = weights @ (np.asarray(data["noise"]) - 0.2)
    against = loss.sum(1) + np.linalg.norm(slope, axis=-1) - offset
    growth = 2 * math.sqrt(2 * ball_constant(3)) * 2.0
    left = against / 2.0 + np.exp(rate * queue) - rate * queue - 1
    ell = min(math.sqrt(math.log(2 * rounds + 8 * growth / 2 * math.sqrt(rounds) + 4)), 0.18 * math.sqrt(rounds))
    np.testing.assert_allclose(rate, ell / ((reach + 2 * growth) * math.sqrt(rounds)), rtol=1e-12)
    right = 4 * growth / 2 * math.sqrt(rounds) + 0.864 * ell**2
    assert left.mean() + 4 * left.std(ddof=1) / math.sqrt(seeds) <= right


def test_where_no_point_is_feasible_weights_stop_growing():
    problem = cx.Problem(
        cx.domains.L2Ball(2, radius=1.0),
        lambda x, r: jnp.vdot(r, x),
        lambda x, r: 1e3 + x[0],
        regularity=cx.Regularity(lipschitz=1.0, constraint_bound=1001.0),
    )
    rounds = jnp.ones((400, 2), jnp.float32)
    start = jnp.zeros(2, jnp.float32)
    for learner in (cx.learners.LyapHard(cx.primal.AdaGrad()), cx.learners.LyapPred(cx.primal.AdaGrad())):
        game = cx.play(problem, learner, rounds, key=jax.random.key(0), start=start)
        assert game.decision.dtype == jnp.float32
        assert np.all(np.isfinite(game.multiplier)) and game.multiplier[-1, 0] > 1e3


# NumPy loops


def played(learner, rounds, domain, constraints):
    regularity = cx.Regularity(lipschitz=LIPSCHITZ, smoothness=SMOOTHNESS, constraint_bound=2.0)
    problem = cx.Problem(
        domain,
        loss,
        constraint if constraints else None,
        constraints=constraints or 1,
        regularity=regularity,
    )
    return cx.play(problem, learner, rounds, key=jax.random.key(0), keep_decisions=True)


def loop(rounds, x, weigh, move):
    """weigh(values) -> (loss weight, weights); move(x, gradient) -> the next x."""
    plays, multipliers = [x], []
    for r in one_by_one(rounds):
        v, w = weigh(constraint_values(x, r))
        multipliers.append(w / v)
        x = move(x, weighted_gradient(x, r, w, v))
        plays.append(x)
    return plays, multipliers


class FrankWolfe:
    """eta sum + (x - x_1), one constant step sigma; eta may change with V, as one over AdaOFW's beta."""

    def __init__(self, lmo, sigma, start, eta=None, scale=0.0):
        self.lmo, self.sigma, self.start, self.eta, self.scale = lmo, sigma, start, eta, scale
        self.total, self.squares = np.zeros_like(start), 0.0

    def __call__(self, x, gradient):
        self.total, self.squares = self.total + gradient, self.squares + np.sum(gradient**2)
        if self.eta is None:
            direction = self.total + self.scale * math.sqrt(self.squares) * (x - self.start)
        else:
            direction = self.eta * self.total + x - self.start
        return (1 - self.sigma) * x + self.sigma * self.lmo(direction)


def ada_ofw(lmo, start, diameter):
    scale = math.sqrt(2) * ROUNDS**0.25 / diameter
    return FrankWolfe(lmo, min(1, 2 / math.sqrt(ROUNDS)), start, scale=scale)


def ada_grad(project, start, diameter):
    squares = 0.0

    def move(x, gradient):
        nonlocal squares
        squares += np.sum(gradient**2)
        return project(x - diameter / math.sqrt(2) / math.sqrt(squares) * gradient)

    return move


def separate(x, y, eps, lmo):
    while True:
        if np.sum((x - y) ** 2) <= 3 * eps:
            return x
        v = lmo(x - y)
        gap = np.sum((x - y) * (x - v))
        if gap <= eps:
            return x
        x = x + min(1, gap / np.sum((x - v) ** 2)) * (v - x)


def close_pair(x, y, eps, lmo):
    """Two nested loops, as in print."""
    while True:
        x = separate(x, y, eps, lmo)
        q = np.sum((x - y) ** 2)
        if q <= 3 * eps:
            return x, y
        y = y - (q - eps) / q * (y - x)


class LOOBOGD:
    def __init__(self, lmo, start, diameter):
        self.lmo, self.y, self.sum, self.t = lmo, start, np.zeros_like(start), 0
        self.block = math.ceil(math.sqrt(ROUNDS))
        self.eps = diameter**2 / math.sqrt(ROUNDS)
        self.eta = diameter / (LIPSCHITZ * math.sqrt(self.block * ROUNDS))

    def __call__(self, x, gradient):
        self.sum, self.t = self.sum + gradient, self.t + 1
        if self.t % self.block:
            return x
        x, self.y = close_pair(x, self.y - self.eta * self.sum, self.eps, self.lmo)
        self.sum = np.zeros_like(x)
        return x


@pytest.mark.parametrize("name", DOMAINS)
def test_a_closed_pair_is_close_and_no_further_from_any_point(name):
    domain, lmo, start, diameter = DOMAINS[name]
    rng = np.random.default_rng(20)
    ys = start + rng.normal(size=(8, *start.shape)) * np.repeat([0.1, 3.0], 4).reshape(8, *(1,) * start.ndim)
    eps = 1e-2 * diameter**2
    most = int(6.75 * diameter**2 / eps)

    @jax.jit
    @jax.vmap
    def closed(y):
        found = loo_bogd.close_pair(domain, jnp.asarray(start), y, eps, domain.vertex(), most=10**4)
        return found[0], found[1], found[3]

    points = [lmo(c) for c in rng.normal(size=(50, *start.shape))] + [start]
    for y, *found in zip(ys, *(np.asarray(each) for each in closed(jnp.asarray(ys)))):
        x, after, calls = found
        expected = close_pair(start, y, eps, lmo)
        np.testing.assert_allclose(x, expected[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(after, expected[1], rtol=1e-9, atol=1e-9)
        assert np.sum((x - after) ** 2) <= 3 * eps and calls <= most + 1 and domain.contains(jnp.asarray(x), 1e-9)
        for z in points:
            assert np.sum((after - z) ** 2) <= np.sum((y - z) ** 2) + 1e-9


@pytest.mark.parametrize("name", slow_but(["simplex"], DOMAINS))
def test_primals_are_their_transcriptions(name):
    domain, lmo, start, diameter = DOMAINS[name]
    rounds = some_rounds(domain.shape, 1, seed=10)
    alone = {key: value for key, value in rounds.items() if key in ("y", "c")}
    eta, sigma = diameter / (2 * LIPSCHITZ) * (3 / ROUNDS) ** 0.75, math.sqrt(3 / ROUNDS)
    moves = [
        (cx.primal.OFW(), FrankWolfe(lmo, sigma, start, eta)),
        (cx.primal.AdaOFW(), ada_ofw(lmo, start, diameter)),
        (cx.primal.LOOBOGD(), LOOBOGD(lmo, start, diameter)),
    ]
    if name in PROJECTIONS:
        moves.append((cx.primal.AdaGrad(), ada_grad(PROJECTIONS[name][1], start, diameter)))
    for method, move in moves:
        learner = cx.learners.PrimalDual(method, cx.dual.RegularizedAscent(1.0, 0.1))
        game = played(learner, alone, domain, 0)
        x = start
        for t, r in enumerate(one_by_one(alone)):
            np.testing.assert_allclose(game.decisions[t], x, rtol=1e-10, atol=1e-10, err_msg=type(method).__name__)
            x = move(x, loss_gradient(x, r))
        np.testing.assert_allclose(game.decision, x, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("beta, theta_scale", [(0.0, 0.01), (0.2, 0.003)])
@pytest.mark.parametrize("constraints", slow_but([3], [1, 3]))
def test_pdofw_is_its_transcription(constraints, beta, theta_scale):
    domain, lmo, start, diameter = SIMPLEX
    rounds = some_rounds(domain.shape, constraints, seed=11)
    phi = ROUNDS**beta
    theta = 15 * constraints * diameter * LIPSCHITZ / (phi * ROUNDS**0.25) * theta_scale
    mu, multiplier = 1 / (theta * (ROUNDS + 2)), np.zeros(constraints)

    def weigh(values):
        nonlocal multiplier
        now = multiplier
        multiplier = np.maximum((1 - theta * mu) * multiplier + mu * values, 0)
        return 1.0, now

    move = FrankWolfe(lmo, ROUNDS**-0.5, start, diameter / (LIPSCHITZ * phi * ROUNDS**0.75))
    learner = cx.learners.PDOFW(beta=beta, theta_scale=theta_scale)
    assert_same_game(played(learner, rounds, domain, constraints), *loop(rounds, start, weigh, move))


def on_the_worst(values, weight):
    worst = values == values.max()
    return weight * worst / worst.sum() if values.max() > 0 else np.zeros_like(values)


@pytest.mark.parametrize(
    "name, constraints", slow_but([("simplex", 3), ("nuclear ball", 1)], itertools.product(DOMAINS, [1, 3]))
)
def test_penofw_is_its_transcription(name, constraints):
    domain, lmo, start, diameter = DOMAINS[name]
    rounds, beta = some_rounds(domain.shape, constraints, seed=12), 0.1
    zeta = 5 * diameter * LIPSCHITZ / ROUNDS ** (0.25 + beta)
    move = FrankWolfe(lmo, ROUNDS**-0.5, start, diameter / (LIPSCHITZ * ROUNDS ** (0.75 + beta)))
    expected = loop(rounds, start, lambda g: (1.0, on_the_worst(g, max(g.max(), 0) / zeta)), move)
    assert_same_game(played(cx.learners.PENOFW(beta=beta), rounds, domain, constraints), *expected)


def bases(start, diameter, lmo, project):
    yield cx.primal.AdaOFW(), ada_ofw(lmo, start, diameter), 3 * ROUNDS**0.25
    yield cx.primal.AdaGrad(), ada_grad(project, start, diameter), math.sqrt(2)


@pytest.mark.parametrize("constraints", slow_but([3], [1, 3]))
def test_lyap_hard_is_its_transcription(constraints):
    (domain, lmo, start, diameter), project = SIMPLEX, PROJECTIONS["simplex"][1]
    rounds = some_rounds(domain.shape, constraints, seed=13)
    for base, move, c in bases(start, diameter, lmo, project):
        rate, queue = 1 / (2 * c * diameter * LIPSCHITZ * math.sqrt(ROUNDS)), 0.0

        def weigh(values, rate=rate):
            nonlocal queue
            queue += max(values.max(), 0)
            return 1 / (diameter * LIPSCHITZ), on_the_worst(values, rate * math.exp(rate * queue))

        expected = loop(rounds, start, weigh, move)
        assert_same_game(played(cx.learners.LyapHard(base), rounds, domain, constraints), *expected, least=1e-3)


@pytest.mark.parametrize("kind", ["LyapStoch", "LyapPred"])
@pytest.mark.parametrize("constraints", slow_but([3], [1, 3]))
def test_drift_potentials_are_their_transcription(constraints, kind):
    (domain, lmo, start, diameter), project = SIMPLEX, PROJECTIONS["simplex"][1]
    rounds = some_rounds(domain.shape, constraints, seed=14)
    count, scale = (constraints, 0.05) if kind == "LyapStoch" else (1, 1.0)
    for base, move, c in bases(start, diameter, lmo, project):
        growth, v0 = scale * c * diameter, 1 / (diameter * LIPSCHITZ)
        gbar = 2.0 + 2 * growth * LIPSCHITZ
        ell = math.sqrt(math.log(2 * ROUNDS + 8 * growth / diameter * math.sqrt(ROUNDS) + 4))
        ell = min(ell, 0.18 * math.sqrt(ROUNDS))
        rate = ell / (gbar * math.sqrt(count * ROUNDS))
        queue, squares = np.zeros(count), 0.0

        def weigh(values, rate=rate, v0=v0, growth=growth, gbar=gbar):
            nonlocal queue, squares
            w = rate * (np.exp(rate * queue) - 1)
            squares += (v0 + w.sum()) ** 2
            kappa = 0.864 * rate * gbar**2 + 2 * growth * LIPSCHITZ * w.sum() / math.sqrt(squares)
            seen = values if kind == "LyapStoch" else np.array([max(values.max(), 0)])
            queue = np.maximum(0, queue + seen - kappa)
            return v0, w if kind == "LyapStoch" else on_the_worst(values, w[0])

        given = {"scale": scale} if kind == "LyapStoch" else {}
        learner = getattr(cx.learners, kind)(base, **given)
        expected = loop(rounds, start, weigh, move)
        game = played(learner, rounds, domain, constraints)
        assert_same_game(game, *expected, least=0.01 if kind == "LyapStoch" else -1)


def test_adamfw_is_its_transcription():
    domain, lmo, start, _ = SIMPLEX
    d, count, key = 5, math.ceil(math.sqrt(ROUNDS)), jax.random.key(7)
    rounds = {name: value for name, value in some_rounds((d,), 1, seed=15).items() if name in ("y", "c")}
    table = np.random.default_rng(0).uniform(0.2, 3, ROUNDS + 1)
    regularity = cx.Regularity(lipschitz=LIPSCHITZ, smoothness=SMOOTHNESS)
    problem = cx.Problem(domain, loss, regularity=regularity)
    learner = cx.learners.PrimalDual(cx.primal.AdaMFW(), Growing(jnp.asarray(table)))
    game = cx.play(problem, learner, rounds, key=key, keep_decisions=True)

    @jax.jit
    def draw(key):
        return jax.vmap(lambda k: cx.primal.AdaMFW().meta.noise.draw(k, jnp.zeros(d)))(jax.random.split(key, count))

    totals, squares = np.zeros((count, d)), 0.0
    for t, r in enumerate([*one_by_one(rounds), None]):
        coins = jax.random.fold_in(jax.random.split(key)[0], t)
        coins = coins if t == 0 else jax.random.split(coins)[1]
        squares += (LIPSCHITZ * table[t]) ** 2
        noise = math.sqrt(2 * ball_constant(d) * squares) * np.asarray(draw(coins))
        points = inner_loop(start, [lmo(p + total) for p, total in zip(noise, totals)])
        found = game.decision if r is None else game.decisions[t]
        np.testing.assert_allclose(found, points[-1], rtol=1e-10, atol=1e-10)
        if r is not None:
            totals = totals + [table[t] * loss_gradient(x, r) for x in points[:-1]]


# Epochs that double


@pytest.mark.parametrize(
    "learner",
    [
        cx.learners.PDOFW(theta_scale=0.01),
        pytest.param(cx.learners.PDMFW(perturbation="ball"), marks=pytest.mark.slow),
    ],
)
def test_each_epoch_is_the_learner_alone(learner):
    domain = SIMPLEX[0]
    rounds = some_rounds(domain.shape, 2, seed=16)
    rounds = jax.tree.map(lambda leaf: leaf[:37], rounds)
    problem = cx.Problem(
        domain, loss, constraint, constraints=2, regularity=cx.Regularity(lipschitz=LIPSCHITZ, smoothness=SMOOTHNESS)
    )
    anytime, key = cx.learners.Anytime(learner, first=5, capacity=64), jax.random.key(3)
    game = cx.play(problem, anytime, rounds, key=key, keep_decisions=True)
    own, at, start = jax.random.split(key)[0], 0, None
    for epoch, length in enumerate((5, 10, 20, 40)):
        part = jax.tree.map(lambda leaf, at=at, length=length: leaf[at : at + length], rounds)
        horizon = cx.Horizon(length, 64)
        state = learner.init(problem, key=jax.random.fold_in(own, epoch), horizon=horizon, start=start)
        alone = cx.play(problem, learner, part, key=None, state=state, keep_decisions=True)
        np.testing.assert_allclose(game.decisions[at : at + length], alone.decisions, rtol=0, atol=1e-13)
        np.testing.assert_allclose(game.multiplier[at : at + length], alone.multiplier, rtol=0, atol=1e-13)
        at, start = at + length, alone.decision
    assert int(anytime.rounds_left(game.state)) == 5 + 10 + 20 + 40 - 37


def test_anytime_says_when_its_capacity_is_overrun():
    domain = SIMPLEX[0]
    problem = cx.Problem(domain, linear_loss, regularity=cx.Regularity(lipschitz=1.0))
    learner = cx.learners.Anytime(cx.learners.PDOFW(), first=4, capacity=9)  # epochs of 4 and 8
    rounds = {"cost": jnp.ones((13, 5))}
    with pytest.raises(LearnerError, match="planned for 12 more"):
        cx.play(problem, learner, rounds, key=jax.random.key(0))
    bad = jax.jit(lambda key: cx.play(problem, learner, rounds, key=key).bad_round)(jax.random.key(0))
    assert int(bad) == 12
    for given, sentence in (({"first": 0}, "first must be"), ({"first": 9, "capacity": 8}, "at most the capacity 8")):
        with pytest.raises(LearnerError, match=sentence):
            cx.learners.Anytime(cx.learners.PDOFW(), **given)
    with pytest.raises(LearnerError, match="Anytime needs one of"):
        cx.learners.Anytime(cx.primal.OFW())


# Numbers and sentences


def test_the_bound_of_pdofw_is_never_above_its_closed_form():
    for T in (1, 10, 1000, 10**6):
        for beta in (0.0, 0.1, 0.25):
            phi = T**beta
            closed = (phi + 2.5 / phi) * T**0.75 * 2 * 3 + phi * 25 * T**0.25 / (15 * 2 * 3)
            found = theory.pdofw(T, diameter=2.0, lipschitz=3.0, constraint_bound=5.0, beta=beta)
            assert found.regret <= closed * (1 + 1e-12)
            several = theory.pdofw(T, diameter=2.0, lipschitz=3.0, constraint_bound=5.0, beta=beta, constraints=3)
            assert several.regret == pytest.approx(found.regret) and several.theta == pytest.approx(3 * found.theta)
    assert theory.pdofw(100, diameter=1.0, lipschitz=1.0, constraint_bound=1.0, theta_scale=0.26).regret == math.inf
    with pytest.raises(ValueError, match="beta must lie"):
        theory.pdofw(100, diameter=1.0, lipschitz=1.0, constraint_bound=1.0, beta=0.3)


UNTUNED = [cx.dual.Penalty(), cx.dual.ExponentialPotential(), cx.dual.DriftPotential(), cx.dual.Hard(cx.dual.Penalty())]


@pytest.mark.parametrize("rule", UNTUNED, ids=lambda rule: type(rule).__name__)
def test_rules_without_numbers_are_refused_where_no_theorem_tunes_them(rule):
    with pytest.raises(LearnerError, match="knows no theorem"):
        cx.learners.PrimalDual(cx.primal.OFW(), rule)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: cx.learners.LyapHard(cx.primal.AdaMFW()), "AdaMFW draws coins"),
        (lambda: cx.learners.LyapPred(cx.primal.AdaMFW()), "AdaMFW draws coins"),
        (lambda: cx.learners.LyapStoch(cx.primal.OFW()), "needs a primal whose regret follows the gradients"),
        (lambda: cx.learners.LyapStoch(scale=0.0), "scale must be positive"),
        (lambda: cx.learners.PDOFW(beta=0.3), "beta must lie in"),
        (lambda: cx.learners.PENOFW(beta=-0.1), "beta must lie in"),
        (lambda: cx.primal.OFW(rate=1.0), "rate and mixing together"),
        (lambda: cx.primal.OFW(rate=-1.0, mixing=1.0), "rate must be positive"),
        (lambda: cx.dual.Penalty(0.0), "zeta must be positive"),
        (lambda: cx.dual.ExponentialPotential(-1.0), "rate must be positive"),
        (lambda: cx.dual.DriftPotential(1.0), "rate, drain and margin together"),
        (lambda: cx.dual.DriftPotential(1.0, 1.0, -1.0), "margin must be positive"),
        (lambda: cx.dual.Hard(cx.dual.VirtualQueue()), "VirtualQueue looks at the next decision"),
        (lambda: cx.learners.PrimalDual(cx.primal.AdaMFW(), cx.dual.Hard(cx.dual.Penalty(1.0))), "draws coins"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(make, sentence):
    with pytest.raises(LearnerError, match=sentence):
        make()


def test_lyap_stoch_says_that_it_needs_the_bound_on_constraints():
    problem = cx.Problem(SIMPLEX[0], linear_loss, lambda x, r: x[0], regularity=cx.Regularity(lipschitz=1.0))
    with pytest.raises(ProblemError, match="LyapStoch with AdaOFW needs constraint_bound"):
        cx.play(problem, cx.learners.LyapStoch(), {"cost": jnp.ones((3, 5))}, key=jax.random.key(0))
