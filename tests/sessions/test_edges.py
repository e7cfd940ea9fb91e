"""What careful readers found in sessions: each of these once went wrong."""

import sqlite3

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import session_tools as tools

import cocoax as cx
from cocoax.learners import AbstractLearner, Outcome


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session"


def test_reading_the_file_does_not_unlock_it(path):
    with tools.session(path) as it:
        tools.observe(it, 1)
        path.read_bytes()  # the end of which drops all locks that SQLite has
        (process, receive) = tools.in_process(_try_to_open, path)
        assert b"open in another session" in receive.recv_bytes()
        process.join()


def _try_to_open(path, send):
    tools.as_in_tests()
    try:
        tools.session(path)
        send.send_bytes(b"opened")
    except cx.SessionError as error:
        send.send_bytes(str(error).encode())


def test_a_decision_that_is_computed_is_the_same_to_the_bit_after_opening(tmp_path):
    learner = cx.learners.Capped(tools.learner("Auto"), safe=np.zeros(4), limit=0.5, bound=2.0)
    key, work = jax.random.key(0), tmp_path / "work"
    work.mkdir()
    with cx.Session(tools.problem(), learner, work / "session", key=key, snapshot_every=3) as it:
        for number in range(20):
            it.observe(tools.a_round(number))
            copy = tools.copied(work, tmp_path / "copy")
            with cx.Session(tools.problem(), learner, copy, key=key) as again:
                assert np.array_equal(again.decide(), it.decide())
    with cx.Session(tools.problem(), learner, work / "session", key=key) as again:
        assert np.array_equal(again.decide(), it._copies.decisions[0])


def test_rounds_without_data_come_back(tmp_path):
    (tmp_path / "work").mkdir()
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: x[0])
    learner = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.RegularizedAscent(theta=1.0, mu=0.1))
    given = {"key": jax.random.key(0), "horizon": 10}
    it = cx.Session(problem, learner, tmp_path / "work" / "session", **given)
    for _ in range(3):
        it.observe(None)
    with cx.Session(problem, learner, tools.copied(tmp_path / "work", tmp_path / "copy"), **given) as again:
        assert again.rounds == 3 and np.array_equal(again.decide(), it.decide())
    it.close()


def test_what_could_not_be_read_is_not_written():
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: x[0] * r["0"])
    it = cx.Session(problem, cx.learners.Stay(), key=jax.random.key(0))
    with pytest.raises(cx.SessionError, match="too many parts"):
        it.observe({str(i): 1.0 for i in range(10_001)})


def test_very_many_long_tickets_come_back(path):
    names = [chr(0x1F600) * 195 + f"{i:04}" for i in range(2000)]  # 12 bytes for each character in JSON
    options = {"pending": 2000, "copies": 1, "horizon": None}
    with tools.session(path, "Auto", snapshot_every=500, **options) as it:
        for name in names:
            it.decide(name)
    with tools.session(path, "Auto", **options) as again:
        assert list(again.pending) == names


def test_a_ticket_counts_once(path):
    with tools.session(path, "Auto", pending=3, expires=2) as it:
        it.decide("a")
        it.observe(tools.a_round(0), ticket="a")
        it.decide("b")
        it.skip("b")
        it.decide("c")
        it.decide("d")
        it.decide("e")
        for name, fate in (("a", "observed already"), ("b", "skipped"), ("c", "expired"), ("z", "never given")):
            with pytest.raises(cx.SessionError, match=fate):
                it.observe(tools.a_round(1), ticket=name)
            if name != "z":
                with pytest.raises(cx.SessionError, match=fate):
                    it.decide(name)
        assert it.rounds == 1 and it.pending == ("d", "e")


