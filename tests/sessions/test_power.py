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
    names, expected = ["a", "b", "c", "d"], [[]]
    with power.recorded() as log:
        for first in (0, 5):
            with _fleet(folder / "fleet") as it:
                for number in range(first, first + 5):
                    some = names[: 1 + number % 4]
                    log.mark(asked=number + 1)
                    it.decide(some, _asked(number, len(some)))
                    log.mark(decided=number + 1, started=number + 1)
                    it.observe(some)
                    log.mark(acknowledged=number + 1)
                    expected.append([it.summary(name) for name in it.names])
    before = 0
    for marks in power.disks(log, folder / "disk", cuts):
        with tools.told() as sentences, _fleet(folder / "disk" / "fleet") as it:
            said, done = [it.summary(name) for name in it.names], marks.get("acknowledged", 0)
            begun = [one for one in said if one["rounds"]]  # others have just begun
            before += not done
            assert begun in expected[done : marks.get("started", 0) + 1], marks
            assert len(said) == len(begun) or (len(said) == len(begun) + 1 and marks.get("asked", 0) > done), marks
            if marks.get("decided", 0) > done and begun == expected[done]:
                some = names[: 1 + done % 4]
                it.observe(some)  # the request is there
                assert [it.summary(name) for name in it.names] == expected[done + 1]
        assert not sentences
    assert before > cuts / 50


def _late(path):
    return _fleet(path, pending=3, expires=7)


@pytest.mark.parametrize("cuts", [150, pytest.param(2_000, marks=pytest.mark.slow)])
def test_a_fleet_keeps_tickets_that_wait_through_power_cuts(folder, cuts):
    """Each ticket that was given has its decision, each that was observed counts once, whatever was under way."""

    def state(it):
        return [(name, it.summary(name), it.pending(name)) for name in it.names]

    draw, after, decisions = np.random.default_rng(0), [[]], {}
    with power.recorded() as log:
        for part in range(2):
            with _late(folder / "fleet") as it:
                if not part:
                    log.mark(begins=True)
                    it.begin(["a", "b"])
                    after.append(state(it))
                    log.mark(done=1)
                for _ in range(12):
                    log.mark(started=len(after))
                    waiting = [(name, ticket) for name in ("a", "b") for ticket in it.pending(name)]
                    if len(waiting) < 4:
                        names = ["a", "b", "a"][: 3 - len(waiting) // 2]
                        names = [name for name in names if len(it.pending(name)) < 2]
                        asked = _asked(len(after), len(names))
                        points, tickets = it.decide(names, asked)
                        for place, pair in enumerate(zip(names, tickets)):
                            decisions[pair] = asked["v"][place], points[place].tobytes()
                    else:
                        some = [waiting[i] for i in draw.permutation(len(waiting))[:2]]
                        it.observe([name for name, _ in some], tickets=[ticket for _, ticket in some])
                    after.append(state(it))
                    log.mark(done=len(after) - 1)
    early = 0
    for marks in power.disks(log, folder / "disk", cuts):
        with tools.told() as sentences, _late(folder / "disk" / "fleet") as it:
            done, said = marks.get("done", 0), state(it)
            early += not done
            last = max(marks.get("started", 0), int("begins" in marks))
            assert said in after[done : last + 1], marks
            for name, _, tickets in said:
                for ticket in tickets:
                    request, point = decisions[name, ticket]
                    assert it.decide([name], {"v": np.array([request])}, tickets=[ticket])[0].tobytes() == point
                    it.observe([name], tickets=[ticket])
                    assert ticket not in it.pending(name)
                rounds = it.rounds([name])
                if tickets:
                    it.observe([name], tickets=[tickets[0]])  # again: counts once
                assert it.rounds([name]) == rounds
        assert not sentences
    assert early > cuts / 50


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
