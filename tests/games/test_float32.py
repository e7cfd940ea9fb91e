"""What users without `jax_enable_x64` get: every test below runs with it off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_tools import slow_but

import cocoax as cx
from cocoax import baselines, learners, primal, problems


@pytest.fixture(autouse=True)
def without_x64():
    with jax.enable_x64(False):
        assert jnp.zeros(()).dtype == jnp.float32
        yield


@pytest.mark.parametrize("method", [primal.OCG(), primal.OSPF(), primal.ORGFW(), primal.MFW()], ids=repr)
def test_the_largest_beta_is_accepted(method):
    """1/6 and 1/5 are above themselves when rounded to float32."""
    most = float(cx.theory.rates(method.alpha).beta_max)
    for beta in (most, np.float32(most), jnp.asarray(most)):
        learner = learners.Blocks(method, beta=beta)
        assert learner.beta.dtype == jnp.float32
    with pytest.raises(cx.LearnerError, match="beta must"):
        learners.Blocks(method, beta=most + 1e-3)


@pytest.mark.parametrize("rounds", slow_but([13**5], [13**5 - 1, 13**5, 13**5 + 1]))
def test_decisions_are_feasible_where_float32_powers_are_off_by_one(rounds):
    instance = problems.simplex(jax.random.key(0), n=5)
    learner = learners.Blocks(primal.OSPF())
    game = cx.play(
        instance.problem,
        learner,
        instance.environment,
        key=jax.random.key(1),
        horizon=rounds,
        length=3,
        keep_decisions=True,
    )
    assert game.decisions.dtype == jnp.float32
    assert np.all(np.asarray(game.decisions) >= 0)
    # a mean of K samples of vertices: rounding, no more
    np.testing.assert_allclose(np.asarray(game.decisions, float).sum(-1), 1, atol=1e-6)


def test_the_average_of_many_decisions_does_not_drift():
    """Plain float32 sums of 200,000 decisions are wrong in the fourth digit."""
    rounds, point = 200_000, jnp.array([0.1, 0.2, 0.7], jnp.float32)
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: jnp.vdot(r, x))
    game = cx.play(problem, learners.Stay(), jnp.ones((rounds, 3)), key=jax.random.key(0), start=point)
    assert game.average.dtype == jnp.float32
    np.testing.assert_allclose(game.average, point, rtol=3e-7)
    assert abs(float(np.cumsum(np.full(rounds, 0.1, np.float32))[-1]) / (0.1 * rounds) - 1) > 1e-5


def test_multipliers_and_violations_are_those_of_float64():
    """Deterministic and without ties, so rounding errors are all that differ."""
    problem, rounds = cx.testing.problems.simplex(key=jax.random.key(0), rounds=50)
    rounds = jax.tree.map(np.asarray, rounds)
    learner = baselines.PDOGD(theta_scale=0.05)
    single = cx.play(problem, learner, rounds, key=jax.random.key(0))
    assert single.multiplier.dtype == single.loss.dtype == jnp.float32
    with jax.enable_x64(True):
        problem, _ = cx.testing.problems.simplex(key=jax.random.key(0), rounds=50)
        rounds, learner = jax.tree.map(lambda leaf: leaf.astype(float), rounds), baselines.PDOGD(theta_scale=0.05)
        double = cx.play(problem, learner, rounds, key=jax.random.key(0))
        multiplier, violation = np.asarray(double.multiplier), double.violation()
    assert multiplier.dtype == np.float64 and multiplier.max() > 0.1
    # rounding errors of 6e-8 a round, 50 rounds, steps that do not expand
    np.testing.assert_allclose(single.multiplier, multiplier, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(single.violation(), violation, rtol=1e-5, atol=1e-4)
