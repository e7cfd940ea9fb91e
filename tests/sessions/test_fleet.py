"""A fleet is many sessions in one file: the same bits, and nothing acknowledged is lost."""

import multiprocessing
import os
import shutil
import signal
import sqlite3

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import session_tools as tools

import cocoax as cx
from cocoax.sessions.durable import DurableState

NAMES = [f"campaign {i}" for i in range(5)]


def fleet(path=None, name="DPP", **options):
    planned = {"snapshot_every": 4} | ({} if name == "Auto" else {"horizon": tools.HORIZON})
    return cx.Fleet(tools.problem(), tools.learner(name), path, key=jax.random.key(3), **planned | options)


def rounds(start, count=5):
    return jax.tree.map(lambda leaf: np.take(leaf, range(start, start + count), axis=0, mode="wrap"), tools.cycle())


def routing():
    def loss(x, r):
        return -jnp.vdot(r["value"], x)

    def constraint(x, r):
        return jnp.vdot(r["cost"], x) - 0.3

    return cx.Problem(cx.domains.ProbabilitySimplex(3), loss, constraint, request=("value",))


def expected(request):
    return {**request, "cost": jnp.full(3, 0.5)}


def asked(number):
    draw = np.random.default_rng(number)
    return {"value": draw.random((5, 3))}, {"cost": draw.random((5, 3))}


def bits(it, names=NAMES):
    return [it.decide(names).tobytes(), *(it.history(name).tobytes() for name in names)]


@pytest.mark.parametrize("name", ["DPP", tools.RANDOM, pytest.param("Auto", marks=pytest.mark.slow)])
def test_campaigns_are_sessions_to_the_bit(name):
    with fleet(name=name) as it:
        for number in range(4):
            it.observe(NAMES[: 5 - number], rounds(5 * number, 5 - number))
        for place, one in enumerate(NAMES):
            planned = {} if name == "Auto" else {"horizon": tools.HORIZON}
            with cx.Session(tools.problem(), tools.learner(name), key=it.key(one), **planned) as alone:
                for number in range(5 - max(place, 1)):
                    alone.observe({key: column[place] for key, column in rounds(5 * number).items()})
                assert it.decide([one])[0].tobytes() == alone.decide().tobytes()
                assert it.history(one).tobytes() == alone.history().tobytes()
                mine, theirs = it.summary(one), alone.summary()
                assert mine.items() >= {key: theirs[key] for key in mine.keys() & theirs.keys()}.items()


def test_requests_are_answered_as_sessions_do():
    problem, learner = routing(), cx.learners.AutoPrice(predict=expected)
    with cx.Fleet(problem, learner, key=jax.random.key(3)) as it:
        sessions = [cx.Session(problem, learner, key=it.key(name)) for name in NAMES]
        for number in range(4):
            request, rest = asked(number)
            decisions = it.decide(NAMES, request)
            assert np.array_equal(it.decide(NAMES, request), decisions)
            outcome = it.observe(NAMES, rest)
            for i, session in enumerate(sessions):
                alone = session.decide({"value": request["value"][i]})
                assert decisions[i].tobytes() == alone.tobytes()
                assert session.observe({"cost": rest["cost"][i]}).loss == np.asarray(outcome.loss)[i]


def test_open_requests_are_kept_and_others_wait(tmp_path):
    problem, learner = routing(), cx.learners.AutoPrice(predict=expected)
    request, rest = asked(0)
    with cx.Fleet(problem, learner, tmp_path / "fleet", key=jax.random.key(3)) as it:
        decisions = it.decide(NAMES, request)
        with pytest.raises(cx.SessionError, match="'campaign 0' is not observed yet"):
            it.decide(NAMES, asked(1)[0])
    with cx.Fleet(problem, learner, tmp_path / "fleet") as it:
        assert np.array_equal(it.decide(NAMES, request), decisions)
        it.skip(NAMES[:2])
        with pytest.raises(cx.SessionError, match="'campaign 0' has no open request"):
            it.observe(NAMES, rest)
        it.observe(NAMES[2:], {"cost": rest["cost"][2:]})
        assert it.rounds(NAMES).tolist() == [0, 0, 1, 1, 1]


