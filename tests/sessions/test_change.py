"""What may change between two openings of a session, what may not, and how to change it on purpose."""

import contextlib
import sqlite3
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import session_tools as tools

import cocoax as cx


@pytest.fixture
def path(tmp_path):
    with tools.session(tmp_path / "session", snapshot_every=4) as session:
        tools.observe(session, 10)
    return tmp_path / "session"


def _loss(x, r):
    return -jnp.vdot(r["value"], x)


def _other_loss(factor):
    def _loss(x, r):
        return -factor * jnp.vdot(r["value"], x)

    return _loss


def _constraint(x, r):
    return jnp.vdot(r["price"], x) - r["budget"]


def _tighter(x, r):
    return _constraint(x, r) + 0.5


def _problem(upper=1.0, loss=_loss, constraint=_constraint, size=4, scale=1.0, **options):
    domain = cx.domains.Box(np.zeros(size), np.full(size, upper))
    return cx.Problem(domain, loss, constraint, regularity=cx.Regularity(scale, 0.0, 1.5), **options)


def _open(path, problem, learner=None, horizon=100, **options):
    learner = cx.baselines.PDOGD() if learner is None else learner
    return cx.Session(problem, learner, path, key=jax.random.key(0), horizon=horizon, **options)


def _blocks(**options):
    return cx.learners.Blocks(cx.primal.ORGFW(), **options)


