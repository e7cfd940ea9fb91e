"""Ratings: sparse rounds that hold what was rated; prediction next to what people compare with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.data import is_here
from cocoax.problems import real
from cocoax.problems.real import ratings_baselines as baselines

KEY = jax.random.key(0)
TABLE = real.sampled_ratings(KEY, users=60, items=80, count=3010)


def scored(**options):
    instance = real.ratings(**options)
    rounds = instance.recorded
    game = cx.play(instance.problem, cx.learners.AutoNewton(), rounds, key=KEY)
    return real.next_batch_rmse(game.loss, rounds), game, rounds


def test_rounds_hold_every_rating_once_and_fill_the_last_batch_with_nothing():
    rounds = real.ratings(batch=500, table=TABLE).recorded
    assert rounds["user"].shape == (7, 500) and int(rounds["weight"].sum()) == 3010
    real_ones = np.asarray(rounds["weight"]) > 0
    np.testing.assert_array_equal(np.asarray(rounds["rating"])[real_ones], TABLE["rating"])
    for name in ("user", "item"):
        numbers = np.asarray(rounds[name])[real_ones]
        assert len(set(zip(numbers, TABLE[name], strict=True))) == len(set(TABLE[name]))  # one number for one name
        assert numbers[0] == 0 and np.all(numbers <= np.maximum.accumulate(np.r_[-1, numbers[:-1]]) + 1)  # as they come


def test_what_fills_a_batch_does_not_count():
    instance = real.ratings(batch=500, limit=0.1, table=TABLE)
    last = jax.tree.map(lambda leaf: leaf[-1], instance.recorded)
    changed = last | {"rating": jnp.where(last["weight"] > 0, last["rating"], 99.0)}
    x = instance.problem.domain.start()
    for one, other in zip(instance.problem.values(x, last), instance.problem.values(x, changed), strict=True):
        np.testing.assert_allclose(one, other)


def test_known_items_are_those_of_the_past():
    rounds = real.ratings(batch=100, table=TABLE).recorded
    changed = {name: column[:1500] for name, column in TABLE.items()}
    again = real.ratings(batch=100, table=changed).recorded
    np.testing.assert_array_equal(rounds["known"][:15], again["known"])
    assert 0.3 < float(rounds["known"][1:].mean()) < 0.7


def test_predictions_are_as_good_as_those_of_the_field_within_the_budget():
    found, game, rounds = scored(batch=10, limit=0.2, table=TABLE)
    rivals = [baselines.damped_means(rounds), *(baselines.sgd_factorisation(rounds, step=s) for s in (0.02, 0.05, 0.1))]
    assert found <= 1.01 * min(rivals) < 1.01 * baselines.running_mean(rounds)
    assert game.constraint.mean() <= 0.01 * 0.2


@pytest.mark.slow
@pytest.mark.skipif(not is_here("ml-100k"), reason="run `cocoax data fetch ml-100k`")
@pytest.mark.parametrize("batch", [500, 10])
def test_movielens_is_predicted_within_one_per_cent_of_sgd(batch):
    found, _, rounds = scored(batch=batch)
    rival = min(baselines.sgd_factorisation(rounds, step=step) for step in (0.02, 0.05, 0.1))
    within, game, _ = scored(batch=batch, limit=0.2)
    assert max(found, within) <= 1.01 * rival
    assert game.constraint.mean() <= 0.01 * 0.2


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"batch": 0}, "batch must"),
        ({"limit": float("nan")}, "limit must be a number of stars"),
        ({"table": {"user": [1]}}, "needs the column 'item'"),
        ({"table": {"user": [1], "item": [1, 2], "rating": [3]}}, "must have one length"),
    ],
)
def test_bad_arguments_are_told(options, sentence):
    with pytest.raises(cx.errors.ProblemError, match=sentence):
        real.ratings(**({"table": TABLE} | options))
