"""DistanceBound against plain NumPy; the bound that it is named after; in other units; on boxes that are too large."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from distance_bound_tools import BoxDistances

import cocoax as cx
from cocoax.domains import Box, L2Ball
from cocoax.primal import DistanceBound

ROUNDS = 60
LOWER, UPPER, START = np.array([-1.0, 0.0, -3.0]), np.array([1.0, 4.0, 0.0]), np.array([0.1, 0.5, -0.5])


def gradients(seed=0):
    """They alternate, so that going does not pay, then lead to ends of the box (the last one, only a little), then
    alternate again."""
    rng, t = np.random.default_rng(seed), np.arange(ROUNDS)[:, None]
    signs = np.where((t >= 15) & (t < [45, 45, 18]), 1.0, np.where(t % 2, -1.0, 1.0))
    return signs * rng.uniform(0.5, 1.5, (ROUNDS, 3)) * np.array([1.0, -2.0, 0.5])


@eqx.filter_jit
def descended(rule, domain, start, gradient, rounds):
    """(points, states) of projected descent with these steps; `gradient` is a function of x and the round."""

    def step(carry, round):
        x, state = carry
        update, new = rule.update(domain, state, gradient(x, round), x)
        return (domain.project(x + update), new), (x, new)

    return jax.lax.scan(step, (start, rule.init(domain, start)), rounds)[1]


def linear(x, cost):
    return cost


@pytest.mark.parametrize("options", [{}, {"memory": 50, "most": 1e-3}])
def test_steps_are_their_formula(options):
    """With the first options, ends of the box are reached; with the others, half of the way exceeds the bound."""
    points, states = descended(DistanceBound(**options), Box(LOWER, UPPER), START, linear, gradients())
    reference, x = BoxDistances(START, LOWER, UPPER, **options), START
    for t, gradient in enumerate(gradients()):
        np.testing.assert_allclose(points[t], x, rtol=0, atol=1e-12)
        x = np.clip(x - reference.advance(gradient, x), LOWER, UPPER)
        np.testing.assert_allclose(states.bound[t], reference.bound, rtol=1e-10)
        np.testing.assert_allclose(jax.vmap(lambda state: state.far)(states)[t], reference.far, rtol=1e-10)
    assert reference.bound == reference.most and reference.ended.tolist() == (
        [False] * 3 if options else [True, True, False]
    )
    assert not options or reference.far[0] > 2 * reference.bound * (UPPER - LOWER)[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_a_fourth_of_it_at_most(seed):
    """Of convex losses, all with one minimiser: absolute values and squares around it, with weights that change."""
    rng = np.random.default_rng(seed)
    best = START + 10.0 ** rng.uniform(-3, -1) * np.array([1.0, -1.0, 0.5])
    rounds = {
        "a": rng.normal(size=(500, 3)),
        "weight": rng.uniform(size=(500, 1)) ** 3,
        "square": rng.random(500) < 0.5,
    }

    def gradient(x, r):
        off = jnp.vdot(r["a"], x - best)
        return r["weight"] * jnp.where(r["square"], off, jnp.sign(off)) * r["a"]

    _, states = descended(DistanceBound(first=1e-6, most=1.0), Box(LOWER, UPPER), START, gradient, rounds)
    distance = np.max(np.abs(best - START) / (UPPER - LOWER))
    assert distance / 3 < np.max(states.bound) <= 4 * distance


def test_powers_of_two_change_no_bit():
    """Neither of the costs nor of single coordinates."""
    points, _ = descended(DistanceBound(), Box(LOWER, UPPER), START, linear, gradients())
    of_entries = np.array([2.0**10, 1.0, 2.0**-7])
    box = Box(of_entries * LOWER, of_entries * UPPER)
    other, _ = descended(DistanceBound(), box, of_entries * START, linear, 2.0**9 * gradients() / of_entries)
    np.testing.assert_array_equal(other, of_entries * np.asarray(points))


def test_boxes_that_are_too_large_cost_little():
    """Absolute regression with weights of length 1, over what the truth costs, as a share of what the start does."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(600, 5))
    weights = np.array([0.6, -0.6, 0.4, -0.3, 0.2])
    rounds = {"a": features, "b": features @ weights + 0.1 * rng.normal(size=600)}
    of_start, of_truth = np.abs(rounds["b"]).sum(), np.abs(features @ weights - rounds["b"]).sum()

    @jax.jit
    def loss(size):
        points, _ = descended(
            DistanceBound(),
            Box(-size * jnp.ones(5), size * jnp.ones(5)),
            jnp.zeros(5),
            lambda x, r: jnp.sign(jnp.vdot(r["a"], x) - r["b"]) * r["a"],
            rounds,
        )
        return jnp.abs(jnp.sum(points * rounds["a"], axis=1) - rounds["b"]).sum()

    for size in (1.0, 10.0, 100.0, 1000.0):
        assert loss(size) < of_truth + 0.3 * (of_start - of_truth)


@pytest.mark.parametrize("wakes", [False, True])
def test_sums_of_costs_are_begun_anew_in_another_unit(wakes):
    _, states = descended(DistanceBound(), Box(LOWER, UPPER), START, linear, gradients())
    state = jax.tree.map(lambda leaf: leaf[20], states)
    new = state.forget_costs(wakes)
    assert all(np.any(sums != 0) for sums in (state.total, state.sums, state.gain))
    for sums, begun in ((state.total, new.total), (state.sums, new.sums), (state.gain, new.gain)):
        np.testing.assert_array_equal(begun, 0 * sums if wakes else sums)
    np.testing.assert_array_equal(new.far, state.far)
    assert new.bound == state.bound


def test_other_sets_are_refused():
    with pytest.raises(cx.CocoaxError, match="DistanceBound needs a product of intervals, as Box is one, got L2Ball"):
        DistanceBound().init(L2Ball(3, radius=1.0), START)
