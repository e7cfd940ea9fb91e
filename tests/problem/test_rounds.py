"""Frames of pandas and polars, and columns of any kind, are rounds."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import cocoax as cx
from cocoax.problem.rounds import as_rounds

COST = np.linspace(-1, 1, 36).reshape(12, 3)
BUDGET = np.linspace(0.2, 0.4, 12)
ARRAYS = {"cost": COST, "budget": BUDGET}
COSTS = {"cost": COST.tolist(), "budget": BUDGET}
FRAMES = {
    "polars lists": pl.DataFrame(COSTS),
    "polars arrays": pl.DataFrame(COSTS).with_columns(pl.col("cost").list.to_array(3)),
    "pandas lists": pd.DataFrame(COSTS),
    "pandas arrays": pd.DataFrame({"cost": list(COST), "budget": BUDGET}),
    "a dict of lists": {"cost": COST.tolist(), "budget": BUDGET.tolist()},
    "a dict of series": {"cost": COST, "budget": pl.Series(BUDGET)},
    "an index of dates": pd.DataFrame(COSTS, index=pd.date_range("2026-01-01", periods=12)),
}
PROBLEM = cx.Problem(
    cx.domains.ProbabilitySimplex(3),
    loss=lambda x, r: jnp.vdot(r["cost"], x),
    constraint=lambda x, r: x[2] - r["budget"],
)


def play(rounds):
    return cx.play(PROBLEM, cx.learners.Stay(), rounds, key=jax.random.key(0))


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_played_as_its_columns_are(kind):
    game, expected = play(FRAMES[kind]), play(ARRAYS)
    assert np.array_equal(game.loss, expected.loss) and np.array_equal(game.constraint, expected.constraint)


def test_frames_are_rounds_in_hindsight_and_sessions():
    best, expected = (cx.hindsight(PROBLEM, rounds) for rounds in (FRAMES["pandas lists"], ARRAYS))
    assert np.array_equal(best.loss, expected.loss)
    at = np.ones(3) / 3
    fixed = cx.Comparator.fixed(PROBLEM, FRAMES["polars lists"], at)
    assert np.allclose(fixed.loss, COST @ at)
    with cx.Session(PROBLEM, cx.learners.Stay(), key=jax.random.key(0)) as session:
        outcomes = session.observe_many(FRAMES["polars lists"])
        outcomes += session.observe_many(FRAMES["pandas lists"])
        assert np.allclose([outcome.loss for outcome in outcomes], np.tile(play(ARRAYS).loss, 2))


def test_a_series_is_an_array():
    assert np.array_equal(as_rounds(pl.Series(BUDGET)), BUDGET)
    nested = as_rounds(pl.DataFrame({"a": [[[1.0, 2.0]], [[3.0, 4.0]]]}))["a"]
    assert nested.shape == (2, 1, 2) and nested.dtype == float
    assert as_rounds({"on": [True, False]})["on"].dtype == bool


@pytest.mark.parametrize(
    ("rounds", "sentence"),
    [
        (pl.DataFrame(COSTS).lazy(), "rounds is a LazyFrame, which is not computed yet; give its .collect()"),
        (pd.DataFrame({"a": [[1.0]]})[:0], "rounds hold no round; give at least one"),
        (pd.DataFrame({"a": [[1.0], [2.0, 3.0]]}), r"rounds\['a'\] has entries of several shapes, such as"),
        (pd.DataFrame({"a": [1.0, None]}, dtype=object), r"rounds\['a'\] has no number in row 1"),
        (pl.DataFrame({"a": [[1.0], None]}), r"rounds\['a'\] has no number in row 1"),
        (pl.DataFrame({"a": ["x", "y"]}), r"rounds\['a'\] must be an array of numbers"),
        (pd.DataFrame({"a": pd.date_range("2026-01-01", periods=2)}), r"rounds\['a'\] must be an array of numbers"),
        (pl.DataFrame({"a": [1.0, None]}), r"round 1: the loss is not finite, because round\['a'\] is nan"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), r"rounds\['a'\] stands for several columns of one name"),
    ],
)
def test_columns_that_are_not_numbers_are_named(rounds, sentence):
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: x[0] * r["a"])
    with pytest.raises(cx.ProblemError, match=sentence):
        cx.play(problem, cx.learners.Stay(), rounds, key=jax.random.key(0))


def test_nothing_of_pandas_or_polars_is_imported():
    code = "import sys, cocoax.problem.rounds as r; r.as_rounds({'a': [1.0]}); print('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("largest, kind", [(4_000_000_000, np.int64), (-4_000_000_000, np.int64), (2**40, np.uint64)])
def test_whole_numbers_that_jax_would_wrap_are_refused(largest, kind):
    """Micro-dollars, identities and times in milliseconds, of arrays and of frames."""
    rounds = {"micros": np.array([1, largest, 3], kind)}
    with jax.enable_x64(False):
        for given in (rounds, pd.DataFrame(rounds)):
            with pytest.raises(
                cx.CocoaxError, match=rf"\['micros'\] has {largest}, which does not fit into u?int32; give"
            ):
                as_rounds(given)
        fits = {"micros": np.array([1, 2**31 - 1])}
        assert as_rounds(fits)["micros"] is fits["micros"]
    assert as_rounds(rounds)["micros"] is rounds["micros"]


@pytest.mark.usefixtures("free_promotion")  # int32 and float
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_small_unsigned_numbers_do_not_wrap_below_0(kind, tmp_path):
    rounds = {"value": np.full((6, 2), 3, kind)}
    problem = cx.Problem(cx.domains.Box([0.0, 0.0], [1.0, 1.0]), lambda x, r: -r["value"] @ x)
    game = cx.play(problem, cx.learners.Stay(), rounds, key=jax.random.key(0), start=jnp.ones(2))
    assert game.loss.tolist() == [-6.0] * 6
    assert float(cx.hindsight(problem, rounds).value) == pytest.approx(-36)
    with cx.Session(problem, cx.learners.Stay(), tmp_path / "s.cocoax", key=jax.random.key(0)) as session:
        session.observe({"value": rounds["value"][0]}, played=np.ones(2))
        assert session.history()["loss"].tolist() == [-6.0]


def test_keys_in_rounds_stay_as_they_are():
    data = jax.random.key_data(jax.random.split(jax.random.key(0), 3))
    assert as_rounds(data).dtype == jnp.uint32
