"""Low rank plus biases: the matrix as factors plays the game of the matrix that is written down."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.domains import LowRankPlusBiases, NuclearNormBall, Product
from cocoax.errors import DomainError, ProblemError

SHAPE, COUNT, T, KEY = (8, 6), 30, 20, jax.random.key(0)
_rng = np.random.default_rng(0)
ROWS, COLUMNS = np.divmod(_rng.permutation(SHAPE[0] * SHAPE[1])[:COUNT], SHAPE[1])
_truth = 3 + _rng.normal(size=(8, 1)) + _rng.normal(size=(1, 6)) + np.outer(_rng.normal(size=8), _rng.normal(size=6))
_places = _rng.integers(0, COUNT, (T, 5))
ROUNDS = {
    "place": jnp.asarray(_places),
    "user": jnp.asarray(ROWS[_places]),
    "item": jnp.asarray(COLUMNS[_places]),
    "rating": jnp.asarray(_truth[ROWS[_places], COLUMNS[_places]] + 0.1 * _rng.normal(size=(T, 5))),
    "left": jnp.asarray(_rng.normal(size=(T, 8)) / 8),
    "right": jnp.asarray(_rng.normal(size=(T, 6)) / 6),
}


def predicted(x, r, entries):
    return x["mean"] + x["rows"][r["user"]] + x["columns"][r["item"]] + entries


def problem_of(domain, entries, inner):
    def loss(x, r):
        return jnp.mean((predicted(x, r, entries(x["matrix"], r)) - r["rating"]) ** 2)

    def constraint(x, r):
        return inner(x["matrix"], r) + x["rows"].mean() - 0.05

    return cx.Problem(domain, loss, constraint)


LARGE: Any = LowRankPlusBiases(SHAPE, 4.0, factored=True, entries=(ROWS, COLUMNS), rank=6, method="exact")
FACTORED = problem_of(
    LARGE,
    lambda matrix, r: matrix.entries(r["place"]),
    lambda matrix, r: matrix.inner(r["left"], r["right"]),
)
WRITTEN = problem_of(
    LowRankPlusBiases(SHAPE, 4.0, method="exact"),
    lambda matrix, r: matrix[r["user"], r["item"]],
    lambda matrix, r: r["left"] @ matrix @ r["right"],
)


def written(x):
    return {**x, "matrix": FACTORED.domain.view(x)["matrix"].dense()}


def test_gradients_are_those_of_the_matrix_that_is_written_down():
    x = FACTORED.domain.start()
    x["matrix"] = LARGE.blocks["matrix"].element(jnp.ones((1, 8)), jnp.arange(6.0)[None])
    r = jax.tree.map(lambda column: column[0], ROUNDS)
    for found, expected in zip(FACTORED.gradients(x, r), WRITTEN.gradients(written(x), r)):
        for name in ("mean", "rows", "columns"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-10)
    loss_gradient = FACTORED.gradients(x, r)[0]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12),
        written(loss_gradient),
        WRITTEN.gradients(written(x), r)[0],
    )
    hessian, other = (p.curvature(y, r, 1.0, jnp.ones(1)) for p, y in ((FACTORED, x), (WRITTEN, written(x))))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12),
        written(hessian(loss_gradient)),
        other(written(loss_gradient)),
    )


@pytest.mark.slow
def test_auto_plays_the_same_game():
    """For as long as no target is reached, in the first 29 rounds: then rounding alone chooses vertices."""
    game = cx.play(FACTORED, cx.learners.Auto(), ROUNDS, key=KEY)
    same = cx.play(WRITTEN, cx.learners.Auto(), ROUNDS, key=KEY)
    np.testing.assert_allclose(game.loss, same.loss, rtol=1e-7)
    np.testing.assert_allclose(game.constraint, same.constraint, atol=1e-7)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), written(game.decision), same.decision)
    assert game.loss[-5:].mean() < game.loss[:5].mean()
    assert FACTORED.domain.contains(game.decision, 1e-6)


def test_points_of_another_form_are_refused_in_one_sentence():
    with pytest.raises(DomainError, match="must have the structure"):
        FACTORED.domain.lmo({"mean": jnp.ones(1)})
    with pytest.raises(DomainError, match="must be one of its matrices"):
        FACTORED.domain.lmo({**FACTORED.domain.start(), "matrix": jnp.ones(SHAPE)})
    with pytest.raises(ProblemError, match="start must be a matrix of the domain"):
        cx.play(FACTORED, cx.learners.Auto(), ROUNDS, key=KEY, start={"mean": jnp.ones(1)})
    with pytest.raises(ProblemError, match="no solver for factored"):
        cx.hindsight(FACTORED, ROUNDS)
    with pytest.raises(cx.LearnerError, match="AdaptivePDOGD cannot play factored matrices"):
        cx.play(FACTORED, cx.learners.AdaptivePDOGD(), ROUNDS, key=KEY)


def test_a_product_of_two_factored_balls_keeps_them_apart():
    first, second = (NuclearNormBall(SHAPE, 1.0, factored=True, entries=([k], [k]), rank=2) for k in (0, 1))
    problem = cx.Problem(Product((first, second)), lambda x, r: jnp.sum((x[0].entries() - 2 * x[1].entries() - r) ** 2))
    x = tuple(ball.element(values=jnp.array([value])) for ball, value in zip((first, second), (0.5, 0.25)))  # pyright: ignore[reportAttributeAccessIssue]
    gradient = problem.gradients(x, jnp.array(1.0))[0]
    assert float(gradient[0].values[0]) == -2.0 and float(gradient[1].values[0]) == 4.0
