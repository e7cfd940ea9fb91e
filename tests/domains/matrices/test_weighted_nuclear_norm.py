"""Weighted nuclear norms, and low rank plus biases: sets as they say, by an SVD of another library."""

import jax
import numpy as np
import pytest

import cocoax as cx
from cocoax.domains import LowRankPlusBiases, WeightedNuclearNormBall
from cocoax.errors import DomainError
from cocoax.testing import check_domain

ROWS, COLUMNS = np.array([0.5, 0.25, 0.25]), np.array([0.1, 0.2, 0.3, 0.4])
CONTRACTS = {
    "WeightedNuclearNormBall": WeightedNuclearNormBall(ROWS, COLUMNS, 2.0),
    "LowRankPlusBiases": LowRankPlusBiases((3, 4), 2.0, weights=(ROWS, COLUMNS)),
}


def lowest_of_ball(direction):
    return -2.0 * np.linalg.norm(np.asarray(direction) / np.sqrt(np.outer(ROWS, COLUMNS)), 2)


def lowest_of_product(direction):
    of_biases = sum(2 * np.abs(direction[name]).sum() for name in ("rows", "columns"))
    mean = float(direction["mean"][0])
    return lowest_of_ball(direction["matrix"]) - of_biases + min(mean, 5 * mean)


@pytest.mark.parametrize("name, lowest", list(zip(CONTRACTS, (lowest_of_ball, lowest_of_product))))
def test_the_lmo_is_a_singular_pair_of_the_rescaled_direction(name, lowest):
    check_domain(CONTRACTS[name], key=jax.random.key(0), directions=12, reference=lowest, dtypes=[float])


def test_a_warm_lmo_comes_to_the_same_answer():
    ball = WeightedNuclearNormBall(ROWS, COLUMNS, 2.0, method="krylov", iterations=8)
    direction = jax.random.normal(jax.random.key(1), (3, 4))
    vertex = ball.lmo(direction, ball.lmo(direction + 0.1))
    np.testing.assert_allclose(vertex.dot(direction), lowest_of_ball(direction), rtol=1e-6)


def test_equal_weights_are_the_usual_ball():
    usual, weighted = cx.domains.NuclearNormBall((3, 4), 2.0), WeightedNuclearNormBall(np.ones(3), np.ones(4), 2.0)
    direction = jax.random.normal(jax.random.key(2), (3, 4))
    np.testing.assert_allclose(weighted.lmo(direction).dense(), usual.lmo(direction).dense(), atol=1e-7)
    assert float(weighted.diameter(2)) == float(usual.diameter(2))


@pytest.mark.parametrize("weights", [[1.0, 0.0], [[1.0]], [], [np.inf]])
def test_weights_must_be_positive(weights):
    with pytest.raises(DomainError, match="rows must be a vector of positive weights"):
        WeightedNuclearNormBall(weights, [1.0], 1.0)
