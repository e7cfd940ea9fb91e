"""Constraints whose gradients have no direction in common are told from those that moving can meet."""

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.learners.coherence import Coherence

DOMAIN = cx.domains.L2Ball(50, 1.0)


def shares(gradients, sampled=True):
    """After each round; `gradients` has a row for each."""

    def step(coherence, gradient):
        length = jnp.linalg.norm(gradient)
        coherence = coherence.observe(DOMAIN, gradient[None], jnp.ones(1), length[None], jnp.asarray(sampled))
        return coherence, coherence.share[0]

    return np.asarray(jax.lax.scan(step, Coherence.begin(1, DOMAIN.start()), jnp.asarray(gradients))[1])


def noise(rounds, seed=0):
    return np.random.default_rng(seed).normal(size=(rounds, 50))


def test_gradients_that_agree_count_whole():
    assert np.allclose(shares(np.ones((20, 50))), 1)


def test_noise_counts_a_fourth():
    ends = [shares(noise(100, seed))[-1] for seed in range(10)]
    assert 0.2 < np.mean(ends) < 0.3  # squares of sums are chi-squared with 50 degrees: 0.25 in the mean, ± 0.05


def test_a_direction_that_hardly_shows_in_one_round_shows_in_many():
    """Noise is 10 times as long as it: after n rounds the share is (1 + n / 100) / 4."""
    found = shares(np.full(50, 0.1) + noise(1000))
    assert found[:50].max() < 1.01 and found[4:50].mean() < 0.6 and found[400:].min() == 1


def test_gradients_of_0_say_nothing():
    assert np.all(shares(np.zeros((5, 50))) == 1)
    apart = np.zeros((40, 50))
    apart[::10] = 1.0
    assert np.allclose(shares(apart), 1)


def test_with_a_memory_auto_keeps_no_such_sums():
    problem = cx.Problem(DOMAIN, lambda x, r: x @ r, lambda x, r: x @ r)
    begun = [Auto.init(problem, key=jax.random.key(0)) for Auto in (cx.learners.Auto(), cx.learners.Auto(50))]
    assert begun[0].coherence is not None and begun[1].coherence is None


def test_factored_matrices_agree_with_dense_ones():
    """Auto beside a constraint that is noise: both weigh it alike."""
    rows, columns = jnp.arange(12) % 4, jnp.arange(12) % 3
    noisy = jax.random.normal(jax.random.key(1), (60, 12))

    def multiplier(seen, **options):
        domain = cx.domains.NuclearNormBall((4, 3), 2.0, **options)
        problem = cx.Problem(domain, lambda x, r: 0.5 * jnp.sum((seen(x) - 0.2) ** 2), lambda x, r: seen(x) @ r)
        return cx.play(problem, cx.learners.Auto(), noisy, key=jax.random.key(0)).multiplier

    dense = multiplier(lambda x: x[rows, columns])
    factored = multiplier(lambda x: x.entries(), factored=True, entries=(rows, columns))
    assert dense.max() > 0.01
    np.testing.assert_allclose(factored, dense, rtol=1e-6, atol=1e-9)


def test_rounds_that_are_not_sampled_change_nothing():
    assert np.all(shares(noise(10), sampled=False) == 1)


def test_a_constraint_that_is_noise_costs_auto_little():
    """Regret over that without it, 3 seeds: 1.49; when multipliers counted in full it was 2.09."""
    domain = cx.domains.L2Ball(20, 1.0)

    def total(seed, constraint):
        keys = jax.random.split(jax.random.key(seed), 3)
        centre = jax.random.normal(keys[0], (20,)) / 20
        rounds = {"z": jnp.tile(centre, (1000, 1)), "a": jax.random.normal(keys[1], (1000, 20))}
        problem = cx.Problem(domain, lambda x, r: 0.5 * jnp.sum((x - r["z"]) ** 2), constraint)
        return float(cx.play(problem, cx.learners.Auto(), rounds, key=keys[2]).loss.sum())

    alone, beside_noise = (sum(total(seed, g) for seed in range(3)) for g in (None, lambda x, r: r["a"] @ x))
    assert beside_noise < 1.75 * alone
