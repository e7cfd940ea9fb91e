"""RobustPI's controller against plain NumPy, and what it does with outliers, other units and odd constraints."""

import equinox as eqx
import jax
import numpy as np
import pytest
from controller_tools import RobustController

import cocoax as cx
from cocoax.dual import RobustPI

ROUNDS, FORMS = 60, [{}, {"memory": 50, "gain": 0.1, "proportional": 3.0, "smoothing": 0.5}]


@eqx.filter_jit
def controlled(dual, values, units):
    """(the weights, and the controller after every round)."""

    def step(state, given):
        weights, state = dual.control(state, *given)
        return state, (weights, state)

    return jax.lax.scan(step, dual.rest(values.shape[1], values.dtype), (values, units))[1]


def some_values(seed=0):
    """One constraint with a pair of outliers that cancel, one with zeros, one that is first broken and then kept."""
    rng = np.random.default_rng(seed)
    values = rng.normal([0.2, 0.3, 0.0], size=(ROUNDS, 3))
    values[3:5, 0] += [1000, -1000]
    values[:, 1] *= rng.random(ROUNDS) < 0.5
    values[:, 2] += np.where(np.arange(ROUNDS) < 10, 1.0, -5.0)
    return values, rng.uniform(0.5, 2, (ROUNDS, 3))


@pytest.mark.parametrize("options", FORMS)
def test_control_is_its_formula(options):
    values, units = some_values()
    assert (values[:, 1] == 0).sum() > 20
    dual, reference = RobustPI(**options), RobustController(3, **options)
    weights, states = controlled(dual, values, units)
    expected, urgency, overspent = [], [], []
    for value, unit in zip(values, units):
        expected.append(reference.weigh(value, unit))
        urgency.append(reference.urgency())
        overspent.append(reference.overspent())
    np.testing.assert_allclose(weights, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(jax.vmap(dual.urgency)(states), urgency, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(jax.vmap(dual.overspent)(states), overspent, rtol=1e-9, atol=1e-9)
    assert np.all(np.max(expected, axis=0) > 0) and np.any(np.array(expected)[:, 2] == 0)
    assert options or np.max(urgency) == 1


def test_alone_the_unit_is_the_ratio_of_both_gradients():
    values, _ = some_values()
    rng = np.random.default_rng(1)
    loss_norms, norms = rng.uniform(1, 2, ROUNDS) * (np.arange(ROUNDS) > 5), rng.uniform(1, 2, (ROUNDS, 3))
    dual, reference = RobustPI(memory=50), RobustController(3, memory=50)

    def step(state, given):
        value, loss_norm, norm = given
        weights, state = dual.weigh(state, value, lambda: (loss_norm, norm))
        return state, weights

    found = jax.lax.scan(step, dual.init(3, values.dtype), (values, loss_norms, norms))[1]
    of_loss, of_constraints = 0.0, np.zeros(3)
    for t in range(ROUNDS):
        of_loss, of_constraints = 0.98 * of_loss + loss_norms[t] ** 2, 0.98 * of_constraints + norms[t] ** 2
        unit = (of_loss if of_loss > 0 else 1) ** 0.5 / np.sqrt(of_constraints)  # 1 until the loss has a gradient
        np.testing.assert_allclose(found.constraint[t], reference.weigh(values[t], unit), rtol=1e-10, atol=1e-12)
    assert np.all(found.loss == 1)


@pytest.mark.parametrize("options", FORMS)
def test_powers_of_two_change_no_bit(options):
    values, units = some_values()
    of_values, of_units = np.array([2.0**20, 2.0**-9, 4.0]), np.array([2.0**-3, 2.0**15, 2.0**-30])
    weights, _ = controlled(RobustPI(**options), values, units)
    other, _ = controlled(RobustPI(**options), of_values * values, of_units * units)
    np.testing.assert_array_equal(other, of_units * np.asarray(weights))


@pytest.mark.parametrize("sign", [1, -1])
def test_sizes_know_outliers(sign):
    """One of a thousand sizes, from the second round on, makes them at most three times larger; in the first round,
    where no other size is known, it is over within 12 rounds, to a factor of two."""
    plain = np.random.default_rng(2).uniform(0.5, 1.5, (ROUNDS, 4))  # always at work
    values, rounds = plain.copy(), np.array([1, 2, 10, 50])
    values[rounds - 1, range(4)] *= 1000 * np.array([1, sign, sign, sign])
    sizes, without = (
        np.asarray(controlled(RobustPI(), given, np.ones((ROUNDS, 4)))[1].size) for given in (values, plain)
    )
    assert np.all(sizes > without / 2) and sizes[0, 0] > 100 * without[0, 0]
    assert np.all(sizes[12:, 0] < 2 * without[12:, 0]) and 1.2 < np.max(sizes[:, 1:] / without[:, 1:]) < 3


@pytest.mark.parametrize(
    "deviations, worth, pays",
    [(0.5, 0.01, False), (1.5, 0.01, True), (0.5, 0.2, False), (0.8, 0.5, True), (0.1, 1, True)],
)
def test_a_debt_is_what_noise_does_not_explain(deviations, worth, pays):
    """The mean of g and of what is repaid, after a round with almost nothing in it. `worth` is the multiplier in the
    largest unit: from 1 on, where the constraint is half of what drives decisions, noise explains nothing."""
    dual, one = RobustPI(), np.ones(1)
    known = deviations * 1.2533 * 0.8 * 10 * one, worth * one, 100 * one, 100 * one, one, 0.8 * one
    rested = dual.rest(1, one.dtype)
    state = eqx.tree_at(lambda s: (s.owed, s.integral, s.rounds, s.seen, s.size, s.noise), rested, known)
    assert (dual.control(state, 1e-9 * one, one)[1].smoothed[0] > 1e-6) == pays


@pytest.mark.parametrize("options", FORMS)
def test_weights_are_numbers_and_never_negative(options):
    values = np.stack([np.zeros(ROUNDS), -np.ones(ROUNDS), np.eye(ROUNDS)[0]], axis=1)  # the last: broken once
    weights, states = controlled(RobustPI(**options), values, np.ones((ROUNDS, 3)))
    assert np.all(weights[:, :2] == 0)
    assert weights[0, 2] > 0 and np.all(weights >= 0)
    without_units, _ = controlled(RobustPI(**options), some_values()[0], np.zeros((ROUNDS, 3)))
    assert np.all(without_units == 0)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(states))


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: RobustPI(gain=0.0), "gain must be positive and finite, got 0.0"),
        (lambda: RobustPI(proportional=-1.0), r"proportional must lie in \[0, inf\], got -1.0"),
        (lambda: RobustPI(smoothing=1.0), r"smoothing must lie in \[0, 0.999\], got 1.0"),
        (lambda: RobustPI(memory=1), "memory must be more than 1 round, or None for all of them, got 1"),
    ],
)
def test_bad_arguments_are_told_so(make, sentence):
    with pytest.raises(cx.CocoaxError, match=sentence):
        make()


def test_noise_excuses_nothing_from_where_a_constraint_is_half_of_what_drives_decisions():
    tolerated = RobustPI().tolerated(np.array([0.0, 0.25, 0.5, 0.9]))
    np.testing.assert_array_equal(tolerated, [1.0, 0.75, 0.0, 0.0])
