"""What `lmos=` and `replays=` buy: a nearer decision, and gradients of remembered rounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.errors import LearnerError
from cocoax.learners import Auto
from cocoax.learners.replays import Replays

SIZE, ROUNDS = 3, 12
PROBLEM = cx.Problem(
    cx.domains.L1Ball(4, 1.0), lambda x, r: 0.5 * (r["a"] @ x - r["b"]) ** 2, lambda x, r: r["a"][0] * x[0] - 0.1
)


def some_rounds(count, seed=0):
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(size=(count, 4)), "b": rng.normal(size=count)}


def one(rounds, t):
    return jax.tree.map(lambda leaf: leaf[t], rounds)


@jax.jit
@jax.vmap
def reservoirs(key):
    """The numbers of the rounds that are remembered after each of ROUNDS rounds."""

    def step(replays, t):
        replays = replays.add(t)
        return replays, replays.rounds

    return jax.lax.scan(step, Replays.begin(SIZE, jnp.zeros((), jnp.int32), key), jnp.arange(ROUNDS, dtype=jnp.int32))[
        1
    ]


def test_every_round_is_as_likely_to_be_remembered():
    """4000 keys: a share of 1/4 has a standard deviation of 0.007."""
    held = np.asarray(reservoirs(jax.random.split(jax.random.key(0), 4000)))
    assert np.all(held[:, SIZE - 1] == np.arange(SIZE))
    assert np.all([len(set(rounds)) == SIZE for rounds in held[:100, -1]])
    shares = np.bincount(held[:, -1].ravel(), minlength=ROUNDS) / 4000
    np.testing.assert_allclose(shares, SIZE / ROUNDS, atol=0.03)


def test_gradients_are_means_over_this_round_and_those_remembered():
    rounds, x = some_rounds(5), jnp.array([0.1, -0.2, 0.3, 0.0])
    replays = Replays.begin(SIZE, one(rounds, 0), jax.random.key(1))
    for t in (0, 1):
        replays = replays.add(one(rounds, t))
    loss, constraints = replays.gradients(PROBLEM, x, one(rounds, 4))
    known = [PROBLEM.gradients(x, one(rounds, t)) for t in (0, 1, 4, 4)]  # an empty place counts as this round
    np.testing.assert_allclose(loss, np.mean([g for g, _ in known], axis=0), atol=1e-12)
    np.testing.assert_allclose(constraints, np.mean([g for _, g in known], axis=0), atol=1e-12)


@pytest.fixture(scope="module")
def games():
    rounds = some_rounds(300)
    learners = {"plain": Auto(), "lmos": Auto(lmos=4), "replays": Auto(replays=SIZE, like=one(rounds, 0))}
    keys = {"plain": 0, "lmos": 0, "replays": 0, "again": 0, "other key": 1}
    return {
        name: cx.play(PROBLEM, learners.get(name, learners["replays"]), rounds, key=jax.random.key(key))
        for name, key in keys.items()
    }


def test_more_lmos_bring_the_decision_nearer_to_its_target(games):
    assert np.all(games["lmos"].lmo_calls == 4) and np.all(games["plain"].lmo_calls == 1)
    lags = {name: float(jnp.linalg.norm(games[name].state.tracker.away)) for name in ("plain", "lmos")}
    assert lags["lmos"] < 0.7 * lags["plain"]


def test_the_key_decides_what_is_remembered(games):
    np.testing.assert_array_equal(games["again"].loss, games["replays"].loss)
    assert np.any(games["other key"].loss != games["replays"].loss)
    np.testing.assert_array_equal(games["other key"].loss[0], games["plain"].loss[0])
    assert np.all(games["replays"].gradient_calls == 2 + SIZE)


@pytest.mark.parametrize("wrong", [{"lmos": 0}, {"replays": -1, "like": 1.0}, {"replays": 2}, {"like": 1.0}])
def test_wrong_numbers_are_explained(wrong):
    with pytest.raises(LearnerError, match=next(iter(wrong))):
        Auto(**wrong)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ({"a": np.zeros(4, int), "b": 0}, r"like= is \{a: integer\[4\], b: integer\[\]\}, but a round is \{a: float"),
        ({"a": np.zeros(3), "b": 0.0}, r"float\[3\].*give a round itself"),
        ({"a": np.zeros((5, 4)), "b": np.zeros(5)}, r"float\[5, 4\].*give a round itself"),
        ({"a": np.zeros(4)}, "give a round itself"),
        ("round", "like= must be a round, of arrays, got 'round'"),
    ],
)
def test_an_example_that_is_no_round_is_refused(like, message):
    with pytest.raises(LearnerError, match=message):
        cx.play(PROBLEM, Auto(replays=2, like=like), some_rounds(3), key=jax.random.key(0))


def test_an_example_may_have_lists():
    games = [
        cx.play(PROBLEM, Auto(replays=2, like=like), some_rounds(5), key=jax.random.key(0))
        for like in ({"a": [0, 0, 0, 0], "b": 0.0}, one(some_rounds(1), 0))
    ]
    np.testing.assert_array_equal(games[0].loss, games[1].loss)