class _FailsToSync:
    """The first COMMIT is written, and told as not written, as when fsync fails."""

    def __init__(self, connection):
        self._connection, self.left = connection, 1

    def execute(self, statement, *arguments):
        if statement == "COMMIT" and self.left:
            self.left -= 1
            self._connection.execute("ROLLBACK")
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error
        if statement.startswith("UPDATE facts"):
            self.overwritten = True
        return self._connection.execute(statement, *arguments)

    def __getattr__(self, name):
        return getattr(self._connection, name)


def test_a_commit_that_may_come_back_is_overwritten(path):
    with tools.session(path) as it:
        tools.observe(it, 2)
        database = it._durable._journal._database
        database._connection = _FailsToSync(database._connection)  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(cx.SessionError, match="give it again"):
            tools.observe(it, 1)
        assert database._connection.overwritten and not database.uncertain  # pyright: ignore[reportAttributeAccessIssue]
        tools.observe(it, 1)
        assert tools.bits(it) == tools.uninterrupted().after(3)


def test_replay_never_writes_what_it_reads_and_misses_what_was_lost(tmp_path):
    folder = tools.prepared(tmp_path, 10)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with tools.told() as sentences:
        cx.Session.replay(folder / "session", tools.problem(), tools.learner("Auto"), key=jax.random.key(0)).close()
    assert not sentences
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    log = folder / "session-wal"
    log.write_bytes(log.read_bytes()[: len(before["session-wal"]) // 2])
    with tools.told() as sentences:
        new = cx.Session.replay(folder / "session", tools.problem(), tools.learner("Auto"), key=jax.random.key(0))
    assert new.rounds < 10 and any("are lost" in each for each in sentences)


def test_a_replay_that_fails_leaves_nothing(tmp_path, path):
    with tools.session(path) as it:
        tools.observe(it, 5)
    third = float(tools.a_round(3)["value"][0])
    bad = cx.Problem(tools.problem().domain, lambda x, r: jnp.where(r["value"][0] == third, jnp.nan, x[0]))
    with pytest.raises(cx.SessionError, match="round 3 cannot be replayed"):
        cx.Session.replay(path, bad, tools.learner("Auto"), tmp_path / "new", key=jax.random.key(0))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["session", "session-acknowledged"]


def test_a_file_that_is_moved_is_not_written_to(tmp_path, path):
    it = tools.session(path)
    tools.observe(it, 1)
    path.rename(tmp_path / "moved")
    with pytest.raises(cx.SessionError, match="moved or deleted"):
        tools.observe(it, 1)
    with pytest.raises(cx.SessionError, match="moved or deleted"):
        it.decide()


class _Forgets(AbstractLearner):
    """Its counter changes its type."""

    def init(self, problem, *, key, horizon=None, start=None):
        return problem.domain.start(), jnp.zeros((), jnp.int32)

    def decision(self, state):
        return state[0]

    def observe(self, problem, state, round, *, played=None):
        loss, values = problem.values(state[0], round)
        one = jnp.ones((), int)
        return (state[0], state[1].astype(float)), Outcome(loss, values, jnp.zeros_like(values), one, one, loss == loss)


def test_a_state_that_changes_its_form_is_refused():
    it = cx.Session(tools.problem(), _Forgets(), key=jax.random.key(0))
    with pytest.raises(cx.LearnerError, match="changes its form"):
        it.observe(tools.a_round(0))


def test_numbers_of_other_libraries_and_json_are_taken():
    it = tools.session(horizon=np.int64(100))
    it.observe({name: np.asarray(value).tolist() for name, value in tools.a_round(0).items()} | {"budget": 1})
    it.observe(tools.a_round(1) | {"budget": 0.5})
    game = cx.play(tools.problem(), tools.learner("Auto"), tools.stacked(3), key=jax.random.key(0))
    in_numpy = jax.tree.map(np.asarray, game.state)
    assert np.array_equal(tools.session(None, "Auto", state=in_numpy).decide(), game.decision)
    with pytest.raises(cx.SessionError, match="real number"):
        tools.session().observe(tools.a_round(0) | {"budget": 1 + 1j})


def test_what_was_played_may_be_a_tree_of_lists():
    domain = cx.domains.Product({"b": cx.domains.Box([0.0, 0.0], [1.0, 1.0])})
    problem = cx.Problem(domain, lambda x, r: r @ x["b"])
    it = cx.Session(problem, cx.learners.Stay(), key=jax.random.key(0))
    assert it.observe([1.0, 2.0], {"b": [0.5, 0.25]}).loss == 1.0
    with pytest.raises(cx.SessionError, match=r"played lacks the field 'b'"):
        it.observe([1.0, 2.0], {"c": [0.5, 0.25]})


def test_nobody_acts_on_a_plan_that_is_over():
    it = tools.session(horizon=1)
    tools.observe(it, 1)
    with pytest.raises(cx.SessionError, match="planned for no more rounds"):
        it.decide()


def test_the_key_matters_only_at_the_beginning(path):
    with tools.session(path, "Auto") as it:
        tools.observe(it, 1)
    with cx.Session(tools.problem(), tools.learner("Auto"), path) as again:
        assert again.rounds == 1 and tools.bits(again) == tools.bits(it)


def test_several_copies_go_on_from_their_states():
    options = {"pending": 2, "horizon": None}
    old = tools.session(None, "Auto", **options)
    old.decide("a")
    old.observe(tools.a_round(0), ticket="a")
    new = cx.Session(tools.problem(), tools.learner("Auto"), state=old.state, pending=2)
    assert np.array_equal(new.decide("b"), old.decide("b"))
    with pytest.raises(cx.SessionError, match="a tuple of 2 states"):
        cx.Session(tools.problem(), tools.learner("Auto"), state=old.state[0], pending=2)


def test_a_pole_at_the_decision_is_not_blamed_on_the_round():
    domain, known = cx.domains.Box(jnp.zeros(2), jnp.ones(2)), cx.Regularity(lipschitz=0.1, norm=2)
    problem = cx.Problem(domain, lambda x, r: jnp.sum(r * x * jnp.log(x)) + 3 * x.sum(), regularity=known)
    it = cx.Session(problem, cx.baselines.PDOGD(), key=jax.random.key(0), horizon=4)
    it.observe(1.0)
    assert it.decide().tolist() == [0.0, 0.0]
    with pytest.raises(cx.SessionError, match="not finite at the decision itself"):
        it.observe(1.0)
    it.observe(1.0, played=[0.01, 0.01])
    assert it.rounds == 2


def test_a_first_round_without_a_field_of_the_loss_is_refused_as_every_bad_round():
    problem = cx.Problem(cx.domains.ProbabilitySimplex(2), lambda x, r: r["price"] @ x)
    with cx.Session(problem, cx.learners.Stay(), key=jax.random.key(0)) as it:
        with pytest.raises(cx.SessionError, match="loss reads the field 'price', but a round has the fields 'cost'"):
            it.observe({"cost": [1.0, 2.0]})
        assert it.rounds == 0


def test_more_late_rounds_than_memory_can_hold_are_refused_in_a_sentence():
    for kind, most in ((cx.Session, 1_000_000), (cx.Fleet, 10_000)):
        with pytest.raises(cx.SessionError, match=f"pending must be at most {most}, got 1000000000"):
            kind(tools.problem(), cx.learners.Auto(), key=jax.random.key(0), pending=10**9, copies=1)
    with pytest.raises(cx.SessionError, match="MiB with pending=10000 and copies=10000; give less, say copies=1"):
        wide = cx.Problem(cx.domains.Box(jnp.zeros(1000), jnp.ones(1000)), lambda x, r: x @ r)
        cx.Fleet(wide, cx.learners.Auto(), key=jax.random.key(0), pending=10_000)
    with pytest.raises(cx.SessionError, match="20000 copies of the learner are too many; give copies=, at most 10000"):
        cx.Session(tools.problem(), cx.learners.Auto(), key=jax.random.key(0), pending=20_000)
