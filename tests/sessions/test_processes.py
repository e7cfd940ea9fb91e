"""Threads may share a session; other sessions, processes and children are refused."""

import concurrent.futures
import os
import signal
import sys
import warnings

import jax
import numpy as np
import pytest
import session_tools as tools

import cocoax as cx


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session"


@pytest.mark.parametrize("where", ["memory", "file"])
def test_threads_may_share_a_session(path, where):
    session = tools.session(path if where == "file" else None, snapshot_every=9)
    session.observe(tools.a_round(0))

    def work(which):
        for number in range(10):
            session.decide()
            session.observe(tools.a_round(10 * which + number))
            session.summary()
        return len(session.history())

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert max(pool.map(work, range(8))) == 81
    values = session.game(keep_rounds=True).rounds["value"]
    expected = [tools.a_round(i)["value"] for i in (0, *range(80))]
    assert sorted(map(tuple, values.tolist())) == sorted(map(tuple, np.asarray(expected).tolist()))
    before = tools.bits(session)
    session.close()
    if where == "file":
        with tools.session(path) as again:
            assert tools.bits(again) == before


def test_a_closed_session_says_so(path):
    session = tools.session(path)
    tools.observe(session, 1)
    session.close()
    session.close()
    for use in (session.decide, lambda: tools.observe(session, 1), session.history, session.forget):
        with pytest.raises(cx.SessionError, match="closed"):
            use()


def test_one_session_at_a_time(path):
    with tools.session(path) as first:
        tools.observe(first, 1)
        with pytest.raises(cx.SessionError, match="open in another session"):
            tools.session(path)
        with pytest.raises(cx.SessionError, match="open in another session"):
            cx.Session.replay(path, tools.problem(), tools.learner(), key=jax.random.key(0))
        tools.observe(first, 1)
    with tools.session(path) as second:
        assert tools.bits(second) == tools.uninterrupted().after(2)


def _hold(path, send):
    tools.as_in_tests()
    session = tools.session(path)
    tools.observe(session, 2)
    send.send_bytes(b"open")
    signal.pause()


def test_one_process_at_a_time(path):
    process, receive = tools.in_process(_hold, path)
    assert receive.recv_bytes() == b"open"
    with pytest.raises(cx.SessionError, match="open in another session"):
        tools.session(path)
    process.kill()
    process.join()
    with tools.session(path) as session:
        assert tools.bits(session) == tools.uninterrupted().after(2)


def _fork(path, leaves_it_open, send):
    """A child that uses its parent's session is refused, and harms nothing when it ends as programs do."""
    tools.as_in_tests()
    warnings.simplefilter("ignore")
    session = tools.session(path)
    tools.observe(session, 3)
    child = os.fork()
    if child == 0:
        for use in (session.decide, lambda: tools.observe(session, 1), session.history):
            with pytest.raises(cx.SessionError, match="process that opened it"):
                use()
        if not leaves_it_open:
            session.close()
            del session, use
        sys.exit(0)  # with the interpreter's own clearing up
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    tools.observe(session, 3)
    send.send_bytes(f"{status} {path.with_name('session-wal').exists()}".encode())
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("leaves_it_open", [False, True])
def test_a_child_process_is_refused_and_harms_nothing(path, leaves_it_open):
    process, receive = tools.in_process(_fork, path, leaves_it_open)
    assert receive.recv_bytes() == b"0 True"
    process.join()
    with tools.session(path) as session:
        assert tools.bits(session) == tools.uninterrupted().after(6)


class _InterruptedConnection:
    """Ctrl-C, right after what was written is on disk."""

    def __init__(self, connection):
        self._connection = connection

    def execute(self, statement, *arguments):
        answer = self._connection.execute(statement, *arguments)
        if statement == "COMMIT":
            raise KeyboardInterrupt
        return answer

    def __getattr__(self, name):
        return getattr(self._connection, name)


def test_an_interrupted_session_can_be_opened_again(path):
    session = tools.session(path)
    database = session._durable._journal._database
    database._connection = _InterruptedConnection(database._connection)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(KeyboardInterrupt):
        tools.observe(session, 1)
    with pytest.raises(cx.SessionError, match="interrupted"):
        session.decide()
    with tools.session(path) as again:
        assert tools.bits(again) == tools.uninterrupted().after(1)
