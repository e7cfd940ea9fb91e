"""EntropicNewton: equilibria of traffic, from any start, in any unit; and the step of its formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import domains, learners
from cocoax.problems.real import roads

KEY = jax.random.key(0)
TWO = domains.PartitionMatroid([0, 0, 1, 1, 1], [1, 1])
USES = np.array([[1.0, 0, 1, 0, 0], [0, 1.0, 0, 1, 0], [0, 0, 0, 0, 1.0]])  # two groups share two links


def delays(unit=1.0):
    """Beckmann's objective on three links, of which two are shared."""

    def loss(x, r):
        flows = jnp.asarray(USES, x.dtype) @ x
        return unit * jnp.sum(r * flows + flows**5)

    return loss


def played(problem, rounds, **given):
    return cx.play(problem, learners.AutoFlow(), rounds, key=KEY, keep_decisions=True, **given)


@pytest.mark.parametrize("start", [None, [1.0, 0.0, 1.0, 0.0, 0.0]], ids=["equal", "a vertex"])
def test_the_equilibrium_is_found_from_any_start(start):
    """`hindsight` certifies the optimum of these rounds, which are all alike."""
    rounds = jnp.tile(jnp.array([1.0, 1.5, 2.0]), (60, 1))
    problem = cx.Problem(TWO, delays())
    game = played(problem, rounds, start=None if start is None else jnp.asarray(start))
    best = cx.hindsight(problem, rounds, tol=1e-8, progress=False)
    assert float(game.loss[-1]) <= best.lower_bound / 60 * (1 + 1e-4)


@pytest.mark.parametrize("start", [None, [0.99, 0.01, 0.01, 0.01, 0.98]], ids=["equal", "near a vertex"])
def test_units_do_not_matter_and_a_step_is_that_of_the_formula(start):
    """Near a vertex the step is so long that logarithms change by 3, and no more."""
    rounds, start = jnp.tile(jnp.array([1.0, 1.5, 2.0]), (5, 1)), None if start is None else jnp.asarray(start)
    units = (1.0, 2.0**20)
    first, other = (played(cx.Problem(TWO, delays(unit)), rounds, start=start).decisions for unit in units)
    np.testing.assert_allclose(first, other, rtol=1e-9)
    x, labels = np.asarray(first[0]), np.array([0, 0, 1, 1, 1])
    gradient = np.asarray(jax.grad(delays())(first[0], rounds[0]))
    above = gradient - np.bincount(labels, x * gradient)[labels]
    way = -x * above
    rate = -gradient @ way / (way @ np.asarray(jax.hessian(delays())(first[0], rounds[0])) @ way)
    assert (np.abs(rate * above).max() > 3) == (start is not None)
    weights = x * np.exp(-np.clip(rate * above, -3, 3))
    np.testing.assert_allclose(first[1], weights / np.bincount(labels, weights)[labels], rtol=1e-9)


@pytest.mark.parametrize("power", [1, 5], ids=["linear", "curved"])
def test_units_far_from_1_do_not_matter_in_float32(power):
    """The product with the Hessian has the unit's third power, squared spans its second: both leave float32's range."""
    with jax.enable_x64(False):
        two = domains.PartitionMatroid([0, 0, 1, 1, 1], [1, 1])
        problem = cx.Problem(two, lambda x, unit: unit * jnp.sum(jnp.arange(1.0, 6.0) * x**power))
        games = [np.asarray(played(problem, jnp.full(5, 2.0**unit)).decision) for unit in (0, -90, 90)]
    assert games[0][0] > 0.51  # it has moved
    np.testing.assert_allclose(games[1:], [games[0]] * 2, rtol=1e-4)


def test_other_ranks_inside_jit_do_not_give_points_outside_of_the_set():
    """They are not known when it is compiled, so no error can be raised."""
    problem = cx.Problem(domains.PartitionMatroid([0, 0, 0, 1, 1], [2, 1]), lambda x, r: jnp.sum(r * x**2))
    decision = jax.jit(lambda problem: played(problem, jnp.ones((3, 5))).decision)(problem)
    assert jnp.isnan(decision).all()


def test_losses_without_curvature_are_followed_at_their_own_step():
    problem = cx.Problem(domains.ProbabilitySimplex(3, 2.0), lambda x, cost: jnp.vdot(cost, x))
    game = played(problem, jnp.tile(jnp.array([1.0, 0.0, 2.0]), (200, 1)))
    np.testing.assert_allclose(game.decision, [0.0, 2.0, 0.0], atol=1e-4)


@pytest.mark.slow
def test_on_sioux_falls_it_is_ahead_of_successive_averages():
    """Both from everybody on the shortest route; the second half of 60 days. Three routes a pair."""
    instance = roads.traffic(days=60, routes=3)
    start = roads.successive_averages(instance.problem, instance.rounds(1))[0]
    game, msa = played(instance.problem, instance.recorded, start=start), instance.baseline("MSA")
    assert game.loss[30:].mean() < msa.loss[30:].mean()
    assert game.constraint[30:].mean() < msa.constraint[30:].mean()
