"""A factored ball that grows: what was learned stays, and play goes on as if the larger ball had been there."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.domains import NuclearNormBall
from cocoax.errors import DomainError

SHAPE, KEY = (6, 5), jax.random.key(0)
RNG = np.random.default_rng(0)
PLACES = np.divmod(RNG.permutation(30)[:20], 5)
FIRST = tuple(index[:12] for index in PLACES)
NEXT = tuple(index[12:] for index in PLACES)
RATINGS = jnp.asarray(RNG.normal(size=(16, 20)))
SMALL: Any = NuclearNormBall(SHAPE, 3.0, factored=True, entries=FIRST, rank=4)
LEARNER = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.RobustPI())


def loss(x, r):
    return 0.5 * jnp.sum((x.entries(jnp.arange(r.size)) - r) ** 2)


def played(domain, ratings, state=None):
    problem = cx.Problem(domain, loss)
    state = LEARNER.init(problem, key=KEY, horizon=100) if state is None else state

    @jax.jit
    def run(state):
        return jax.lax.scan(lambda state, r: LEARNER.observe(problem, state, r), state, ratings)

    state, outcomes = run(state)
    return state, outcomes.loss, domain.view(LEARNER.decision(state)).dense()


def test_a_matrix_stays_the_same():
    large = SMALL.grown(([6, 0], [0, 5]), shape=(7, 6))
    x = SMALL.element(RNG.normal(size=(2, 6)), RNG.normal(size=(2, 5)), RNG.normal(size=12))
    carried = large.carried({"x": x, "count": 3})
    bigger = large.view(carried["x"]).dense()
    np.testing.assert_allclose(bigger[:6, :5], SMALL.view(x).dense(), atol=1e-12)
    assert not np.any(bigger[6]) and not np.any(bigger[:, 5]) and carried["count"] == 3
    np.testing.assert_allclose(carried["x"].entries(), bigger[large.pattern.rows, large.pattern.columns], atol=1e-12)


@pytest.mark.slow
def test_play_goes_on_as_if_all_entries_had_been_there():
    large = SMALL.grown(NEXT)
    state, _, _ = played(SMALL, RATINGS[:8, :12])
    whole, _, matrix = played(large, RATINGS[:8, :12])
    carried = large.carried(state)
    np.testing.assert_allclose(large.view(LEARNER.decision(carried)).dense(), matrix, atol=1e-8)
    for one, other in zip(jax.tree.leaves(carried), jax.tree.leaves(whole), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
    mixed = jax.tree.map(lambda *pair: jnp.stack(pair), carried, whole)
    both = jax.vmap(lambda state: played(large, RATINGS[8:12], state)[1])(mixed)
    np.testing.assert_allclose(both[0], both[1], atol=1e-8)


@pytest.mark.slow
def test_new_rows_and_columns_are_zero_and_learn():
    state, _, matrix = played(SMALL, RATINGS[:8, :12])
    large = SMALL.grown(([6, 0], [0, 5]), shape=(7, 6))
    carried = large.carried(state)
    bigger = large.view(LEARNER.decision(carried)).dense()
    np.testing.assert_allclose(bigger[:6, :5], matrix, atol=1e-12)
    assert not np.any(bigger[6]) and not np.any(bigger[:, 5])
    _, losses, after = played(large, jnp.tile(RATINGS[0, :14], (30, 1)), carried)
    assert np.any(after[6]) and float(losses[-1]) < float(losses[0])
    assert np.linalg.norm(after, "nuc") <= 3.0 * (1 + 1e-6)


def test_a_ball_does_not_shrink():
    with pytest.raises(DomainError, match="no size may shrink"):
        SMALL.grown(([0], [0]), shape=(5, 5))
    with pytest.raises(DomainError, match="twice"):
        SMALL.grown(([FIRST[0][0]], [FIRST[1][0]]))