def test_a_first_request_after_a_snapshot_is_kept(tmp_path, monkeypatch):
    problem, learner = routing(), cx.learners.AutoPrice(predict=expected)
    request, _ = asked(0)
    take = DurableState._try_snapshot
    when_begun = iter([take])
    monkeypatch.setattr(DurableState, "_try_snapshot", lambda it: next(when_begun, lambda _: None)(it))
    it = cx.Fleet(problem, learner, tmp_path / "fleet", key=jax.random.key(3), snapshot_every=1)
    decisions = it.decide(NAMES, request)
    copy = shutil.copytree(tmp_path, tmp_path.parent / "as killed")
    assert next(when_begun, None) is None
    with cx.Fleet(problem, learner, copy / "fleet") as again:
        assert np.array_equal(again.decide(NAMES, request), decisions)


def test_it_goes_on_where_it_was(tmp_path):
    path = tmp_path / "fleet"
    with fleet() as whole:
        for number in range(8):
            whole.observe(NAMES, rounds(number))
        expected = bits(whole)
    for number in range(8):
        it = fleet(path, snapshot_every=3)
        it.observe(NAMES, rounds(number))
        copy = tmp_path / f"copy {number}"
        copy.mkdir()
        for file in tmp_path.glob("fleet*"):  # as a kill leaves it
            shutil.copy(file, copy)
        with fleet(copy / "fleet") as again:
            assert bits(again) == bits(it)
        it.close()
    with fleet(path) as it:
        assert bits(it) == expected


def test_a_call_can_be_repeated(tmp_path):
    with fleet(tmp_path / "fleet") as it:
        it.decide(NAMES)
        first = it.observe(NAMES, rounds(0), at=[0] * 5)
        again = it.observe(NAMES, rounds(0), at=[0] * 5)
        assert it.rounds(NAMES).tolist() == [1] * 5 and np.array_equal(first.loss, again.loss)
        it.observe(NAMES[:2], rounds(5, 2), at=1)
        it.observe(NAMES, rounds(5), at=1)
        assert it.rounds(NAMES).tolist() == [2] * 5
        with pytest.raises(cx.SessionError, match="'campaign 0' has 2 rounds; at= must be"):
            it.observe(NAMES, rounds(0), at=0)


def test_campaigns_end_and_begin_anew(tmp_path):
    with fleet(tmp_path / "fleet", snapshot_every=2) as it:
        it.observe(NAMES, rounds(0))
        begun = it.history(NAMES[1])
        it.end(NAMES[:2])
        assert len(it) == 3 and NAMES[0] not in it
        with pytest.raises(cx.SessionError, match="there is no campaign 'campaign 0'"):
            it.rounds(NAMES)
        it.observe(["other", NAMES[1]], rounds(0, 2))
        expected = it.names, it.decide(it.names).tobytes()
    with fleet(tmp_path / "fleet") as it:
        assert (it.names, it.decide(it.names).tobytes()) == expected
        it.observe([NAMES[1]], rounds(9, 1))
        assert len(it.history(NAMES[1])) == 2 and len(begun) == 1
        assert it.regret(NAMES[1]).shape == (2,)


def test_bad_calls_change_nothing(tmp_path):
    with fleet(tmp_path / "fleet") as it:
        it.observe(NAMES, rounds(0))
        before = bits(it)
        bad = {name: column.copy() for name, column in rounds(0).items()}
        bad[next(iter(bad))][3] = np.nan
        for call, sentence in (
            (lambda: it.observe(NAMES, bad), "NaN"),
            (lambda: it.observe(NAMES, rounds(0, 4)), "shape"),
            (lambda: it.observe(NAMES[:2] * 2, rounds(0, 4)), "comes twice"),
            (lambda: it.observe([], {}), "1 to"),
            (lambda: it.observe("campaign 0", rounds(0)), "a list of names"),
            (lambda: it.observe([7], rounds(0, 1)), "the name of a campaign is a string of 1 to 200 printable"),
            (lambda: it.observe(NAMES, {}), "lacks the field"),
            (lambda: it.observe(NAMES), "must be a dict"),
            (lambda: it.decide(NAMES, rounds(0)), "this problem has no requests; leave out"),
            (lambda: it.decide(None), "names must be a list of names, got None"),
            (lambda: it.skip(NAMES), "open request"),
            (lambda: it.observe(["new"], rounds(0)), "one entry for each of the 1 names"),
            (lambda: it.observe(["new"], {key: column[0] for key, column in rounds(0, 1).items()}), "of the 1 names"),
            (lambda: it.observe(["new"], rounds(0, 1), at=1), "has 0 rounds"),
            (lambda: it.observe(["new"], rounds(0, 1), at=-1), "a whole number >= 0"),
            (lambda: it.observe(NAMES, rounds(0), at=1.9), "a whole number >= 0"),
        ):
            with pytest.raises(cx.SessionError, match=sentence) as error:
                call()
            assert "\n" not in str(error.value)
        assert bits(it) == before and it.names == tuple(NAMES)
    with pytest.raises(cx.SessionError, match="the session is closed"):
        it.decide(NAMES)
    with pytest.raises(cx.SessionError, match="fleet=True"):
        tools.session(tmp_path / "fleet", "DPP")


