"""Kinks are found in traces and replaced, and nothing else is."""

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.comparators.clock import Clock
from cocoax.comparators.kinks import kinks_of
from cocoax.comparators.objective import Objective
from cocoax.comparators.oracle import Oracle
from cocoax.comparators.search import Search
from cocoax.problem.kinks import replace_kinks

X, R = jnp.array([1.0, -2.0, 0.5]), jnp.array([0.3, 0.1, 0.2])


def loss(x, r):
    return jnp.abs(x - r).sum() + jax.nn.relu(x[0]) - jnp.minimum(x[2], 0.3) + jnp.linalg.norm(x, 1) + jnp.abs(r).sum()


def test_the_same_rule_gives_the_same_function():
    found = []
    np.testing.assert_allclose(replace_kinks(loss, lambda z: (found.append(z), jnp.abs(z))[1], X, R), loss(X, R))
    assert [z.shape for z in found] == [(3,), (), (), (3,)]

    def smooth(x, r):
        return jax.nn.softplus(x[0]) + jnp.sum(jnp.exp(x))

    assert replace_kinks(smooth, lambda z: 1 / 0, X, R) == smooth(X, R)
    np.testing.assert_allclose(replace_kinks(loss, jnp.zeros_like, X, R), 0.5 - 0.4 + 0.6)


def known(function):
    with jax.enable_x64(True):
        objective = Objective(cx.Problem(cx.domains.L2Ball(3, 3.0), function), jnp.stack([R, -R]), None, "mean")
        return kinks_of(Search(objective, Oracle(objective.problem.domain, objective.start), 1e-6, Clock()))


def test_only_nonnegative_sums_of_affine_kinks_count():
    kinks = known(loss)
    assert kinks is not None and kinks.number == 16
    A, b, c = kinks.rows()
    z = (A @ np.asarray(X) + b).reshape(2, 8)
    np.testing.assert_allclose(z[0], [*(X - R), 0.5, 0.1, *X])
    np.testing.assert_allclose(c, 0.5)
    assert known(lambda x, r: jnp.abs(r @ x)) is not None  # they all meet at the start
    assert known(lambda x, r: jnp.sum(x**2)) is None  # no kinks
    assert known(lambda x, r: jnp.sum(jnp.abs(x) ** 2)) is None  # not affine in the kinks
    assert known(lambda x, r: jnp.abs(jnp.sum(x**2) - 1)) is None  # kinks of something curved
    assert known(lambda x, r: r[0] * jnp.abs(x[0]) + jnp.sum(x**2)) is None  # a weight is negative in a round
    assert known(lambda x, r: x[1] * jnp.abs(x[0])) is None  # a weight that depends on the decision
    assert known(lambda x, r: jnp.abs(x[0] - 1) - jnp.where(x[0] > 1, 0.5 * x[0], 0.5)) is None  # another kink
    assert known(lambda x, r: jnp.abs(x[0] - 1) - jnp.max(x)) is None
    assert known(lambda x, r: jnp.abs(x[0] - 1) - jax.lax.clamp(0.0, x[0] - 1, 1.0)) is None
    assert known(lambda x, r: jnp.abs(x[0] - 1) + jax.nn.softplus(x[1]) + jnp.where(r[0] > 0, x[0], x[1])) is not None
    assert known(lambda x, r: 3 * jnp.abs(x[0]) - 2 * (x[0] > 0).astype(float) * x[0]) is None  # a case as a number
    assert known(lambda x, r: 3 * jnp.abs(x[0]) - jax.checkpoint(jax.nn.relu)(x[0])) is None  # a kink that is hidden
    assert known(lambda x, r: 3 * jnp.abs(x[0]) - jnp.sqrt(x[0] ** 2 + r[0] ** 2)) is None  # a root that may be a kink
    assert known(lambda x, r: 3 * jnp.abs(x[0]) + jnp.linalg.norm(x - r)) is not None  # this one is convex
