"""Where a session may live: in a plain file of its own, whatever the name."""

import contextlib
import os
import signal
import sqlite3
from pathlib import Path

import pytest
import session_tools as tools

from cocoax.errors import SessionError
from cocoax.sessions import maintenance


def test_the_database_of_another_application_is_refused_and_not_changed(tmp_path):
    path = tmp_path / "session"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE bookmarks(url)")
    before = path.read_bytes()
    tools.assert_refused(path)
    assert path.read_bytes() == before


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "text").write_text("something else entirely, " * 100)
    for name in ("folder", "pipe", "loop", "text", "missing/session", "text/session", "a" * 300):
        tools.assert_refused(tmp_path / name)
    for junk in (7, b"session", 1.5, [], "a\0b", object()):
        tools.assert_refused(junk)


def test_nothing_is_written_beside_what_is_no_file(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    kinds = {tmp_path / "folder": "a folder", tmp_path / "pipe": "a device, a pipe", Path("/dev/zero"): "a device"}
    for path, kind in kinds.items():
        with pytest.raises(SessionError, match=f"is {kind}"):
            tools.session(path)
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "pipe"}
    assert not os.path.exists("/dev/zero-acknowledged")


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_the_second_file_must_be_a_plain_one(tmp_path, kind):
    path = tools.prepared(tmp_path, 2) / "session"
    other, second = tmp_path / "other", path.with_name("session-acknowledged")
    other.write_text("what must not be overwritten")
    second.unlink()
    {"link": lambda: second.symlink_to(other), "folder": second.mkdir, "pipe": lambda: os.mkfifo(second)}[kind]()
    tools.assert_refused(path)
    assert other.read_text() == "what must not be overwritten"


@pytest.mark.parametrize("name", [":memory:", "file:x?mode=ro", "file::memory:?cache=shared", "a b%41.db", "'; --"])
def test_names_are_plain_names_of_files(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with tools.session(name) as it:
        tools.observe(it, 2)
    assert (tmp_path / name).is_file()
    with tools.session(tmp_path / name) as it:
        assert it.rounds == 2


def test_an_empty_file_is_begun_in(tmp_path):
    (tmp_path / "session").touch()
    with tools.session(tmp_path / "session") as it:
        tools.observe(it, 1)
    (tmp_path / "session").write_bytes(b"")
    tools.assert_refused(tmp_path / "session")


@pytest.mark.parametrize("file", ["session-acknowledged", "session-wal"])
def test_commands_do_not_wait_for_a_pipe(tmp_path, file):
    path = tools.prepared(tmp_path, 2) / "session"
    path.with_name(file).unlink()
    os.mkfifo(path.with_name(file))
    alarm = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(20)
    try:
        with contextlib.suppress(SessionError):
            assert maintenance.verify(path)["last_event"] <= 2
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, alarm)


def _too_long(*_):
    raise TimeoutError("a pipe was read")
