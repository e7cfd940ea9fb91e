"""Sessions where movement counts: what was played last is a part of their state, on disk too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import session_tools as tools

import cocoax as cx
from cocoax.domains import ProbabilitySimplex

KEY = jax.random.key(0)
COSTS = np.random.default_rng(0).uniform(0, 1, (20, 3))
ELSEWHERE = np.array([0.0, 0.0, 1.0])


def fee(x, r, previous):
    return jnp.vdot(r, x) + 0.1 * jnp.linalg.norm(x - previous)


def turnover(x, r, previous):
    return 0.5 * jnp.abs(x - previous).sum() - 0.1


def session(path=None, learner=None, **options):
    problem = cx.Problem(ProbabilitySimplex(3), fee, turnover)
    learner = cx.learners.Auto() if learner is None else learner
    return cx.Session(problem, learner, path, **{"key": KEY, "snapshot_every": 4, **options})


def observe(session, count):
    """The next rounds, some with a decision of one's own; returns what was played and the outcomes."""
    path, outcomes = [], []
    for number in range(session.rounds, session.rounds + count):
        played = ELSEWHERE if number % 5 == 3 else None
        path.append(session.decide() if played is None else played)
        outcomes.append(session.observe(COSTS[number], played))
    return np.array(path), outcomes


def by_hand(path, before, costs):
    steps = np.diff(np.concatenate([before[None], path]), axis=0)
    losses = (costs * path).sum(1) + 0.1 * np.sqrt((steps**2).sum(1))
    return losses, 0.5 * np.abs(steps).sum(1) - 0.1


def test_outcomes_have_the_movement_from_what_was_really_played():
    it, start = session(start=[0.5, 0.5, 0.0]), np.array([0.5, 0.5, 0.0])
    path, outcomes = observe(it, 12)
    losses, constraints = by_hand(path, start, COSTS[:12])
    np.testing.assert_allclose([outcome.loss for outcome in outcomes], losses, rtol=1e-12)
    np.testing.assert_allclose([outcome.constraint[0] for outcome in outcomes], constraints, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(it.history()["loss"], losses, rtol=1e-12)
    assert it.summary()["learner"] == "Auto" and constraints.max() > 0.3


def test_a_session_plays_as_a_game_does():
    it, problem = session(), cx.Problem(ProbabilitySimplex(3), fee, turnover)
    it.observe_many(COSTS)
    game = cx.play(problem, cx.learners.Auto(), jnp.asarray(COSTS), key=KEY)
    np.testing.assert_array_equal(it.history()["loss"], game.loss)
    for mine, yours in zip(jax.tree.leaves(it.state), jax.tree.leaves(game.state), strict=True):
        np.testing.assert_array_equal(mine, yours)
    later = session(state=game.state, key=None)
    np.testing.assert_array_equal(later.decide(), it.decide())
    assert later.observe(COSTS[0]).loss == it.observe(COSTS[0]).loss


def test_regret_is_against_a_decision_that_does_not_move():
    it = session()
    _, outcomes = observe(it, 12)
    best = COSTS[:12].sum(0).argmin()
    expected = np.cumsum([outcome.loss for outcome in outcomes] - COSTS[:12, best])
    np.testing.assert_allclose(it.regret(), expected, atol=1e-5)


@pytest.mark.parametrize("rounds", [1, 4, 6, 9])
def test_a_kill_keeps_what_was_played_last(tmp_path, rounds):
    whole = session()
    observe(whole, 12)
    (tmp_path / "files").mkdir()
    it = session(tmp_path / "files" / "session")
    observe(it, rounds)
    killed = tools.copied(tmp_path / "files", tmp_path / "killed")
    it.close()
    with session(killed) as again:
        assert again.rounds == rounds
        np.testing.assert_array_equal(again.state.previous, ELSEWHERE if rounds in (4, 9) else it.state.previous)
        observe(again, 12 - rounds)
        tools.assert_same(again, whole)
    with session(tmp_path / "files" / "session") as closed:
        observe(closed, 12 - rounds)
        tools.assert_same(closed, whole)


def test_replay_moves_as_the_new_learner_does(tmp_path):
    with session(tmp_path / "old") as old:
        observe(old, 12)
    problem = cx.Problem(ProbabilitySimplex(3), fee, turnover)
    same = cx.Session.replay(tmp_path / "old", problem, cx.learners.Auto(), key=KEY)
    np.testing.assert_array_equal(same.history()["loss"], old_losses(tmp_path / "old"))
    stays = cx.Session.replay(tmp_path / "old", problem, cx.learners.Stay(), key=KEY)
    start = np.full(3, 1 / 3)
    still = np.array([ELSEWHERE if number % 5 == 3 else start for number in range(12)])
    np.testing.assert_allclose(stays.history()["loss"], by_hand(still, start, COSTS[:12])[0], rtol=1e-12)


def old_losses(path):
    with session(path) as it:
        return it.history()["loss"]


def test_the_same_movement_and_learner_are_recognised(tmp_path):
    with session(tmp_path / "session") as it:
        observe(it, 2)
    with pytest.raises(cx.SessionError, match=r"was recorded with the learner Auto, this is Stay; open it"):
        session(tmp_path / "session", cx.learners.Stay())
    other = cx.Problem(ProbabilitySimplex(3), turnover, turnover)
    with pytest.raises(cx.SessionError, match=r"was recorded with the loss fee, this is turnover; open it"):
        cx.Session(other, cx.learners.Auto(), tmp_path / "session", key=KEY)


def test_a_refused_round_moves_nothing():
    it = session()
    observe(it, 3)
    before = tools.bits(it)
    with pytest.raises(cx.SessionError, match="not finite"):
        it.observe(np.full(3, 1e308), ELSEWHERE)
    assert tools.bits(it) == before


def test_late_feedback_is_refused():
    with pytest.raises(cx.SessionError, match=r"^late rounds have no order, so no movement is known; leave out"):
        session(pending=2)
