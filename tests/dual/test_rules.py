"""What rounding and overflow would spoil in the rules that are in print."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx


def test_weights_of_a_floored_queue_are_not_below_0():
    """Compilers may fuse a product and a sum, and round it once; the queue was rounded twice."""
    rule = cx.dual.FlooredQueue(1.7)

    def step(queue, values):
        weights, queue = rule.weigh(queue, values)
        return queue, weights.constraint

    values = jnp.asarray(np.random.default_rng(0).normal(size=(2000, 1)))
    assert (jax.jit(lambda: jax.lax.scan(step, jnp.zeros(1), values))()[1] >= 0).all()


@pytest.mark.parametrize("rule", [cx.dual.ExponentialPotential(1.0), cx.dual.DriftPotential(1.0, 1e-9, 1e-9)])
@pytest.mark.parametrize("kind", [jnp.float32, jnp.float64])
def test_potentials_stop_growing_before_squares_overflow(rule, kind):
    state = jax.tree.map(lambda leaf: jnp.full_like(leaf, 1e4), rule.init(2, kind))
    weights, _ = rule.weigh(state, jnp.ones(2, kind))
    assert weights.constraint.dtype == kind and (weights.constraint > 1e10).all()
    assert jnp.isfinite(jnp.square(weights.constraint)).all()


def test_what_is_kept_repays_no_hard_violation():
    rule = cx.dual.Hard(cx.dual.BoundedAscent(cap=9.0, step=1.0))
    _, state = rule.weigh(rule.init(2, float), jnp.array([2.0, -1.0]))
    _, later = rule.weigh(state, jnp.array([-5.0, -3.0]))
    np.testing.assert_array_equal([rule.forecast(each).constraint.sum() for each in (state, later)], [2.0, 2.0])
