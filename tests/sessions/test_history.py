"""What a session tells of its past: labels, decisions, and what was played in their place."""

import contextlib
import datetime
import sqlite3

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
import session_tools as tools

import cocoax as cx
from cocoax.sessions import outcomes

PROBLEM = cx.Problem(cx.domains.Box([0.0, 0.0], [1.0, 2.0]), lambda x, r: r["value"] @ x, lambda x, r: x[0] - 0.5)
DAYS = [datetime.date(2026, 3, day) for day in range(1, 7)]
PLAYED = {2: [0.25, 0.5], 4: [1.0, 0.0]}


def session(path=None, learner=None, **options):
    learner = cx.baselines.PDOGD() if learner is None else learner
    problem = cx.Problem(PROBLEM.domain, PROBLEM.loss, PROBLEM.constraint, regularity=cx.Regularity(2.0, 0.0, 1.0))
    options = {"key": jax.random.key(0), "horizon": 20, "keep_decisions": True, **options}
    return cx.Session(problem, learner, path, **options)


def observe(it, days=range(6)):
    """Decisions and what was played."""
    decisions, played = [], []
    for day in days:
        decisions.append(it.decide())
        it.observe({"value": [1.0 + day, -1.0]}, PLAYED.get(day), label=DAYS[day])
        played.append(PLAYED.get(day, decisions[-1]))
    return np.array(decisions), np.array(played)


def columns(history, kind, names=("0", "1")):
    return np.stack([history[f"{kind}_{name}"] for name in names], -1)


def test_history_has_labels_decisions_and_what_was_played():
    it = session()
    decisions, played = observe(it)
    history = it.history(names=["north", "south"])
    assert history.dtype.names[:3] == ("round", "label", "loss")
    assert np.array_equal(history["label"].astype("datetime64[D]"), np.array(DAYS, "datetime64[D]"))
    assert np.array_equal(columns(history, "decision", ("north", "south")), decisions)
    assert np.array_equal(columns(history, "played", ("north", "south")), played)
    assert np.allclose(history["loss"], [[1.0 + day, -1.0] @ x for day, x in enumerate(played)])
    assert pl.DataFrame(history).shape == pd.DataFrame(history).shape == (6, len(history.dtype.names))


def test_they_are_durable_and_survive_a_crash_and_forgetting(tmp_path):
    it = session(tmp_path / "session", snapshot_every=4)
    decisions, _ = observe(it)
    tools.copied(tmp_path, tmp_path.with_name(tmp_path.name + "-killed"))
    it.close()
    for path in (tmp_path, tmp_path.with_name(tmp_path.name + "-killed")):
        with session(path / "session") as again:
            history = again.history()
            assert history["label"].tolist() == [day.isoformat() for day in DAYS]
            assert np.array_equal(columns(history, "decision"), decisions)
            again.forget()
            assert np.array_equal(again.history(), history)


def test_rounds_before_keep_nothing(tmp_path):
    with session(tmp_path / "session", keep_decisions=False) as it:
        it.observe({"value": [1.0, 1.0]})
        assert not {"label", "decision_0"} & set(it.history().dtype.names)
        with pytest.raises(cx.SessionError, match="start the session with keep_decisions=True"):
            it.history(names=["a", "b"])
    with session(tmp_path / "session") as it:
        expected = it.decide()
        it.observe({"value": [1.0, 1.0]})
        history = it.history()
        assert np.isnan(columns(history, "decision")[0]).all()
        assert np.array_equal(columns(history, "decision")[1], expected)


def test_a_replay_has_the_old_labels_and_the_new_decisions(tmp_path):
    with session(tmp_path / "session") as it:
        _, played = observe(it)
    with cx.Session.replay(tmp_path / "session", PROBLEM, cx.learners.Stay(), key=jax.random.key(0)) as again:
        history = again.history()
        assert history["label"].tolist() == [day.isoformat() for day in DAYS]
        assert np.array_equal(columns(history, "decision"), np.tile(again.decide(), (6, 1)))
        assert np.array_equal(columns(history, "played")[list(PLAYED)], played[list(PLAYED)])


def test_late_rounds_and_requests_keep_their_decisions():
    with session(learner=cx.learners.Auto(), pending=2, horizon=None) as it:
        first, second = it.decide("a"), it.decide("b")
        it.observe({"value": [1.0, 1.0]}, ticket="b", label="late")
        it.observe({"value": [2.0, 1.0]}, ticket="a")
        history = it.history()
        assert np.array_equal(columns(history, "decision"), [second, first])
        assert history["label"].tolist() == ["late", ""]
    asked = cx.Problem(cx.domains.ProbabilitySimplex(2), PROBLEM.loss, request=("value",))
    options = {"key": jax.random.key(0), "keep_decisions": True}
    with cx.Session(asked, cx.learners.DualMirrorDescent(0.1), **options) as it:
        decided = it.decide({"value": [1.0, -1.0]})
        it.observe()
        it.observe({"value": [1.0, -1.0]})  # not decided before
        assert np.array_equal(columns(it.history(), "decision")[0], decided)
        assert np.isfinite(columns(it.history(), "decision")).all()


