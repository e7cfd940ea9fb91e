"""What is proven of Tracked with SlowStart: its stops, its steps, how far it lags behind, and its regret."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import theory
from cocoax.primal import SlowStart, Tracked

ROUNDS = 600
GROUNDS = {  # the domain, its best total cost, and what matters of a gradient on it
    "l2 ball": (cx.domains.L2Ball(3, radius=2.0), lambda sums: -2 * np.linalg.norm(sums, axis=-1), lambda x: x),
    "simplex": (
        cx.domains.ProbabilitySimplex(3),
        lambda sums: sums.min(-1),
        lambda x: x - x.mean(axis=-1, keepdims=True),
    ),
}


def tables():
    """Linear losses: signs that flip each round, every 37 rounds, after half; sizes that jump or grow; noise. In the
    last game an adversary knows the learner's state, see `spiteful`."""
    rng, t = np.random.default_rng(0), np.arange(ROUNDS)
    noise, one = rng.normal(size=(ROUNDS, 3)), np.array([1.0, -2.0, 0.5])
    plain = [
        np.where(t % 2, 1.0, -1.0)[:, None] * one,
        np.where(t // 37 % 2, 1.0, -1.0)[:, None] * one,
        np.where(t < ROUNDS / 2, 1.0, -1.0)[:, None] * one + 0.1 * noise,
        np.where(t % 50 == 49, 1e3, 1.0)[:, None] * noise,
        np.geomspace(1e-3, 1e3, ROUNDS)[:, None] * noise,
        np.where(t < 300, 1.0, 1e-3)[:, None] * (noise + one),
        noise,
    ]
    return np.stack([*plain, noise]), np.arange(len(plain) + 1) == len(plain)


BAIT = jnp.array([-0.1, 0.3, -0.05, -0.05, -0.05, -0.05, 1.0, 1.0, 1.0, 1.0])


def spiteful(t, growing, moved):
    """A cost by which being away from the start first pays a little, so that the distance doubles, and then costs
    much; after a stop it pays the same in each round, until doubling goes on."""
    return jnp.where(growing, BAIT[t % len(BAIT)], -1.0) * moved / jnp.vdot(moved, moved)


@functools.cache
def games(name):
    domain, best, tangent = GROUNDS[name]
    problem = cx.Problem(domain, lambda x, cost: jnp.vdot(cost, x))
    learner = cx.learners.PrimalDual(Tracked(SlowStart()), cx.dual.RobustPI())

    @jax.jit
    @jax.vmap
    def played(costs, spite):
        def step(state, given):
            t, cost = given
            moved = learner.decision(state) - domain.start()
            turned = spiteful(t, state.primal.step.growing, moved)
            cost = jnp.where(spite & jnp.any(moved != 0), turned, cost)
            away = state.primal.tracker.away
            state, outcome = learner.observe(problem, state, cost)
            return state, (cost, outcome.loss, jnp.linalg.norm(away), state.primal.step)

        state = learner.init(problem, key=jax.random.key(0), horizon=ROUNDS)
        return jax.lax.scan(step, state, (jnp.arange(ROUNDS), costs))[1]

    costs, losses, lags, steps = jax.tree.map(np.asarray, played(*tables()))
    sizes = np.linalg.norm(tangent(costs), axis=-1)
    regrets = np.cumsum(losses, axis=1) - best(np.cumsum(costs, axis=1))
    known = {
        "diameter": float(domain.diameter(2)),
        "rounds": np.arange(1, ROUNDS + 1),
        "squares": np.cumsum(sizes**2, axis=1),
        "powers": np.cumsum(sizes ** (4 / 3), axis=1),
        "smallest": sizes[:, :1],
    }
    return regrets, sizes, lags, steps, known


@pytest.mark.parametrize("name", GROUNDS)
def test_stops_become_rare(name):
    *_, steps, known = games(name)
    stops = np.log(steps.patience) / np.log(4)
    assert np.all(stops <= theory.regret.slow_start_stops(known["rounds"]))
    assert stops[:, -1].max() >= 3  # the games are hard


@pytest.mark.parametrize("name", GROUNDS)
def test_steps_are_neither_too_short_nor_too_long_for_the_proof(name):
    _, sizes, _, steps, known = games(name)
    diameter, squares = known["diameter"], known["squares"]
    assert np.all((steps.far >= 1e-3 * diameter * (1 - 1e-12)) & (steps.far <= diameter * (1 + 1e-12)))
    assert np.all(steps.total <= steps.far**2 * squares * (1 + 1e-9))
    lengths = steps.far**2 / np.sqrt(2 * steps.total) * sizes
    stops = theory.regret.slow_start_stops(known["rounds"])
    logarithm = 1 + np.log(squares / known["smallest"] ** 2) + 2 * (stops + 1) * np.log(1e3)
    assert np.all(np.cumsum(lengths**2, axis=1) <= diameter**2 / 2 * logarithm)


@pytest.mark.parametrize("name", GROUNDS)
def test_following_costs_no_more_than_is_proven(name):
    _, sizes, lags, _, known = games(name)
    shares = np.cumsum(sizes * lags, axis=1) / theory.regret.slow_start_lag(**known)
    assert 1e-3 < shares.max() <= 1


@pytest.mark.parametrize("name", GROUNDS)
def test_regret_is_below_its_bound_after_every_round(name):
    """The bound is 12,000 times larger than need be, since it lets the distance stay where it began."""
    regrets, *_, known = games(name)
    assert np.all(regrets <= theory.regret.slow_start(**known))
    assert np.max(regrets / (known["diameter"] * np.sqrt(known["squares"]))) > 0.3
