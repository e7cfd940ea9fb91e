"""Late feedback in fleets: several rounds of a campaign wait, come in any order, and count once; as in sessions."""

import functools
import itertools
import shutil

import jax
import numpy as np
import pytest
import session_tools as tools

import cocoax as cx

NAMES = ["a", "b", "c"]


def _spend(x, r):
    return r["c"] * x[1]


@functools.cache
def _offers():
    """Decides after a request."""
    return cx.Problem(
        cx.domains.ProbabilitySimplex(2),
        lambda x, r: -r["v"] * x[1],
        lambda x, r: r["c"] * x[1] - 0.1,
        request=("v", "c"),
    )


@functools.cache
def _budgeted():
    return cx.learners.Budgeted(cx.learners.DualMirrorDescent(0.1), spend=_spend, budget=1.5, safe=[1.0, 0.0])


KINDS = {  # problem, learner, options
    "copies": lambda: (tools.problem(), tools.learner(tools.RANDOM), {"pending": 3, "horizon": tools.HORIZON}),
    "one copy": lambda: (tools.problem(), tools.learner("DPP"), {"pending": 3, "copies": 1, "horizon": tools.HORIZON}),
    "two copies": lambda: (
        tools.problem(),
        tools.learner("DPP"),
        {"pending": 4, "copies": 2, "expires": 5, "horizon": tools.HORIZON},
    ),
    "requests": lambda: (_offers(), cx.learners.DualMirrorDescent(0.1), {"pending": 2}),
    "reserved": lambda: (_offers(), _budgeted(), {"pending": 3, "expires": 6}),
}


def fleet(kind, path=None, **more):
    problem, learner, options = KINDS[kind]()
    return cx.Fleet(problem, learner, path, key=jax.random.key(5), **options | more)


def a_request(number):
    draw = np.random.default_rng(number)
    return {"v": float(draw.random()), "c": float(draw.random())}


def stacked(parts):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *parts)


class Alone:
    """The same campaigns as sessions of their own."""

    def __init__(self, kind, it):
        problem, learner, options = KINDS[kind]()
        self.asks = problem.has_requests
        self.sessions = {name: cx.Session(problem, learner, key=it.key(name), **options) for name in NAMES}

    def decide(self, name, request):
        session = self.sessions[name]
        decision = session.decide(request)
        return decision, session.pending[-1]

    def observe(self, name, round, ticket, played=None):
        return self.sessions[name].observe(None if self.asks else round, played, ticket=ticket)


def _equal(mine, theirs):
    pairs = zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True)
    return all(np.asarray(a, float).tobytes() == np.asarray(b, float).tobytes() for a, b in pairs)


def turns(it, alone, count, seed=0):
    """Random calls of a fleet, each compared with the same calls of sessions; yields after each."""
    draw, numbers = np.random.default_rng(seed), itertools.count()
    for _ in range(count):
        waiting = [(name, ticket) for name in NAMES for ticket in alone.sessions[name].pending]
        kind = draw.choice(["decide", "observe", "skip"], p=[0.5, 0.4, 0.1])
        if kind == "decide":
            room = [n for n in NAMES for _ in range(it._campaigns.pending - len(alone.sessions[n].pending))]
            names = [str(name) for name in draw.permutation(room)[: draw.integers(1, 5)]]
            if not names:
                continue
            requests = [a_request(next(numbers)) for _ in names] if alone.asks else [None] * len(names)
            decisions, tickets = it.decide(names, stacked(requests) if alone.asks else None)
            for i, (name, request) in enumerate(zip(names, requests)):
                decision, ticket = alone.decide(name, request)
                assert ticket == tickets[i] and decision.tobytes() == decisions[i].tobytes()
        elif waiting:
            chosen = [waiting[i] for i in draw.permutation(len(waiting))[: draw.integers(1, 4)]]
            names, tickets = zip(*chosen)
            if kind == "skip":
                it.skip(names, tickets=tickets)
                for name, ticket in chosen:
                    alone.sessions[name].skip(ticket)
            else:
                rounds = [tools.a_round(next(numbers)) for _ in chosen]
                played = np.full((len(chosen), 4), 0.25) if draw.random() < 0.3 and not alone.asks else None
                outcome = it.observe(names, None if alone.asks else stacked(rounds), played, tickets=tickets)
                for i, (name, ticket) in enumerate(chosen):
                    theirs = alone.observe(name, rounds[i], ticket, None if played is None else played[i])
                    assert _equal(jax.tree.map(lambda leaf, i=i: leaf[i], outcome), theirs)
        yield


def assert_same(it, alone):
    for name, session in alone.sessions.items():
        if name in it:
            assert it.pending(name) == session.pending
            mine, theirs = it.summary(name), session.summary()
            assert mine.items() >= {key: theirs[key] for key in mine.keys() & theirs.keys()}.items()
            assert it.history(name).tobytes() == session.history().tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_late_rounds_are_those_of_sessions_to_the_bit_after_any_kill(tmp_path, kind):
    files, copy = tmp_path / "files", tmp_path / "copy"
    files.mkdir()
    with fleet(kind, files / "fleet", snapshot_every=5) as it:
        alone = Alone(kind, it)
        for number, _ in enumerate(turns(it, alone, 30)):
            if number % 6 == 5:  # as a kill leaves it
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(files, copy)
                with fleet(kind, copy / "fleet") as again:
                    assert_same(again, alone)
        assert_same(it, alone)
    with fleet(kind, files / "fleet", snapshot_every=7) as it:
        for _ in turns(it, alone, 8, seed=1):
            pass
        assert_same(it, alone)


