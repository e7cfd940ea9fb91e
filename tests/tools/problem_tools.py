"""What ready problems state of themselves, checked on rounds that are drawn."""

import jax
import jax.numpy as jnp
import numpy as np


def check_expected_constraint(instance, key):
    """It is the mean of many rounds, within 4.5 standard errors."""

    @jax.jit
    def measured(rounds):
        x = instance.problem.domain.lmo(jax.random.normal(key, instance.problem.domain.shape)).dense()
        return instance.expected_constraint(x), jax.vmap(lambda r: instance.problem.values(x, r)[1])(rounds)

    expected, values = map(np.asarray, measured(instance.rounds(4000, key)))
    error = values.std(0) / len(values) ** 0.5
    assert np.all(np.abs(values.mean(0) - expected) <= 4.5 * error + 1e-12)


def check_stated_constants(instance, key):
    """The problem's `regularity` holds at vertices and between them, up to rounding."""
    problem, domain = instance.problem, instance.problem.domain

    @jax.vmap
    def measure(x, y, r):
        first, second = (
            jnp.stack([f, *g]).reshape(1 + len(g), -1) for f, g in (problem.gradients(z, r) for z in (x, y))
        )
        return first, first - second, (x - y).reshape(-1), jnp.abs(problem.values(x, r)[1]).max()

    @jax.jit
    def measured(rounds):
        directions = jax.random.normal(key, (40, *domain.shape))
        vertices = jax.vmap(lambda direction: domain.lmo(direction).dense())(directions)
        points = 0.5 * jnp.concatenate([vertices + vertices, vertices + vertices[::-1]])
        rounds = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), rounds)
        return measure(points, jnp.roll(points, 1, axis=0), rounds)

    gradient, change, move, values = map(np.asarray, measured(instance.rounds(40, key)))
    for stated in problem.regularity:
        far = np.linalg.norm(move, axis=-1) if stated.norm == 2 else np.abs(move).sum(-1)
        _assert_below(np.linalg.norm(gradient, stated.norm, axis=-1).max(), stated.lipschitz)
        _assert_below(values.max(), stated.constraint_bound)
        if stated.smoothness is not None:
            rise = np.linalg.norm(change, stated.norm, axis=-1).max(-1)
            assert (rise - stated.smoothness * far).max() <= 1e-9 * min(1, stated.lipschitz)


def _assert_below(found, stated):
    assert found <= stated + 1e-9 * min(1, stated)