def test_a_loss_that_is_not_finite_names_its_campaign():
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: jnp.log(r["a"]) * x[0])
    with cx.Fleet(problem, cx.learners.DPP(), key=jax.random.key(0), horizon=10) as it:
        it.observe(["a", "b"], {"a": np.ones(2)})
        with pytest.raises(cx.SessionError, match="'b' is not finite"):
            it.observe(["a", "b"], {"a": np.array([1.0, -1.0])})
        with pytest.raises(cx.SessionError, match="'c' is not finite"):
            it.observe(["c"], {"a": np.array([-1.0])})
        assert it.rounds(["a", "b"]).tolist() == [1, 1] and it.names == ("a", "b")


def test_a_refused_first_request_begins_no_campaign_and_fixes_no_schema(tmp_path):
    def opened():
        learner = cx.learners.DualMirrorDescent(0.1, predict=expected)
        return cx.Fleet(problem, learner, tmp_path / "fleet", key=jax.random.key(0), pending=2)

    problem, request = routing(), {"value": np.ones((1, 3))}
    with opened() as it:
        for call, sentence in (
            (lambda: it.decide(["a"]), "this problem has requests; give requests="),
            (lambda: it.decide(["a"], {"value": np.ones((1, 7))}), "loss fails where"),
            (lambda: it.decide(["a"], request, tickets=["5"]), "the next number of 'a' is 0"),
            (lambda: it.decide(["a"] * 3, {"value": np.ones((3, 3))}), "2 rounds of 'a' are pending"),
        ):
            with pytest.raises(cx.errors.CocoaxError, match=sentence):
                call()
            assert it.names == () and it.summary()["pending"] == 0
    with opened() as it:
        assert it.names == () and it.decide(["a"], request)[1] == ["0"]
    with opened() as it:
        assert it.pending("a") == ("0",)


def test_a_pole_at_the_decision_and_a_plan_that_is_over_are_not_blamed_on_the_round():
    domain = cx.domains.Box(jnp.zeros(1), jnp.ones(1))
    problem = cx.Problem(domain, lambda x, r: r["a"] * jnp.log(x[0] - 0.25))
    with cx.Fleet(problem, cx.learners.DPP(), key=jax.random.key(0), horizon=1) as it:
        with pytest.raises(cx.SessionError, match="'a' is not finite: the loss is not finite at the decision itself"):
            it.observe(["a"], {"a": [1]}, played=[[0.25]])
        it.observe(["a"], {"a": [1]})
        with pytest.raises(cx.SessionError, match="'a' is not finite: it has no rounds left"):
            it.observe(["a"], {"a": [1]})


def test_whole_numbers_in_a_first_round_are_floats():
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: r["a"] * x[0])
    with cx.Fleet(problem, cx.learners.DPP(), key=jax.random.key(0), horizon=10) as it:
        it.observe(["a", "b"], {"a": [1, 2]})
        it.observe(["a", "b"], {"a": [0.5, 1.5]})
        assert it.schema == {"dict": {"a": {"dtype": "float64", "shape": []}}}


