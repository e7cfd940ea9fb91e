"""`hindsight` where numbers or sets are odd: units far apart, poles, curved or duplicate limits, no interior."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

import cocoax as cx
from cocoax import Comparator, hindsight
from cocoax.comparators import methods, price


def linear(x, r):
    return jnp.vdot(r, x)


def squared(x, r):
    return 0.5 * jnp.sum((x - r) ** 2)


def test_units_may_be_twelve_orders_of_magnitude_apart():
    rng = np.random.default_rng(0)
    units = np.logspace(-6, 6, 10)
    cost, use = rng.normal(size=(5, 10)) / units, rng.normal(size=10) / units
    box = cx.domains.Box(-jnp.asarray(units), jnp.asarray(units))
    best = hindsight(cx.Problem(box, linear, lambda x, r: jnp.vdot(use, x) + 1.0), cost)
    value = linprog((cost * units).sum(0), A_ub=[use * units], b_ub=[-1.0], bounds=(-1, 1)).fun
    assert abs(best.value - value) <= 1e-5 * abs(value) and best.lower_bound <= value + 1e-6 * abs(value)
    assert best.constraint.mean() <= 1e-5


def test_limits_said_often_and_in_other_units_are_one_limit():
    rng = np.random.default_rng(0)
    target, use = rng.normal(size=(5, 10)), rng.normal(size=10)
    weights = jnp.array([1.0, 1.0, 1e6, 1e-6])
    ball = cx.domains.L2Ball(10, 9.0)
    best = hindsight(cx.Problem(ball, squared, lambda x, r: weights * (use @ x + 3.0), constraints=4), target)
    mean = target.mean(0)
    x = mean - use * (use @ mean + 3.0) / (use @ use)  # the nearest point of the half-space
    value = 0.5 * np.sum((x - target) ** 2)
    assert abs(best.value - value) <= 1e-5 * value and best.lower_bound <= value * (1 + 1e-7)


def test_a_single_feasible_point_is_found():
    """The half-space touches the ball: no multiplier closes the gap quickly, no point lies inside."""
    normal = np.ones(8) / 8**0.5
    target = np.random.default_rng(0).normal(size=(3, 8))
    best = hindsight(cx.Problem(cx.domains.L2Ball(8, 1.0), squared, lambda x, r: normal @ x + 1.0), target)
    np.testing.assert_allclose(best.x, -normal, atol=2e-3)  # the root of the tolerance
    assert best.lower_bound <= 0.5 * np.sum((normal + target) ** 2) * (1 + 1e-6)


def test_curved_limits_on_many_entries(monkeypatch):
    """The nearest point of a ball, said as a constraint."""
    monkeypatch.setattr(methods, "_any", None)
    target = np.random.default_rng(0).normal(size=(3, 400))
    box = cx.domains.Box(jnp.full(400, -9.0), jnp.full(400, 9.0))
    best = hindsight(cx.Problem(box, squared, lambda x, r: jnp.sum(x**2) - 1.0), target, tol=1e-5)
    x = target.mean(0) / np.linalg.norm(target.mean(0))
    value = 0.5 * np.sum((x - target) ** 2)
    assert abs(best.value - value) <= 1e-5 * value and best.lower_bound <= value * (1 + 1e-7)


def test_poles_at_the_boundary_make_no_noise():
    """-log x: infinite at every vertex. NumPy's warnings are errors here."""
    shares = np.random.default_rng(0).dirichlet(np.ones(10))
    problem = cx.Problem(cx.domains.ProbabilitySimplex(10), lambda x, r: -jnp.vdot(r, jnp.log(x)))
    best = hindsight(problem, np.tile(shares, (3, 1)))
    np.testing.assert_allclose(best.value, -3 * shares @ np.log(shares), rtol=1e-5)


@pytest.mark.parametrize("entries", [2**28, 40])
def test_prices_of_many_large_gradients_come_from_evenly_spaced_rounds(entries, monkeypatch):
    """Gradients of the loss grow with t; of 10 rounds with 2 x 3 entries, every second one counts for 40 entries."""
    monkeypatch.setattr(price, "_MOST_ENTRIES", entries)
    problem = cx.Problem(cx.domains.L2Ball(3, 1.0), lambda x, r: r * x[0], lambda x, r: x[1] - 1.0)
    mine = Comparator.fixed(problem, np.arange(10.0), np.zeros(3))
    chosen = np.arange(10.0)[:: 1 if entries > 40 else 2]
    np.testing.assert_allclose(mine.price, [0.1 * np.mean(chosen**2) ** 0.5])
