"""Ctrl-C and signal handlers at every line of a session: state and journal never part, and nothing stays locked."""

import contextlib
import sys

import pytest
import session_tools as tools
from line_tools import at_lines, interrupt, number_of_lines

import cocoax as cx
from cocoax.sessions.storage.events import Event
from cocoax.sessions.storage.journal import Journal


def _check(it, path, before):
    """The session, or a new one if it says so: after all or none of what was interrupted."""
    try:
        it.decide()
    except cx.SessionError as error:
        assert "open it again" in str(error)
        it = tools.session(path, snapshot_every=5)
    assert it.rounds in (before, before + 1)
    assert len(it.history()) == it.rounds
    assert tools.bits(it) == tools.uninterrupted().after(it.rounds)
    return it


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session"


@pytest.fixture
def it(path):
    it = tools.session(path, snapshot_every=5)
    tools.observe(it, 9)
    return it


def _every(count, stride):
    return range(0, count, stride)


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_at_a_line_of_observe(it, path, stride):
    count = number_of_lines(lambda: tools.observe(it, 1))  # with a snapshot
    assert count > 100
    for line in _every(count, stride):
        tools.observe(it, 4 - it.rounds % 5)
        before = it.rounds
        with contextlib.suppress(KeyboardInterrupt), at_lines({line: interrupt}):
            tools.observe(it, 1)
        it = _check(it, path, before)
    it.close()


class _TwiceConnection:
    """Ctrl-C after a statement, and again at each of the next ones."""

    def __init__(self, connection, statement, times):
        self._connection, self._statement, self.left, self._began = connection, statement, times, False

    def execute(self, statement, *arguments):
        answer = self._connection.execute(statement, *arguments)
        self._began = self._began or statement.startswith(self._statement)
        if self._began and self.left:
            self.left -= 1
            raise KeyboardInterrupt
        return answer

    def __getattr__(self, name):
        return getattr(self._connection, name)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("statement", ["BEGIN", "INSERT INTO events", "COMMIT", "INSERT OR REPLACE INTO snapshots"])
def test_several_interrupts_in_a_row(it, path, statement, times):
    database = it._durable._journal._database
    connection = database._connection = _TwiceConnection(database._connection, statement, times)
    while connection.left:
        before = it.rounds
        with contextlib.suppress(KeyboardInterrupt):
            tools.observe(it, 1)
        if "again" in (it._durable._closed or ""):
            connection.left = 0
    it = _check(it, path, before)
    tools.observe(it, 11)
    it.close()
    with tools.session(path) as again:
        assert tools.bits(again) == tools.uninterrupted().after(again.rounds)


@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_at_a_line_of_opening_leaves_nothing_locked(it, path, stride):
    it.close()
    count = number_of_lines(lambda: tools.session(path).close())
    for line in _every(count, stride):
        with contextlib.suppress(KeyboardInterrupt), at_lines({line: interrupt}):
            tools.session(path).close()
        with tools.session(path) as again:
            assert tools.bits(again) == tools.uninterrupted().after(9)


@pytest.mark.parametrize("use", ["observe", "close", "decide", "history"])
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_signal_handler_that_uses_the_session_gets_one_sentence(it, path, use, stride):
    count = number_of_lines(lambda: tools.observe(it, 1))
    for line in _every(count, stride):
        tools.observe(it, 4 - it.rounds % 5)
        before, told = it.rounds, []

        def handler(it=it, told=told):
            sys.settrace(None)
            try:
                tools.observe(it, 1) if use == "observe" else getattr(it, use)()
            except cx.SessionError as error:
                told.append(str(error))

        with contextlib.suppress(cx.SessionError), at_lines({line: handler}):
            tools.observe(it, 1)
        assert all("inside another call" in sentence or "closed" in sentence for sentence in told)
        if use == "observe" and not told:  # before the call or after it: both count
            assert it.rounds == len(it.history()) >= before + 2
            it.close()
            path = path.with_name(f"session-{line}")
            it = tools.session(path, snapshot_every=5)
        else:
            it = _check(it, path, before)
    it.close()


def test_events_that_are_stored_are_not_taken_back(tmp_path):
    """What is said of fewer events, or of more, is refused."""
    event = Event("observed", None, b"", None, b"")
    with contextlib.closing(Journal(tmp_path / "journal")) as journal:
        journal.create({}, {}, b"")
        journal.append([event, event])
        assert not journal.settle(1) and not journal.settle(3)
        assert journal.settle(2) and journal.last == 2
