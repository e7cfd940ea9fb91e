"""One writer, whatever leads to the file; and a replay that counts whole or not at all."""

import os
import sqlite3

import jax
import pytest
import session_tools as tools

import cocoax as cx
from cocoax.sessions.storage import acknowledged, database


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session"


def _replay(source, path=None):
    return cx.Session.replay(source, tools.problem(), tools.learner(), path, key=jax.random.key(7))


def _try_to_open(path, send):
    tools.as_in_tests()
    try:
        tools.session(path).close()
        send.send_bytes(b"opened")
    except cx.SessionError as error:
        send.send_bytes(str(error).encode())


def test_a_replay_through_a_symbolic_link_reads_the_log_too(tmp_path):
    folder = tools.prepared(tmp_path, 20)
    assert (folder / "session-wal").stat().st_size > 0
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link"
    link.symlink_to(folder / "session")
    with tools.told() as sentences, _replay(link) as it:
        assert it.rounds == 20
    assert not sentences and list((tmp_path / "other").iterdir()) == [link]


def test_a_replay_that_was_killed_is_not_taken_for_a_session(tmp_path, monkeypatch):
    source, new = tools.prepared(tmp_path, 10) / "session", tmp_path / "new" / "session"
    new.parent.mkdir()
    monkeypatch.setattr("cocoax.sessions.replay._BATCH", 3)
    monkeypatch.setattr("cocoax.sessions.replay._discard", lambda session: None)  # as if there was no time
    monkeypatch.setattr("cocoax.sessions.copies.LearnerCopies.play", _fails_at(8))
    with pytest.raises(KeyboardInterrupt):
        _replay(source, new)
    copy = tools.copied(new.parent, tmp_path / "copy")
    with pytest.raises(cx.SessionError, match="a replay that was interrupted"):
        tools.session(copy)
    with pytest.raises(cx.SessionError, match="a replay that was interrupted"):
        _replay(copy)
    monkeypatch.undo()
    with _replay(source, tmp_path / "whole") as it:
        assert it.rounds == 10
    with tools.session(tmp_path / "whole") as it:
        assert tools.bits(it) == tools.uninterrupted().after(10)


def _fails_at(number):
    from cocoax.sessions.copies import LearnerCopies

    original = LearnerCopies.play
    calls = iter(range(10**6))

    def play(*arguments, **options):
        if next(calls) == number:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    return play


def test_what_is_forgotten_leaves_the_disk(tmp_path, path):
    with tools.session(path, snapshot_every=5) as it:
        tools.observe(it, 12)
        data = [tools.a_round(number)["value"].tobytes() for number in range(12)]
        files = [file for file in tmp_path.iterdir() if file.name.startswith("session")]
        assert all(any(secret in file.read_bytes() for file in files) for secret in data)
        it.forget()
        assert not any(secret in file.read_bytes() for file in tmp_path.iterdir() for secret in data[:10])
        tools.observe(it, 1)
    with tools.session(path) as it:
        assert tools.bits(it) == tools.uninterrupted().after(13)


@pytest.mark.parametrize("has_counter", [True, False])
def test_a_backup_that_nobody_may_write_is_replayed(tmp_path, monkeypatch, has_counter):
    folder, real = tools.prepared(tmp_path, 9), os.open
    if not has_counter:
        (folder / "session-acknowledged").unlink()

    def read_only(path, flags, *more, **options):
        if str(path).startswith(str(folder)) and flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(30, "Read-only file system")
        return real(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", read_only)
    with tools.told() as sentences, _replay(folder / "session") as it:
        assert it.rounds == 9
    assert not sentences


def test_a_symbolic_link_leads_to_the_same_lock(tmp_path, path):
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link"
    link.symlink_to(path)
    with tools.session(path) as it:
        tools.observe(it, 1)
        path.read_bytes()  # the end of which drops all locks that SQLite has
        process, receive = tools.in_process(_try_to_open, link)
        assert b"open in another session" in receive.recv_bytes()
        process.join()
    with tools.session(link) as it:
        assert it.rounds == 1 and it.path == path


def test_a_folder_is_refused_and_nothing_is_written_beside_it(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(cx.SessionError, match="is a folder; give the path of a file"):
        tools.session(folder)
    assert list(tmp_path.iterdir()) == [folder]


def test_a_file_with_two_names_is_refused(tmp_path, path):
    with tools.session(path) as it:
        tools.observe(it, 1)
        path.read_bytes()
        os.link(path, tmp_path / "second")
        with pytest.raises(cx.SessionError, match="hard links"):
            tools.session(tmp_path / "second")
        tools.observe(it, 1)
    os.unlink(tmp_path / "second")
    with tools.session(path) as it:
        assert it.rounds == 2


def _without_locks(path):
    if path is None:
        return sqlite3.connect("", isolation_level=None)
    return sqlite3.connect(
        f"file:{path}?vfs=unix-none", timeout=0, isolation_level=None, check_same_thread=False, uri=True
    )


@pytest.mark.parametrize("way", ["locks do nothing", "the counter is deleted"])
def test_the_session_that_opened_last_is_the_only_one_that_writes(tmp_path, path, monkeypatch, way):
    monkeypatch.setattr(acknowledged, "lock_descriptor", lambda *_, **__: True)
    monkeypatch.setattr(database, "_connect", _without_locks)
    first = tools.session(path, snapshot_every=3)
    tools.observe(first, 4)
    if way == "the counter is deleted":
        path.with_name("session-acknowledged").unlink()
    second = tools.session(path, snapshot_every=3)
    assert second.rounds == 4
    tools.observe(second, 3)
    for _ in range(2):
        with pytest.raises(cx.SessionError, match="opened by another session"):
            tools.observe(first, 1)
    first.close()
    tools.observe(second, 3)
    copy = tools.copied(tmp_path, tmp_path.parent / f"{tmp_path.name}-copy")
    with tools.session(copy) as it:
        assert tools.bits(it) == tools.uninterrupted().after(10)
    second.close()
    with tools.session(path) as it:
        assert tools.bits(it) == tools.uninterrupted().after(10)