OTHERS = {
    "another learner": (lambda path: _open(path, _problem(), cx.learners.DPP()), "the learner PDOGD, this is DPP"),
    "another domain": (lambda path: _open(path, _problem(2.0)), "another domain of the same name"),
    "another size": (lambda path: _open(path, _problem(size=5)), "with decision"),
    "another loss": (lambda path: _open(path, _problem(loss=_other_loss(2.0))), "with the loss _loss, this is"),
    "another limit": (lambda path: _open(path, _problem(constraint=_tighter)), "with the constraint _constraint"),
    "no constraint": (lambda path: _open(path, _problem(constraint=None)), "with constraints"),
    "another name": (lambda path: _open(path, _problem(constraints=("spend",))), "with constraints"),
    "another regularity": (lambda path: _open(path, _problem(scale=3.0)), "another regularity of the same name"),
    "another horizon": (lambda path: _open(path, _problem(), horizon=200), "horizon=100, this is horizon=200"),
    "late feedback": (lambda path: _open(path, _problem(), pending=2), "pending=0, this is pending=2"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_session_is_not_opened_as_another(tmp_path, name):
    with _open(tmp_path / "session", _problem()) as session:
        tools.observe(session, 3)
        before = tools.bits(session)
    open_it, sentence = OTHERS[name]
    with pytest.raises(cx.SessionError, match=sentence):
        open_it(tmp_path / "session")
    with _open(tmp_path / "session", _problem()) as session:
        assert tools.bits(session) == before


def test_other_numbers_are_noticed_before_the_first_round(tmp_path):
    first, second = (_blocks(theta_scale=scale) for scale in (1.0, 0.5))
    _open(tmp_path / "session", _problem(), first).close()
    with pytest.raises(cx.SessionError, match=r"another learner of the same name.* delete it .* has no rounds yet"):
        _open(tmp_path / "session", _problem(), second)
    _open(tmp_path / "session", _problem(), first).close()


class _Half(cx.learners.Stay):
    """Of what it would decide otherwise, by a number that no field has."""

    part = 0.5

    def decision(self, state):
        return self.part * super().decision(state)


class _Third(_Half):
    part = 1 / 3


def _corner(size):
    """A box's answers, by a function of the user's own."""
    return cx.domains.from_lmo(
        lambda direction: jnp.where(direction < 0, size, 0.0), start=np.zeros(4), diameter=2 * size
    )


CODE = {
    "loss": ({"problem": _problem(loss=_other_loss(2.0))}, {"problem": _problem(loss=_other_loss(3.0))}),
    "learner": ({"problem": _problem(), "learner": _Half()}, {"problem": _problem(), "learner": _Third()}),
    "domain": tuple({"problem": cx.Problem(_corner(size), _loss), "learner": cx.learners.Stay()} for size in (1, 0.5)),
}


@pytest.mark.parametrize("name", CODE)
def test_what_is_computed_is_compared_from_the_first_round_on(tmp_path, name):
    first, second = CODE[name]
    with _open(tmp_path / "session", **first) as session:
        tools.observe(session, 3)
    with pytest.raises(cx.SessionError, match=f"was recorded with (another|the) {name}"):
        _open(tmp_path / "session", **second)
    _open(tmp_path / "session", **first).close()


def test_what_a_callback_does_on_the_host_is_not_seen(tmp_path):
    def priced(factor):
        def loss(x, r):
            return jax.pure_callback(lambda value: factor * value, r["value"][0], r["value"][0]) + _loss(x, r)

        return _problem(loss=loss, loss_grad=lambda x, r: -r["value"])

    with _open(tmp_path / "session", priced(1.0), cx.learners.Stay()) as session:
        tools.observe(session, 3)
    _open(tmp_path / "session", priced(2.0), cx.learners.Stay()).close()


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_another_precision_is_refused(path):
    with jax.enable_x64(False):
        problem = cx.problems.pacing(jax.random.key(0), segments=4).problem
        with pytest.raises(cx.SessionError, match="jax_enable_x64"):
            cx.Session(problem, _blocks(), path, key=jax.random.key(7), horizon=tools.HORIZON)


OTHERWISE = {
    "another version": ("cocoax.__version__", "99.0", "written by cocoax .*, this is 99.0"),
    "other code": (
        "cocoax.sessions.identity.library",
        lambda: "ab" * 16,
        "written by other code of cocoax: .*abababab",
    ),
    "another JAX": ("jax.__version__", "99.0", "written under JAX .*, this is 99.0"),
    "another device": ("jax.default_backend", lambda: "abacus", "written on a cpu, this is a abacus"),
}


@pytest.mark.parametrize("change", OTHERWISE)
def test_other_code_goes_on_with_one_warning(path, monkeypatch, change):
    """Programs are not compared then, since they may differ although nothing of the user's has changed."""
    target, value, sentence = OTHERWISE[change]
    monkeypatch.setattr(target, value)
    with pytest.warns(cx.SessionWarning, match=f"{sentence}: .*replay"), tools.session(path) as it:
        assert tools.bits(it) == tools.uninterrupted().after(10)
    with tools.session(path) as it:  # it is a session of this code now
        tools.observe(it, 1)
        assert tools.bits(it) == tools.uninterrupted().after(11)
    with cx.Session.replay(path, tools.problem(), tools.learner(), path.with_name("new"), key=jax.random.key(7)) as it:
        assert tools.bits(it) == tools.uninterrupted().after(11)


def test_numbers_are_compared_under_other_code_too(tmp_path, monkeypatch):
    with _open(tmp_path / "session", _problem()) as session:
        tools.observe(session, 3)
    monkeypatch.setattr(jax, "__version__", "99.0")
    with pytest.raises(cx.SessionError, match="another domain of the same name"):
        _open(tmp_path / "session", _problem(2.0))


def test_rounds_of_another_form_are_refused_after_opening_again(path):
    with tools.session(path) as session, pytest.raises(cx.SessionError, match=r"lacks the field 'budget'"):
        session.observe({"value": np.ones(4), "price": np.ones(4)})


def test_another_machine_is_refused(tmp_path, monkeypatch):
    """A round that does not come to what it came to before is not gone on from."""
    path = tools.copied(tools.prepared(tmp_path, 9, every=4), tmp_path / "copy")
    from cocoax.sessions.storage import events

    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        row = connection.execute("SELECT kind, ticket, round, played, outcome, contents FROM events WHERE number = 9")
        *event, contents = row.fetchone()
        event[4] = event[4][:-1] + bytes([event[4][-1] ^ 1])
        before = connection.execute("SELECT chain FROM events WHERE number = 8").fetchone()[0]
        link = events._link(before, 9, events.Event(*event), contents)
        connection.execute("UPDATE events SET outcome = ?, chain = ? WHERE number = 9", (event[4], link))
    with pytest.raises(cx.SessionError, match="because another machine rounds otherwise"):
        tools.session(path)
    with (
        monkeypatch.context() as patch,
        pytest.raises(cx.SessionError, match="because it was written by other code of"),
    ):
        patch.setattr("cocoax.sessions.identity.library", lambda: "ab" * 16)
        tools.session(path)
    with tools.session(path, other_rounding=True) as it:  # unless that is wanted
        assert tools.bits(it) == tools.uninterrupted().after(9)
    with tools.session(path) as it:
        assert it.rounds == 9


@pytest.mark.parametrize("name", ["Auto", "DPP", tools.RANDOM])
def test_replay_is_a_new_session_over_the_same_rounds(path, name):
    fresh = tools.session(None, name, key=3)
    tools.observe(fresh, 10)
    before = path.read_bytes()
    new = path.with_name("new")
    with cx.Session.replay(path, tools.problem(), tools.learner(name), new, key=jax.random.key(3)) as again:
        tools.assert_same(again, fresh)
        assert np.array_equal(again.history(), fresh.history())
        tools.observe(again, 2)
    assert path.read_bytes() == before
    tools.observe(fresh, 2)
    options = {"horizon": tools.HORIZON} if name == "Auto" else {}  # which replay takes over
    with tools.session(new, name, **options) as again:
        tools.assert_same(again, fresh)
    with pytest.raises(cx.SessionError, match="is a session already"):
        cx.Session.replay(path, tools.problem(), tools.learner(name), new, key=jax.random.key(3))


def test_replay_needs_a_session(tmp_path):
    with pytest.raises(cx.SessionError, match="there is no session"):
        cx.Session.replay(tmp_path / "nothing", tools.problem(), tools.learner(), key=jax.random.key(0))
    assert not list(tmp_path.iterdir())


def _kept(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(round) FROM events").fetchone()[0]


def test_rounds_may_be_dropped_once_a_snapshot_has_them(tmp_path):
    path = tmp_path / "work" / "session"
    folder = tools.prepared(tmp_path, 30, every=4, keep_rounds=False)
    assert _kept(path) < 9
    killed = tools.copied(folder, tmp_path / "copy")
    for each in (path, killed):
        with tools.session(each, keep_rounds=False) as session:
            assert tools.bits(session) == tools.uninterrupted().after(30)
            assert len(session.history()) == 30
            with pytest.raises(cx.SessionError, match="forgotten"):
                session.regret()
    with pytest.raises(cx.SessionError, match="forgotten"):
        cx.Session.replay(path, tools.problem(), tools.learner(), key=jax.random.key(0))


def test_a_session_in_memory_may_drop_its_rounds():
    session = tools.session(keep_rounds=False)
    tools.observe(session, 5)
    assert tools.bits(session) == tools.uninterrupted().after(5) and len(session.history()) == 5
    with pytest.raises(cx.SessionError, match="forgotten"):
        session.regret()


def test_forgetting_keeps_what_the_rounds_came_to(path):
    with tools.session(path) as session:
        history = session.history()
        session.forget()
        assert np.array_equal(session.history(), history)
        tools.observe(session, 2)
        assert tools.bits(session) == tools.uninterrupted().after(12)
        copy = tools.copied(path.parent, path.parent.with_name("copy"))
    assert _kept(path) == 2
    for each in (path, copy):
        with tools.session(each) as session:
            assert tools.bits(session) == tools.uninterrupted().after(12)
            assert np.array_equal(session.history()[:10], history)


def test_in_memory_events_are_stored_in_groups_and_seen_at_once():
    session = tools.session(None, "Auto", pending=2)
    journal = session._durable._journal
    for number in range(600):
        session.decide(f"order {number}")
        session.observe(tools.a_round(number), ticket=f"order {number}")
    assert journal.last == 1200
    assert len(journal._position.waiting) <= 256
    with pytest.raises(cx.SessionError, match="observed already"):
        session.observe(tools.a_round(0), ticket="order 599")
    assert not journal._position.waiting  # whoever asks sees all
    session.decide("last")
    session.observe(tools.a_round(0), ticket="last")
    session.forget()
    with pytest.raises(cx.SessionError, match="forgotten"):
        session.regret()
    assert len(session.history()) == 601


def test_a_session_in_memory_survives_an_interrupt():
    session = tools.session()
    tools.observe(session, 1)
    before, journal = tools.bits(session), session._durable._journal
    append = journal.append

    def interrupted(*arguments):
        append(*arguments)
        raise KeyboardInterrupt

    journal.append = interrupted  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(KeyboardInterrupt):
        tools.observe(session, 1)
    journal.append = append
    assert (session.rounds, len(session.history())) == (1, 1)
    assert tools.bits(session) == before
    tools.observe(session, 1)
    assert len(session.history()) == 2


MINE = """
import jax.numpy as jnp
import cocoax as cx
def _value(x, r): return jnp.vdot(r["value"], x)
def loss(x, r): return -{factor} * _value(x, r)
class Patient(cx.baselines.PDOGD):
    def check(self, problem): return None
"""


def _mine(module, factor=1.0, **renamed):
    """The user's own loss and learner, from a module of this name."""
    text = MINE.format(factor=factor)
    for name, other in renamed.items():
        text = text.replace(name, other)
    made = types.ModuleType(module)
    sys.modules[module] = made
    exec(text, vars(made))
    return _problem(loss=getattr(made, renamed.get("loss", "loss"))), getattr(made, renamed.get("Patient", "Patient"))()


def test_refactoring_does_not_lock_a_session(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    with _open(tmp_path / "session", *_mine("first")) as session:
        tools.observe(session, 3)
        before = tools.bits(session)
    moved = _mine("second.place"), _mine("first", loss="bid_loss", _value="worth"), _mine("third", Patient="Calm")
    for problem, learner in moved:
        with _open(tmp_path / "session", problem, learner) as session:
            assert tools.bits(session) == before
    for changed in (_mine("first", 2.0), _mine("second", 2.0, loss="bid_loss")):
        with pytest.raises(cx.SessionError, match=r"was recorded with (another|the) loss.* replay its rounds"):
            _open(tmp_path / "session", *changed)
