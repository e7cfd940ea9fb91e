"""Power cuts at every write: what was acknowledged is there, counted once, with the same bits."""

import functools

import jax
import numpy as np
import power_tools as power
import pytest
import session_tools as tools

import cocoax as cx

CUTS = [500, pytest.param(5_000, marks=pytest.mark.slow)]


@pytest.fixture
def folder():
    with power.memory_folder() as folder:
        yield folder


def _play(path, log):
    """Opened three times, with snapshots, forgotten rounds and several rounds at once."""
    for count in (9, 8, 10):
        with tools.session(path, snapshot_every=5) as it:
            for _ in range(count):
                log.mark(started=it.rounds + 1)
                tools.observe(it, 1)
                log.mark(acknowledged=it.rounds)
            log.mark(started=it.rounds + 3)
            it.observe_many([tools.a_round(it.rounds + i) for i in range(3)])
            log.mark(acknowledged=it.rounds)
            it.forget()


class _Undisturbed(tools.Uninterrupted):
    """With several rounds at once where `_play` has them: none of these is played otherwise than decided."""

    def after(self, rounds):
        while len(self._bits) <= rounds:
            number = self._session.rounds
            if number in range(9, 12) or number in range(20, 23) or number in range(33, 36):
                self._session.observe(tools.a_round(number))
            else:
                tools.observe(self._session, 1)
            self._bits.append(tools.bits(self._session))
        return self._bits[rounds]


@pytest.mark.parametrize("cuts", CUTS)
def test_a_power_cut_at_any_write_loses_nothing_that_was_acknowledged(folder, cuts):
    with power.recorded() as log:
        _play(folder / "session", log)
    undisturbed, seen = _Undisturbed(), 0
    for marks in power.disks(log, folder / "disk", cuts):
        seen += 1
        with tools.told() as sentences, tools.session(folder / "disk" / "session", snapshot_every=5) as it:
            assert marks.get("acknowledged", 0) <= it.rounds <= marks.get("started", 0), marks
            assert len(it.history()) == it.rounds
            assert tools.bits(it) == undisturbed.after(it.rounds)
        assert not sentences
    assert seen > 0.7 * cuts


@functools.cache
def _problem():
    return cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: -r["v"] * x[0], request=True)


def _fleet(path, **options):
    return cx.Fleet(
        _problem(), cx.learners.DPP(), path, key=jax.random.key(0), horizon=999, snapshot_every=4, **options
    )


def _asked(number, count):
    return {"v": np.arange(count) + number / 7}


@pytest.mark.parametrize("cuts", [150, pytest.param(2_000, marks=pytest.mark.slow)])
def test_a_fleet_keeps_requests_and_rounds_through_power_cuts(folder, cuts):
    names, expected = ["a", "b", "c", "d"], [None]
    with power.recorded() as log:
        for first in (0, 5):
            with _fleet(folder / "fleet") as it:
                for number in range(first, first + 5):
                    some = names[: 1 + number % 4]
                    log.mark(asked=number)
                    it.decide(some, _asked(number, len(some)))
                    log.mark(decided=number + 1, started=number + 1)
                    it.observe(some)
                    log.mark(acknowledged=number + 1)
                    expected.append([it.summary(name) for name in it.names])
    for marks in power.disks(log, folder / "disk", cuts):
        with tools.told() as sentences, _fleet(folder / "disk" / "fleet") as it:
            said, done = [it.summary(name) for name in it.names], marks.get("acknowledged", 0)
            possible = expected[done : marks.get("started", 0) + 1]
            assert not done or said in possible or said[:-1] in possible, marks  # or one that has just begun
            if marks.get("decided", 0) > done and said == expected[done]:
                some = names[: 1 + done % 4]
                it.observe(some)  # the request is there
                assert [it.summary(name) for name in it.names] == expected[done + 1]
        assert not sentences


def test_a_disk_that_lies_about_syncs_is_noticed(folder):
    """The attack can succeed: without syncs, acknowledged rounds are lost, and the session says so or not at all."""
    with power.recorded() as log:
        _play(folder / "session", log)
    log[:] = [row for row in log if row[0] != "sync"]
    lost = 0
    for marks in power.disks(log, folder / "disk", 100):
        with tools.told():
            try:
                with tools.session(folder / "disk" / "session", snapshot_every=5) as it:
                    lost += it.rounds < marks.get("acknowledged", 0)
            except cx.SessionError:
                lost += 1
    assert lost > 10