def test_frames_have_labels_too():
    frame = pd.DataFrame({"value": [[1.0, 2.0]] * 3}, index=pd.date_range("2026-01-01", periods=3))
    with session() as it:
        it.observe_many(frame, labels=frame.index)
        assert it.history()["label"][2] == "2026-01-03T00:00:00"
        with pytest.raises(cx.SessionError, match="labels must be 3 texts or dates"):
            it.observe_many(frame, labels=["a"])
        assert it.rounds == 3
        polars = pl.DataFrame({"value": [[1.0, 2.0]] * 2, "date": DAYS[:2]})
        it.observe_many(polars.drop("date"), labels=polars["date"])
        it.observe_many(frame, labels=frame.index.to_numpy().astype("datetime64[D]"))
        for row in [*polars.drop("date").iter_rows(named=True), *frame.to_dict("records")]:
            it.observe(row)
        assert it.history()["label"][3:6].tolist() == ["2026-03-01", "2026-03-02", "2026-01-01"]
        assert it.history()["label"][-1] == ""


@pytest.mark.parametrize("label", ["", "a\nb", "x" * 201, 3, ["a"], b"a"])
def test_a_wrong_label_changes_nothing(label):
    with session() as it:
        with pytest.raises(cx.SessionError, match="a label is a date, or a text"):
            it.observe({"value": [1.0, 1.0]}, label=label)
        assert it.rounds == 0


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", 1], "ab"])
def test_names_are_one_for_each_entry(names):
    with session() as it:
        observe(it, [0])
        with pytest.raises(cx.SessionError, match="names must be 2 different texts"):
            it.history(names=names)


def test_flipped_bytes_of_a_label_are_noticed(tmp_path):
    with session(tmp_path / "session") as it:
        observe(it)
    with contextlib.closing(sqlite3.connect(tmp_path / "session")) as connection, connection:
        data = connection.execute("SELECT outcome FROM events WHERE number = 2").fetchone()[0]
        assert b"2026" in data
        connection.execute("UPDATE events SET outcome = ? WHERE number = 2", (data.replace(b"2026", b"2027"),))
    with session(tmp_path / "session") as it, pytest.raises(cx.SessionError, match="damaged at event 2"):
        it.history()


def test_a_point_outside_the_domain_counts_with_a_warning(tmp_path):
    with session(tmp_path / "session") as it:
        it.observe({"value": [1.0, -1.0]}, [1.00001, 0.0])  # a rounding error
        with pytest.warns(cx.SessionWarning, match="played= is not a point of the domain"):
            outcome = it.observe({"value": [1.0, -1.0]}, [25.0, 0.0])
        assert outcome.loss == 25.0 and it.rounds == 2
    with session(tmp_path / "session") as it:  # which does not warn again
        assert it.history()["played_0"].tolist() == [1.00001, 25.0]


def test_a_domain_that_cannot_tell_does_not_warn():
    domain = cx.domains.from_lmo(lambda d: -np.sign(np.asarray(d)), start=[0.0], diameter=2.0, host=True)
    with cx.Session(cx.Problem(domain, lambda x, r: r * x[0]), cx.learners.Stay(), key=jax.random.key(0)) as it:
        assert it.observe(1.0, [9.0]).loss == 9.0


def test_the_summary_names_the_learner_as_users_do():
    class Calm(cx.learners.Auto):
        pass

    calm = Calm()  # pyright: ignore[reportCallIssue]
    for learner, name in ((cx.learners.Auto(), "Auto"), (calm, "Calm"), (cx.learners.Stay(), "Stay")):
        with cx.Session(PROBLEM, learner, key=jax.random.key(0)) as it:
            assert it.summary()["learner"] == name


@pytest.mark.parametrize("remarks", [outcomes.Remarks(), outcomes.Remarks("é"), outcomes.Remarks(None, b"12", b"")])
def test_remarks_come_back_and_damaged_ones_are_refused(remarks):
    numbers = np.arange(8.0)
    data = outcomes.remarked(numbers.tobytes(), remarks)
    again, found = outcomes.split(data)
    assert np.array_equal(again, numbers) and found == remarks
    if remarks != outcomes.Remarks():
        for bad in (data[-3:] + data[-4:], data[:-16] + b"\xff\xff\xff\x7f" + data[-12:], b"note"):
            with pytest.raises(ValueError):
                outcomes.split(bad)
