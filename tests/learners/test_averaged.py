"""Points beside their mean: the weights of the mean, and which of both is played."""

import jax
import jax.numpy as jnp
import numpy as np

from cocoax.domains import L2Ball
from cocoax.learners.averaged import Averaged

ROUNDS = 200
SPACE = L2Ball(3, 1.0)


def played(points, gradients, keep=1.0):
    """(the means, the shares of the point) after every round."""

    def step(averaged, given):
        point, gradient, new, n = given
        averaged = averaged.observe(point, gradient, jnp.asarray(keep)).moved(SPACE, new, n)
        return averaged, (averaged.mean, averaged.both.share)

    rounds = points[:-1], gradients, points[1:], jnp.arange(1.0, ROUNDS + 1)
    return jax.tree.map(np.asarray, jax.lax.scan(step, Averaged.begin(points[0]), rounds)[1])


def test_the_kth_point_weighs_as_k():
    points = np.random.default_rng(0).normal(size=(ROUNDS + 1, 3))
    means, _ = played(points, np.zeros((ROUNDS, 3)))
    weights = np.arange(1, ROUNDS + 2)
    np.testing.assert_allclose(means[-1], weights @ points / weights.sum(), rtol=0, atol=1e-12)


def test_what_costs_less_is_played():
    """Around something fixed that is the mean; where points lead the way, they are."""
    noise = np.random.default_rng(1).normal(size=(ROUNDS + 1, 3))
    _, shares = played(noise, noise[:-1])  # of squares around 0
    assert shares[-1] < 0.01
    way = np.linspace(0, 1, ROUNDS + 1)[:, None] * np.ones(3)
    _, shares = played(way, -np.ones((ROUNDS, 3)))
    assert shares[-1] > 0.99


def test_a_leader_that_was_sure_is_not_dropped_for_one_loss():
    """Its share has rounded to 1; a loss that is more than its lead counts in the gap, or the rate would stay far too
    large, and the other one would be as sure at once."""
    points, gradients = np.zeros((ROUNDS + 1, 1)), np.zeros((ROUNDS, 1))
    points[1:] = np.linspace(1, 2, ROUNDS)[:, None]
    gradients[1], gradients[2:100], gradients[100] = -1e-3, -1e-1, 1e3
    _, shares = played(points, gradients)
    assert shares[99] == 1 and 0.2 < shares[100] < 0.5