def test_a_ticket_counts_once_however_often_it_is_sent(tmp_path):
    with fleet("copies", tmp_path / "fleet") as it:
        first, tickets = it.decide(["a", "a", "b"], tickets=["x", "y", "x"])
        again, same = it.decide(["b", "a"], tickets=["x", "y"])
        assert tickets == ["x", "y", "x"] and same == ["x", "y"]
        assert np.array_equal(again, first[[2, 1]]) and it.pending("a") == ("x", "y")
        rounds = stacked([tools.a_round(i) for i in range(2)])
        outcome = it.observe(["a", "a"], rounds, tickets=["y", "y"])  # twice in one call
        losses = np.asarray(outcome.loss)
        assert losses[0] == losses[1] and it.rounds(["a"]) == 1
    with fleet("copies", tmp_path / "fleet") as it:
        repeated = it.observe(["a", "b"], rounds, tickets=["y", "x"])
        assert np.asarray(repeated.loss)[0] == losses[0] and it.rounds(["a", "b"]).tolist() == [1, 1]
        it.skip(["a"], tickets=["x"])
        before = it.summary("a")
        one = stacked([tools.a_round(3)])
        for call, sentence in (
            (lambda: it.observe(["a"], one, tickets=["x"]), "'x' of 'a' was skipped, or has expired"),
            (lambda: it.skip(["a"], tickets=["y"]), "'y' of 'a' counts already, once"),
            (lambda: it.decide(["a"], tickets=["y"]), "'y' of 'a' counts already, once"),
            (lambda: it.decide(["a"], tickets=["7"]), "the next number of 'a' is 2, got the ticket '7'"),
            (lambda: it.decide(["a"], tickets=["1"]), "'1' of 'a' is over"),
            (lambda: it.observe(["a"], one, tickets=["z"]), "'z' of 'a' was never given"),
            (lambda: it.decide(["a"] * 4), "3 rounds of 'a' are pending already"),
        ):
            with pytest.raises(cx.errors.ConflictError, match=sentence):
                call()
        assert it.summary("a") == before
        assert it.decide(["a"], tickets=["2"])[1] == ["2"] == it.decide(["a"], tickets=["2"])[1]


def test_calls_that_cannot_be_are_refused_in_a_sentence():
    with fleet("copies") as it, fleet("copies", pending=0) as at_once:
        it.decide(["a"])
        one = stacked([tools.a_round(0)])
        for call, sentence in (
            (lambda: it.observe(["a"], one), "late feedback; give tickets, one for each name"),
            (lambda: it.observe(["a"], one, tickets="0"), "tickets must be a list"),
            (lambda: it.observe(["a"], one, tickets=["0", "1"]), "one for each of the 1 names"),
            (lambda: it.observe(["a"], one, tickets=["0"], at=0), "with pending=, tickets="),
            (lambda: it.observe(["new"], one, tickets=["0"]), "there is no campaign 'new'"),
            (lambda: it.decide(["a"], tickets=["x" * 41]), "at most 40 bytes"),
            (lambda: it.decide(["a"], tickets=["\n"]), "printable"),
            (lambda: it.end(["a", "a"]), "comes twice"),
            (lambda: at_once.decide(["a"], tickets=["x"]), "begin the fleet with pending="),
            (lambda: at_once.pending("a"), "begin the fleet with pending="),
        ):
            with pytest.raises(cx.SessionError, match=sentence):
                call()
        assert it.pending("a") == ("0",) and it.names == ("a",) and it.rounds(["a"]) == 0
    for options, sentence in (({"copies": 4}, "more than pending"), ({"pending": 0, "expires": 2}, "give pending=")):
        with pytest.raises(cx.SessionError, match=sentence):
            fleet("copies", **options)


def test_a_campaign_that_begins_anew_has_no_old_tickets(tmp_path):
    with fleet("copies", tmp_path / "fleet") as it:
        it.decide(["a", "a", "b"])
        it.end(["a"])
        it.decide(["a"])
        assert it.pending("a") == ("0",) and it.pending("b") == ("0",)
    with fleet("copies", tmp_path / "fleet") as it:
        assert it.pending("a") == ("0",) and it.summary()["pending"] == 2


@pytest.mark.parametrize("kind", ["two copies", "reserved"])
def test_tickets_go_to_another_machine(tmp_path, kind):
    problem, learner, _ = KINDS[kind]()
    with fleet(kind, tmp_path / "fleet") as it:
        alone = Alone(kind, it)
        for _ in turns(it, alone, 12):
            pass
        it.export(tmp_path / "state")
        assert any(it.pending(name) for name in it.names)
        totals = [it.summary(name) for name in it.names]
    with cx.Fleet.import_(tmp_path / "state", problem, learner, tmp_path / "new") as it:
        assert [it.summary(name) for name in it.names] == totals
        for name in it.names:
            assert it.pending(name) == alone.sessions[name].pending
        for _ in turns(it, alone, 8, seed=2):
            pass