def test_a_request_that_is_skipped_stays_reserved_as_in_a_session(tmp_path):
    problem = cx.Problem(
        cx.domains.ProbabilitySimplex(2), lambda x, r: -r["v"] * x[1], lambda x, r: r["c"] * x[1] - 0.1, request=True
    )
    learner = cx.learners.Budgeted(
        cx.learners.AutoPrice(), spend=lambda x, r: r["c"] * x[1], budget=1.0, safe=[1.0, 0.0]
    )
    with cx.Fleet(problem, learner, tmp_path / "fleet", key=jax.random.key(0)) as it:
        alone = cx.Session(problem, learner, key=it.key("a"))
        for _ in range(4):
            mine = it.decide(["a"], {"v": [1], "c": [0.4]})[0]
            assert mine.tobytes() == alone.decide({"v": 1.0, "c": 0.4}).tobytes()
            it.skip(["a"])
            alone.skip()
        assert mine[1] < 1e-12  # the budget may have been spent
        copy = shutil.copytree(tmp_path, tmp_path.parent / "as killed 2")
    with cx.Fleet(problem, learner, copy / "fleet") as again:
        assert again.decide(["a"], {"v": [1], "c": [0.4]})[0, 1] < 1e-12


def test_damage_is_noticed(tmp_path):
    with fleet(tmp_path / "fleet", snapshot_every=1000) as it:
        for number in range(3):
            it.observe(NAMES, rounds(number))
    with sqlite3.connect(tmp_path / "fleet") as database:
        database.execute("UPDATE events SET outcome = zeroblob(length(outcome)) WHERE number = 3")
    database.close()
    with fleet(tmp_path / "fleet") as it, pytest.raises(cx.SessionError, match="is damaged at event 3"):
        it.history(NAMES[0])


def _offers(path=None):
    """Decides after a request."""
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: (r["v"] - x[0]) ** 2, request=True)
    return cx.Fleet(problem, tools.learner("DPP"), path, key=jax.random.key(3), horizon=tools.HORIZON, snapshot_every=4)


def _late(path=None):
    """With tickets that wait, at any time."""
    return fleet(path, pending=3, copies=2, snapshot_every=4)


def _calls(it):
    """How many calls `_turn` has made."""
    rounds = int(it.rounds(NAMES)[0]) if NAMES[0] in it else 0
    return 2 * rounds + len(it.pending(NAMES[0])) if it.is_late and NAMES[0] in it else rounds


def _turn(it, kind):
    number = int(it.rounds(NAMES)[0]) if NAMES[0] in it else 0
    if kind is _offers:
        it.decide(NAMES, {"v": np.arange(5) / (1.0 + number)})
        it.observe(NAMES)
    elif kind is fleet:
        it.observe(NAMES, rounds(number))
    elif NAMES[0] not in it or len(it.pending(NAMES[0])) < 2 + number % 2:
        it.decide(NAMES)
    else:
        it.observe(NAMES, rounds(number), tickets=[it.pending(name)[number % 2] for name in NAMES])


def _serve(path, acknowledged, kind):
    jax.config.update("jax_enable_x64", True)
    with kind(path) as it, open(acknowledged, "ab", buffering=0) as file:
        while True:
            _turn(it, kind)
            os.write(file.fileno(), b"x")


@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [fleet, _offers, _late])
def test_killed_at_any_moment(tmp_path, kind, kills):
    path, acknowledged = tmp_path / "fleet", tmp_path / "acknowledged"
    context = multiprocessing.get_context("spawn")
    for kill in range(kills):
        before = acknowledged.stat().st_size if acknowledged.exists() else 0
        process = context.Process(target=_serve, args=(path, acknowledged, kind))
        process.start()
        while process.is_alive() and (not acknowledged.exists() or acknowledged.stat().st_size < before + 3 + kill % 5):
            process.join(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with kind(path) as it:
            assert 0 <= _calls(it) - acknowledged.stat().st_size <= kill + 1
    with kind(path) as it, kind() as alone:
        while _calls(alone) < _calls(it):
            _turn(alone, kind)
        assert [it.history(name).tobytes() for name in NAMES] == [alone.history(name).tobytes() for name in NAMES]
        assert kind is not fleet or bits(it) == bits(alone)
        if kind is _late:
            waiting = [(name, ticket) for name in NAMES for ticket in it.pending(name)]
            assert waiting == [(name, ticket) for name in NAMES for ticket in alone.pending(name)] and waiting
            names, tickets = zip(*waiting)
            assert it.decide(names, tickets=tickets)[0].tobytes() == alone.decide(names, tickets=tickets)[0].tobytes()
