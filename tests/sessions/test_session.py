"""What a session does when all is well: it plays as `play` does, and remembers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import session_tools as tools

import cocoax as cx
from cocoax.sessions import step

NAMES = [tools.RANDOM, "Auto", "DPP"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session"


def _play(name, count, **options):
    planned = {} if name == "Auto" else {"horizon": tools.HORIZON}
    return cx.play(
        tools.problem(), tools.learner(name), tools.stacked(count), key=jax.random.key(7), **planned | options
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_session_decides_as_a_game_does(name):
    game = _play(name, 40, keep_decisions=True)
    session, decisions = tools.session(None, name), []
    for number in range(40):
        decisions.append(session.decide())
        session.observe(tools.a_round(number))
    if name == "Auto":  # XLA may round a product and a sum at once in a loop, and not in a single round
        np.testing.assert_allclose([*decisions, session.decide()], [*game.decisions, game.decision], rtol=0, atol=1e-13)
    else:
        assert np.array_equal(decisions, game.decisions)
        assert np.array_equal(session.decide(), game.decision)


def test_decide_is_idempotent_and_gives_away_nothing(path):
    with tools.session(path) as session:
        tools.observe(session, 3)
        before, decision = tools.bits(session), session.decide()
        assert type(decision) is np.ndarray
        decision[:] = 7
        assert np.array_equal(session.decide(), session.decide()) and session.decide().max() <= 1
        assert tools.bits(session) == before
        kept = session.decide()
    with tools.session(path) as session:
        assert np.array_equal(session.decide(), kept)


def test_a_round_may_be_observed_that_was_not_asked_for():
    asked, not_asked = tools.session(), tools.session()
    for number in range(5):
        asked.decide()
        asked.observe(tools.a_round(number))
        not_asked.observe(tools.a_round(number))
    tools.assert_same(asked, not_asked)


@pytest.mark.parametrize("name", NAMES)
def test_many_rounds_are_the_same_as_one_by_one(path, name):
    one_by_one = tools.session(None, name)
    outcomes = [one_by_one.observe(tools.a_round(i)) for i in range(12)]
    with tools.session(path, name, snapshot_every=4) as many:
        together = many.observe_many([tools.a_round(i) for i in range(5)])
        together += many.observe_many(jax.tree.map(lambda leaf: leaf[5:], tools.stacked(12)))
        with pytest.raises(cx.SessionError, match="at least one"):
            many.observe_many([])
        tools.assert_same(many, one_by_one)
        for mine, yours in zip(together, outcomes, strict=True):
            assert eqx.tree_equal(mine, yours)
    with tools.session(path, name) as again:
        tools.assert_same(again, one_by_one)


@pytest.mark.parametrize("kind", ["NumPy", "JAX", "Python", "reversed"])
def test_numbers_of_any_kind_are_the_same(kind):
    def given(round):
        if kind == "reversed":
            return dict(reversed(list(round.items())))
        return jax.tree.map(
            {"NumPy": np.asarray, "JAX": jnp.asarray, "Python": lambda leaf: leaf.tolist()}[kind], round
        )

    session, as_usual = tools.session(), tools.session()
    for number in range(6):
        as_usual.observe(tools.a_round(number))
        session.observe(given(tools.a_round(number)))
    tools.assert_same(session, as_usual)


def test_what_was_played_is_learnt_from():
    """As when the learner itself is told of it."""
    problem, learner = tools.problem(), tools.learner()
    session, played = tools.session(), np.array([0.1, 0.9, 0.3, 0.0])
    state, step = session.state, jax.jit(lambda *given: learner.observe(problem, *given[:2], played=given[2]))
    for number, given in enumerate([played, played.tolist(), jnp.asarray(played)]):
        session.observe(tools.a_round(number), given)
        state, outcome = step(state, tools.a_round(number), played)
    assert np.array_equal(session.decide(), learner.decision(state))
    assert session.history()["loss"][-1] == outcome.loss


@pytest.mark.parametrize("name", NAMES)
def test_history_is_the_table_of_the_game(path, name):
    game = _play(name, 30)
    with tools.session(path, name, snapshot_every=7) as session:
        assert len(session.history()) == 0
        session.observe_many(tools.stacked(30))
        with jax.no_tracing():  # every round makes it longer, and nothing is compiled for that
            history = session.history()
        table = game.table()
        assert len(history) == session.rounds == 30
        assert list(history.dtype.names) == list(table)
        for column in table:
            assert history[column].dtype.kind == table[column].dtype.kind
            assert np.array_equal(history[column], table[column]), column
        summary = session.summary()
    assert summary["rounds"] == 30 and summary["learner"] == tools.learner(name).known_as
    assert summary["loss"] == pytest.approx(table["loss"].sum(), rel=1e-14)
    assert summary["violation"] == pytest.approx({"constraint": table["constraint_violation"][-1]}, rel=1e-12)
    assert summary["hard_violation"] == pytest.approx({"constraint": table["constraint_hard_violation"][-1]}, rel=1e-12)
    assert summary["multiplier"] == {"constraint": table["constraint_multiplier"][-1]}
    assert summary["alarm"] is None and summary["pending"] == 0 and summary["path"] == str(path)


def test_regret_is_that_of_the_game():
    rounds, game = tools.stacked(30), _play(tools.RANDOM, 30, keep_rounds=True)
    best = cx.hindsight(tools.problem(), rounds)
    session = tools.session()
    with pytest.raises(cx.SessionError, match="no round was observed"):
        session.regret()
    session.observe_many(rounds)
    assert np.array_equal(session.regret(), game.regret(best))
    assert np.array_equal(session.regret(best), game.regret(best))
    assert np.array_equal(session.regret([0.5] * 4), game.regret([0.5] * 4))


@pytest.mark.parametrize("name", NAMES)
def test_a_session_goes_on_from_a_game(path, name):
    game, whole = _play(name, 20), _play(name, 35)
    for _ in range(2):  # begun, and opened again
        with tools.session(path, name, state=game.state) as session:
            if not session.rounds:
                session.observe_many([tools.a_round(i) for i in range(20, 35)])
            assert session.rounds == 15
            assert np.array_equal(session.decide(), whole.decision)


def test_a_game_goes_on_from_a_session():
    session, whole = tools.session(), _play(tools.RANDOM, 35)
    session.observe_many([tools.a_round(i) for i in range(20)])
    rest = jax.tree.map(lambda leaf: leaf[20:], tools.stacked(35))
    game = cx.play(tools.problem(), tools.learner(), rest, state=session.state)
    assert np.array_equal(game.decision, whole.decision)


def test_a_horizon_ends(path):
    with pytest.raises(cx.LearnerError, match="horizon="):
        cx.Session(tools.problem(), tools.learner(), key=jax.random.key(0))
    for _ in range(2):
        with tools.session(path, horizon=4) as session:
            for number in range(session.rounds, 4):
                session.observe(tools.a_round(number))
            before = tools.bits(session)
            with pytest.raises(cx.SessionError, match="no more rounds"):
                session.observe(tools.a_round(4))
            assert tools.bits(session) == before and session.rounds == 4


def test_a_session_compiles_when_it_opens_and_not_in_its_first_round(path):
    problem = cx.Problem(cx.domains.Box([0.0] * 3, [1.0] * 3), lambda x, r: r["a"] @ x - 0.125 * x[1])
    compiled = []

    def count(event, *_, **__):
        compiled.append(event)

    def observe(it, a):
        compiled.clear()
        it.observe({"a": a})
        return [event for event in compiled if "backend_compile" in event]

    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        with cx.Session(problem, cx.learners.DPP(), path, key=jax.random.key(0), horizon=9) as it:
            it.compile({"a": [1, 2, 3]})
            assert it.rounds == 0 and any("backend_compile" in event for event in compiled)
            assert not observe(it, [1, 2, 3])
        jax.clear_caches()
        step.compiled_step.cache_clear()
        with cx.Session(problem, cx.learners.DPP(), path, horizon=9) as it:
            assert not observe(it, [0.5, 1, 2])
    finally:
        jax.monitoring.unregister_event_duration_listener(count)
