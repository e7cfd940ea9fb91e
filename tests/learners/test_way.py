"""How far Auto goes from what was played to where it aims."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.dual.base import Weights
from cocoax.learners.way import before_it_rises

DOMAIN = cx.domains.ProbabilitySimplex(3)
FROM, TO = jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0])


def end(loss, constraint=None, multiplier=(), round=None):
    problem = cx.Problem(DOMAIN, loss, constraint)
    weights = Weights(jnp.asarray(1.0), jnp.asarray(multiplier, float))
    now, (of_loss, of_constraints) = problem.values(FROM, round), problem.gradients(FROM, round)
    direction = of_loss + jnp.tensordot(weights.constraint, of_constraints, 1)
    return before_it_rises(problem, TO, round, FROM, now, weights, direction)


def halfway(x, r):
    return jnp.sum((x - jnp.array([0.5, 0.5, 0.0])) ** 2)


def test_linear_losses_are_gone_all_the_way_down_and_up():
    for sign in (1.0, -1.0):
        np.testing.assert_array_equal(end(lambda x, r, sign=sign: sign * x[0]), TO)


def test_parabolas_are_gone_to_their_lowest_point():
    np.testing.assert_allclose(end(halfway), [0.5, 0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(end(lambda x, r: 100 * x[1] ** 2 - x[1]), [0.995, 0.005, 0.0], atol=1e-12)


def test_constraints_count_as_much_as_they_weigh():
    """Along the way the constraint is -s: halfway, 2 (s - 1/2)^2 - s / 2 is lowest at 5/8."""
    np.testing.assert_allclose(end(halfway, lambda x, r: -x[1], [0.5]), [0.375, 0.625, 0.0], atol=1e-12)


def test_curved_losses_that_rise_at_once_are_gone_all_the_way():
    np.testing.assert_array_equal(end(lambda x, r: x[1] + x[1] ** 2), TO)


def test_what_rounding_bends_is_linear():
    """A slope of 1/20 is lost in a sum of 10^15, so that the loss stays as it is: a bend of 1/20, at which 1/2 is best.
    One of 1/2 is not lost in 10^6."""
    np.testing.assert_array_equal(end(lambda x, r: 1e15 - 0.05 * x[1]), TO)
    np.testing.assert_allclose(end(lambda x, r: 1e6 + halfway(x, r)), [0.5, 0.5, 0.0], atol=1e-8)


@pytest.mark.parametrize("worst", [np.inf, np.nan])
def test_poles_at_the_end_say_nothing_of_the_way(worst):
    """`inside` keeps away from them."""
    np.testing.assert_array_equal(end(lambda x, r: -x[1] + jnp.where(x[1] == 1, worst, 0.0)), TO)


def test_what_was_played_does_not_enter_decisions():
    """Not even where it lies outside of the set by rounding."""
    problem = cx.Problem(DOMAIN, lambda x, r: 10 * jnp.sum((x - r) ** 2))
    learner = cx.learners.Auto()
    state = learner.init(problem, key=jax.random.key(0))
    for _ in range(3):
        state, _ = learner.observe(problem, state, jnp.array([0.6, 0.4, 0.0]), played=jnp.array([0.3, 0.3, 0.3]))
        assert abs(learner.decision(state).sum() - 1) < 1e-12
