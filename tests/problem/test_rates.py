"""Limits on rates: hinges bound the true rate from both sides, and a game that keeps them keeps the rate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(300, 8, 3)) + np.array([0.5, 0.0, 0.0])
ROUNDS = {
    "features": jnp.asarray(FEATURES),
    "label": jnp.asarray(np.sign(FEATURES[..., 0] + 0.3 * RNG.normal(size=(300, 8)))),
    "group": jnp.asarray((FEATURES[..., 1] > 0).astype(float)),
}


def score(x, r):
    return r["features"] @ x


ALL = cx.Rate(score)
ONE, OTHER = cx.Rate(score, lambda r: r["group"], margin=0.5), cx.Rate(score, lambda r: 1 - r["group"], margin=0.5)


def at(t):
    return jax.tree.map(lambda leaf: leaf[t], ROUNDS)


def test_bounds_hold_on_both_sides():
    for t in range(20):
        x, r = jnp.asarray(RNG.normal(size=3) * 10.0 ** RNG.uniform(-2, 1)), at(t)
        for rate in (ALL, ONE, OTHER):
            assert float(rate.below(x, r)) <= float(rate(x, r)) <= float(rate.above(x, r))
        gap = float(ONE(x, r) - OTHER(x, r))
        assert gap - 0.1 <= float(ONE.exceeds(OTHER, 0.1)(x, r)) + 1e-12
        assert 0.4 - float(ALL(x, r)) <= float(ALL.at_least(0.4)(x, r)) + 1e-12


def test_the_true_rate_counts_whom_it_is_about():
    r = at(0)
    x = jnp.array([1.0, 0.0, 0.0])
    accepted, group = np.asarray(r["features"])[:, 0] > 0, np.asarray(r["group"]) > 0
    assert float(ONE(x, r)) == pytest.approx(accepted[group].mean())
    nobody = r | {"group": jnp.zeros(8)}
    assert float(ONE(x, nobody)) == float(ONE.above(x, nobody)) == 0.0


def test_a_game_that_keeps_the_limit_keeps_the_rate():
    problem = cx.Problem(
        cx.domains.L2Ball(3, 3.0),
        lambda x, r: jnp.mean(jax.nn.softplus(-r["label"] * score(x, r))),
        ALL.at_most(0.8),
    )
    game = cx.play(problem, cx.learners.Auto(), ROUNDS, key=jax.random.key(0), keep_decisions=True)
    true = np.mean(jax.vmap(ALL)(game.decisions, ROUNDS))
    assert game.constraint.mean() <= 0.03 and true <= 0.8 + game.constraint.mean()


@pytest.mark.parametrize("make", [lambda: cx.Rate(3), lambda: cx.Rate(score, 3)])
def test_functions_are_needed(make):
    with pytest.raises(cx.ProblemError, match="must be a function, got 3"):
        make()
