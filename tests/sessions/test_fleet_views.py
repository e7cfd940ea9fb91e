"""Bounds and alarms of campaigns are those of sessions; a past can be read while others play."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.sessions import fleet_views
from cocoax.sessions.fleet_totals import FleetTotals
from cocoax.sessions.storage import journal
from cocoax.sessions.totals import RunningTotals


def test_certificates_are_those_of_sessions_and_bounds_hold():
    problem = cx.Problem(
        cx.domains.Box(jnp.zeros(2), jnp.ones(2)), lambda x, r: -r["v"] @ x, lambda x, r: x.sum() - r["b"]
    )
    draw, names = np.random.default_rng(0), ["a", "b", "c"]
    with cx.Fleet(problem, cx.learners.DPP(), key=jax.random.key(0), horizon=50, certify=True) as it:
        alone = cx.Session(problem, cx.learners.DPP(), key=it.key("b"), horizon=50, certify=True)
        for _ in range(12):
            rounds = {"v": draw.random((3, 2)), "b": np.full(3, 0.7)}
            it.observe(names, rounds)
            alone.observe({name: column[1] for name, column in rounds.items()})
        assert it.certificate("b").regret == alone.certificate().regret
        bounds = it.regret_bounds(names)
        for name, bound in zip(names, bounds):
            assert bound >= it.certificate(name).regret - 1e-9 and bound >= it.regret(name)[-1] - 1e-6
    with cx.Fleet(problem, cx.learners.DPP(), key=jax.random.key(0), horizon=50) as it:
        it.decide(names)
        with pytest.raises(cx.SessionError, match="certify=True"):
            it.certificate("a")


def test_totals_and_alarms_are_those_of_a_session():
    """Over the lengths of blocks, by 3,000 outcomes of three campaigns, one of which is infeasible."""
    draw, fleet, alone = np.random.default_rng(1), FleetTotals(1), [RunningTotals(1) for _ in range(3)]
    fleet.grow(4)
    told = set()
    for number in range(3_000):
        loss, over = draw.random(3), np.array([0.1, -0.1, draw.random() - 0.5])
        multiplier = np.array([0.1 * number, 1.0, draw.random()])
        numbers = np.c_[loss, over, multiplier, np.zeros((3, 2)), np.ones(3), np.zeros((3, 2))]
        rows = np.array([3, 0, 1])
        fleet.add(rows, numbers)
        for one, row in zip(alone, numbers):
            one.add(cx.learners.Outcome(row[0], row[1:2], row[2:3], 0, 0, True))
        if number % 64 == 63:
            for one, row in zip(alone, rows):
                if one._blocks[1] == 0:  # a block has just ended
                    assert bool(one.growing()[0]) == bool(fleet.alarms(row, ["budget"]))
                told |= {(int(row), bool(fleet.alarms(row, ["budget"])))}
                mine = fleet.summary(int(row), ["budget"])
                assert mine == one.summary(["budget"])
    for one, row in zip(alone, rows):
        assert tuple(fleet.columns["shape"][row]) == one._blocks
        np.testing.assert_allclose(fleet.columns["means"][row], one._means, rtol=1e-12)
    assert (3, True) in told and (0, True) not in told and (1, True) not in told


def test_a_past_that_is_read_keeps_nobody_waiting(tmp_path, monkeypatch):
    """A service reads histories of hours while others observe: each waits for a moment only."""
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: r["a"] * x[0])
    monkeypatch.setattr(journal, "_MOMENT", 0.0)  # one event at a time
    with cx.Fleet(problem, cx.learners.DPP(), tmp_path / "fleet", key=jax.random.key(0), horizon=99) as it:

        def observe():
            it.observe(["a", "b"], {"a": np.ones(2)})

        for _ in range(5):
            observe()
        before = it.history("a")
        past_of = fleet_views.past_of

        def with_calls_between(name, row, events, *rest):
            return past_of(name, row, (event for event in events if observe() is None), *rest)

        monkeypatch.setattr(fleet_views, "past_of", with_calls_between)
        assert it.history("a").tobytes() == before.tobytes() and it.rounds(["a"]) == 5 + 6  # one began both
        monkeypatch.setattr(
            fleet_views, "past_of", lambda *arguments: [it.forget() for _ in arguments[2] if observe() is None]
        )
        it.forget()
        with pytest.raises(cx.SessionError, match="forgotten while they were read; ask again"):
            it.history("a")
