"""The units of multipliers: which moves of a decision say something about them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.learners.units import Units


def test_pinned_matrices_keep_their_slopes():
    """A decision that is pinned before the constraint is surely broken moves no more: its first moves must count."""
    problem = cx.Problem(
        cx.domains.Box(jnp.zeros((1, 2)), jnp.ones((1, 2))),
        lambda x, r: x[0, 1] - x[0, 0],
        lambda x, r: x[0, 0] + 1000 * x[0, 1] - 0.3 + r,
    )
    noise = jax.random.normal(jax.random.key(3), (1000,))
    game = cx.play(problem, cx.learners.Auto(), noise, key=jax.random.key(0), start=jnp.zeros((1, 2)))
    assert game.violation()[-1, 0] < 100  # 653 where only moves near a broken constraint counted


@pytest.mark.parametrize(
    "moves, rounds, overspent, growth, keep, counts",
    [
        (63, 100, 0, 0, 1, True),
        (64, 101, 0, 0, 1, False),
        (64, 104, 0, 0, 1, True),
        (64, 108, 0, 0, 1, False),
        (64, 101, 0.9, 0, 1, False),
        (64, 101, 1.1, 0, 1, True),
        (64, 101, 0, 0.005, 1, False),
        (64, 101, 0, 0.02, 1, True),
        (64, 101, 0, 0, 0.99, True),
    ],
)
def test_moves_of_matrices_that_count(moves, rounds, overspent, growth, keep, counts):
    """Of two constraints, one is overspent; its unit grows."""
    problem = cx.Problem(cx.domains.LinfBall((2, 2), 1.0), lambda x, r: jnp.sum(x), lambda x, r: x[0], constraints=2)
    old, new = jnp.zeros((2, 2)), jnp.full((2, 2), 0.5)
    units = dataclasses.replace(
        Units.begin(problem, old),
        loss_gradients=jnp.ones((2, 2)),
        awake=jnp.array(True),
        rounds=jnp.asarray(rounds, float),
        moves=jnp.asarray(moves, float),
        growth=jnp.array([0, growth], float),
    )
    gradients = jnp.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]])
    spent, keep = jnp.array([0, overspent], float), jnp.asarray(keep, float)

    def moved(always):
        return units.moved(old, new, gradients, jnp.ones(2), spent, keep, always=always)

    seldom, always = moved(False), moved(True)
    assert always.moves == moves + 1
    assert np.isclose(always.along_constraints[0], 0.25)  # <grad g, d>^2 over |d|^2
    expected = always if counts else units
    assert all(map(np.array_equal, jax.tree.leaves(seldom), jax.tree.leaves(expected)))
