"""Sessions that decide after a request: the request is durable, and completes its round."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import session_tools as tools

import cocoax as cx
from cocoax.domains import ProbabilitySimplex
from cocoax.learners import AbstractLearner, Outcome

ARMS, ROUNDS = 3, 40
KEY = jax.random.key(0)
COST, USE = np.random.default_rng(0).uniform(0.1, 1.0, (2, ROUNDS, ARMS))


class Informed(AbstractLearner):
    """Plays the arm that is cheapest, where use has a price; the price rises with what was used."""

    def init(self, problem, *, key, horizon=None, start=None):
        return jnp.zeros((), float)

    def decision(self, state):
        return jnp.full(ARMS, 1 / ARMS, state.dtype)

    def decide(self, problem, state, request):
        return jax.nn.softmax(-9.0 * (request["cost"] + state * request.get("use", jnp.zeros(ARMS))))

    def observe(self, problem, state, round, *, played=None):
        loss, constraint = problem.values(self.decision(state) if played is None else played, round)
        none, finite = jnp.zeros((), int), jnp.isfinite(loss) & jnp.isfinite(constraint).all()
        return jnp.maximum(state + constraint[0], 0), Outcome(loss, constraint, state[None], none, none, finite)


def loss(x, r):
    return jnp.vdot(r["cost"], x)


def constraint(x, r):
    return jnp.vdot(r["use"], x) - 0.4


def problem(request):
    return cx.Problem(ProbabilitySimplex(ARMS), loss, constraint, request=request)


def session(path=None, request=("cost",), learner=None, **options):
    learner = Informed() if learner is None else learner
    return cx.Session(problem(request), learner, path, **{"key": KEY, "snapshot_every": 4, **options})


def request_of(number, request=("cost",)):
    fields = {"cost": COST[number % ROUNDS], "use": USE[number % ROUNDS]}
    return fields if request is True else {name: fields[name] for name in request}


def rest_of(number, request=("cost",)):
    """What is left to observe."""
    return None if request is True else {"use": USE[number % ROUNDS]}


def play(it, count, request=("cost",)):
    """The next rounds; every sixth is observed without being asked for, and some are played otherwise."""
    decisions = []
    for number in range(it.rounds, it.rounds + count):
        if number % 6 == 5:
            it.observe(request_of(number, True))
            continue
        decisions.append(it.decide(request_of(number, request)))
        it.observe(rest_of(number, request), np.eye(ARMS)[0] if number % 5 == 4 else None)
    return decisions


@pytest.mark.parametrize("request_", [True, ("cost",)], ids=["whole", "named"])
def test_a_session_plays_as_a_game_does(request_):
    it, rounds = session(request=request_), {"cost": jnp.asarray(COST), "use": jnp.asarray(USE)}
    decisions = []
    for number in range(ROUNDS):
        decisions.append(it.decide(request_of(number, request_)))
        it.observe(rest_of(number, request_))
    game = cx.play(problem(request_), Informed(), rounds, key=KEY, keep_decisions=True)
    np.testing.assert_allclose(decisions, game.decisions, rtol=1e-12)
    np.testing.assert_allclose(it.history()["loss"], game.loss, rtol=1e-12)
    np.testing.assert_allclose(it.history()["constraint_violation"], game.violation()[:, 0], rtol=1e-9)
    many = session(request=request_)
    many.observe_many(jax.tree.map(np.asarray, rounds))
    np.testing.assert_allclose(many.history()["loss"], game.loss, rtol=1e-12)
    assert it.game().decision is None and many.regret(np.eye(ARMS)[0]).shape == (ROUNDS,)


def test_an_open_request_gets_the_same_decision_again(tmp_path):
    it = session(tmp_path / "session")
    play(it, 3)
    first = it.decide(request_of(3))
    assert not np.array_equal(first, it._copies.decisions[0])
    first[:] = 0  # the caller's own copy
    same = it.decide({"cost": request_of(3)["cost"].tolist()})
    with pytest.raises(cx.SessionError, match=r"^the request before is not observed yet; observe its round, or skip"):
        it.decide(request_of(4))
    assert np.array_equal(it.decide(request_of(3)), same) and np.array_equal(it.request["cost"], COST[3])
    tools.copied(tmp_path, tmp_path.parent / "killed")
    with session(tmp_path.parent / "killed" / "session") as again:  # from the event
        assert np.array_equal(again.decide(request_of(3)), same)
    with session(tmp_path.parent / "killed" / "session") as again:  # from the snapshot
        assert np.array_equal(again.request["cost"], COST[3])
        outcome = again.observe(rest_of(3))
        np.testing.assert_allclose(outcome.loss, COST[3] @ same, rtol=1e-14)
        assert again.request is None
    it.skip()
    assert it.rounds == 3 and it.request is None and it.pending == ()
    assert not np.array_equal(it.decide(request_of(4)), same)
    it.close()


@pytest.mark.parametrize("request_", [True, ("cost",)], ids=["whole", "named"])
def test_a_kill_between_any_two_calls_changes_no_bit(tmp_path, request_):
    """Opened again after every event, from events and from snapshots."""
    whole = session(request=request_)
    play(whole, 20, request_)
    (tmp_path / "work").mkdir()
    it = session(tmp_path / "work" / "session", request_)
    for kill in range(27):
        number = it.rounds
        if number % 6 == 5 and it.request is None:
            it.observe(request_of(number, True))
        elif it.request is None:
            it.decide(request_of(number, request_))
        else:
            it.observe(rest_of(number, request_), np.eye(ARMS)[0] if number % 5 == 4 else None)
        path = tools.copied(tmp_path / "work", tmp_path / "copy")
        with tools.told() as sentences, session(path, request_) as again:
            assert tools.bits(again) == tools.bits(it)
        assert not sentences
        if kill % 9 == 8:
            it.close()
            it = session(tmp_path / "work" / "session", request_)
    play_on = 20 - it.rounds
    if it.request is not None:
        it.observe(rest_of(it.rounds, request_), np.eye(ARMS)[0] if it.rounds % 5 == 4 else None)
        play_on -= 1
    play(it, play_on, request_)
    assert tools.bits(it) == tools.bits(whole)
    it.close()


def test_flipped_bytes_are_noticed(tmp_path):
    """Refused, or a true earlier state with a warning; the last event is a request."""
    (tmp_path / "work").mkdir()
    truth, whole = {}, session()
    for number in range(11):
        truth[whole.rounds, whole.request is None] = tools.bits(whole)
        if number % 6 != 5:
            whole.decide(request_of(number))
            truth[whole.rounds, False] = tools.bits(whole)
            whole.observe(rest_of(number), np.eye(ARMS)[0] if number % 5 == 4 else None)
        else:
            whole.observe(request_of(number, True))
    it = session(tmp_path / "work" / "session")
    play(it, 10)
    it.decide(request_of(10))
    assert tools.bits(it) == truth[10, False]
    tools.copied(tmp_path / "work", tmp_path / "kept")
    it.close()
    opened, rng = 0, np.random.default_rng(0)
    for file in ("session", "session-wal"):
        data = (tmp_path / "kept" / file).read_bytes()
        for at in rng.choice(len(data), 60, replace=False):
            path = tools.copied(tmp_path / "kept", tmp_path / "copy")
            path.with_name(file).write_bytes(data[:at] + bytes([data[at] ^ int(rng.integers(1, 256))]) + data[at + 1 :])
            with tools.told() as sentences, contextlib.suppress(cx.SessionError), session(path) as again:
                opened += 1
                last = (again.rounds, again.request is None)
                assert tools.bits(again) == truth[last]
            assert opened == 0 or last == (10, False) or sentences
    assert opened > 0


MALFORMED = {
    "nothing": (None, "request must"),
    "another field": ({"price": COST[0]}, "request (must|lacks)"),
    "a field too many": ({"cost": COST[0], "use": USE[0]}, "request"),
    "another shape": ({"cost": COST[0][:2]}, r"request\['cost'\] must have the shape"),
    "nan": ({"cost": np.array([1.0, np.nan, 1.0])}, r"request\['cost'\] holds NaN .*: request\['cost'\]\[1\] is nan"),
    "text": ({"cost": "cheap"}, r"request\['cost'\] must be"),
    "an object": ({"cost": object()}, r"request\['cost'\] must be"),
    "a list": ([1.0, 2.0], "request"),
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("rounds", [0, 3])
def test_malformed_requests_change_nothing(rounds, name):
    it, (junk, sentence) = session(), MALFORMED[name]
    play(it, rounds)
    before = tools.bits(it)
    if name == "another shape" and rounds == 0:
        junk = {"cost": COST[0][:2], "more": 1.0}
        sentence = "request must"
    with pytest.raises(cx.SessionError, match=f"^{sentence}") as caught:
        it.decide(junk)
    assert "\n" not in str(caught.value) and tools.bits(it) == before and it.request is None
    it.decide(request_of(rounds))
    it.observe(rest_of(rounds))
    assert it.rounds == rounds + 1


def test_a_request_that_leads_nowhere_is_refused():
    it = session()
    with pytest.raises(cx.SessionError, match=r"^no decision can be taken for this request \(.*\); correct it"):
        it.decide({"cost": COST[0][:2]})
    it.decide(request_of(0))  # the failed request fixed no schema
    nowhere = cx.Session(problem(("cost",)), Nowhere(), key=KEY)
    with pytest.raises(cx.SessionError, match=r"^the decision for this request is not finite"):
        nowhere.decide(request_of(0))


class Nowhere(Informed):
    def decide(self, problem, state, request):
        return request["cost"] / state


def test_rounds_that_do_not_fit_their_request_are_refused():
    it = session()
    it.decide(request_of(0))
    before = tools.bits(it)
    for junk, sentence in [
        (request_of(1, True), "round has another request than decide had"),
        (5.0, "round must be a dict of fields"),
        ({"use": USE[0], "more": 1.0, "cost": COST[1]}, "round has another request"),
    ]:
        with pytest.raises(cx.SessionError, match=f"^{sentence}"):
            it.observe(junk)
        assert tools.bits(it) == before
    it.observe(request_of(0, True))  # the whole round, request and all
    whole = session(request=True)
    whole.decide(request_of(0, True))
    with pytest.raises(cx.SessionError, match=r"^round has another request than decide had"):
        whole.observe(request_of(1, True))
    whole.observe()
    assert whole.rounds == it.rounds == 1


def test_late_rounds_complete_their_own_requests(tmp_path):
    it = session(tmp_path / "session", pending=4, copies=1)
    decisions = {name: it.decide(request_of(i), ticket=name) for i, name in enumerate("abc")}
    assert it.pending == ("a", "b", "c")
    with pytest.raises(cx.SessionError, match=r"^the ticket 'a' was decided for another request"):
        it.decide(request_of(1), ticket="a")
    it.observe(rest_of(2), ticket="c")
    tools.copied(tmp_path, tmp_path.parent / "late")
    with session(tmp_path.parent / "late" / "session", pending=4, copies=1) as again:
        assert tools.bits(again) == tools.bits(it)
        assert np.array_equal(again.decide(ticket="b"), decisions["b"])
        np.testing.assert_allclose(again.observe(rest_of(0), ticket="a").loss, COST[0] @ decisions["a"], rtol=1e-14)
        again.skip("b")
        assert again.rounds == 2
    it.close()


def test_replay_decides_every_request_anew(tmp_path):
    with session(tmp_path / "old") as old:
        play(old, 12)
        old.decide(request_of(12))
    again = cx.Session.replay(tmp_path / "old", problem(("cost",)), Informed(), key=KEY)
    assert tools.bits(again) == tools.bits(old)
    other = cx.Session.replay(tmp_path / "old", problem(("cost",)), cx.learners.TrackedPI(), key=KEY)
    assert other.rounds == 12 and np.array_equal(other.request["cost"], COST[12])
    for changed in (False, True, ("use",)):
        with pytest.raises(cx.SessionError, match=r"request=\['cost'\]"):
            cx.Session.replay(tmp_path / "old", problem(changed), Informed(), key=KEY)
        with pytest.raises(cx.SessionError, match=r"request=\['cost'\]"):
            session(tmp_path / "old", changed)
    with session(tmp_path / "before", False) as before:
        for number in range(4):
            before.observe(request_of(number, True))
    assert cx.Session.replay(tmp_path / "before", problem(("cost",)), Informed(), key=KEY).rounds == 4


def test_problems_without_requests_take_none():
    it = session(request=False)
    with pytest.raises(cx.SessionError, match=r"^this problem has no requests; give Problem\(request="):
        it.decide(request_of(0))
    with pytest.raises(cx.SessionError, match=r"^tickets are for late feedback"):
        it.decide("a ticket")
