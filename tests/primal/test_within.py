"""A radius that is found: of several side by side, the mixture is about as good as the best."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import primal, theory

BALL, KEY = cx.domains.NuclearNormBall((6, 5), 20.0, method="exact"), jax.random.key(0)
FACTORS = (1.0, 0.1, 0.01)


def rounds(count, size):
    """Noisy entries of a matrix of rank one with this nuclear norm."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=6), rng.normal(size=5)
    truth = size * np.outer(left / np.linalg.norm(left), right / np.linalg.norm(right))
    places = rng.integers(30, size=count)
    return {
        "place": jnp.asarray(places),
        "value": jnp.asarray(truth.reshape(-1)[places] + 0.3 * rng.normal(size=count)),
    }


PROBLEM = cx.Problem(BALL, lambda x, r: (x.reshape(-1)[r["place"]] - r["value"]) ** 2)


def losses(method, data):
    learner = cx.learners.PrimalDual(method, cx.dual.RobustPI())
    return np.asarray(cx.play(PROBLEM, learner, data, key=KEY).loss)


def test_the_radius_is_found():
    parts = [primal.Within(primal.AdaGrad(), factor) for factor in FACTORS]
    data = rounds(400, 2.0)
    alone = np.stack([losses(part, data) for part in parts])
    mixed = losses(primal.Mixture(parts), data)
    assert np.argmin(alone.sum(1)) == 1  # neither the largest ball nor the smallest
    span = (alone.max(0) - alone.min(0)).max()
    bound = theory.regret.mixture(count=3, variance=span**2 * 400 / 4, span=span)
    assert mixed.sum() <= alone.sum(1).min() + bound
    assert mixed[200:].sum() < alone[[0, 2], 200:].sum(1).min()


def test_the_origin_must_be_in_the_set_and_no_coins_are_drawn():
    learner = cx.learners.PrimalDual(primal.Within(primal.OGD(), 0.5), cx.dual.RobustPI())
    problem = cx.Problem(
        cx.domains.ProbabilitySimplex(2), lambda x, r: jnp.vdot(r, x), regularity=cx.Regularity(lipschitz=1.0)
    )
    with pytest.raises(cx.errors.LearnerError, match="holds the origin, got ProbabilitySimplex"):
        learner.init(problem, key=KEY, horizon=3)
    with pytest.raises(cx.errors.LearnerError, match="does not draw coins"):
        primal.Within(primal.FTPL(), 0.5)
