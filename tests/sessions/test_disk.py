"""Sessions whose disk is full: what was acknowledged is there, and what was not has changed nothing."""

import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import subprocess

import numpy as np
import pytest
import session_tools as tools

import cocoax as cx


class _FailingConnection:
    """Passes everything on, and fails at one statement while `full`."""

    def __init__(self, connection, statement):
        self._connection, self._statement, self.full = connection, statement, False

    def execute(self, statement, *arguments):
        if self.full and statement.startswith(self._statement):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorname = "SQLITE_FULL"
            raise error
        return self._connection.execute(statement, *arguments)

    def __getattr__(self, name):
        return getattr(self._connection, name)


def _with_failing_disk(session, statement):
    database = session._durable._journal._database
    database._connection = _FailingConnection(database._connection, statement)
    return database._connection


@pytest.mark.parametrize("statement", ["BEGIN", "INSERT INTO events", "COMMIT"])
def test_a_failing_disk_costs_no_acknowledged_round(tmp_path, statement):
    with tools.session(tmp_path / "session", snapshot_every=3) as it:
        disk = _with_failing_disk(it, statement)
        for _ in range(4):
            before = tools.bits(it)
            disk.full = True
            with pytest.raises(cx.SessionError, match="full"):
                it.observe(tools.a_round(it.rounds))
            with pytest.raises(cx.SessionError, match="full"):
                it.observe_many([tools.a_round(it.rounds), tools.a_round(it.rounds + 1)])
            assert tools.bits(it) == before
            disk.full = False
            tools.observe(it, 1)
    with tools.session(tmp_path / "session") as it:
        assert tools.bits(it) == tools.uninterrupted().after(4)


def test_a_snapshot_that_does_not_fit_is_told_and_costs_nothing(tmp_path):
    with tools.session(tmp_path / "session", snapshot_every=3) as it:
        disk = _with_failing_disk(it, "INSERT OR")
        disk.full = True
        with pytest.warns(cx.SessionWarning, match="snapshot was not stored"):
            tools.observe(it, 4)
        disk.full = False
        tools.observe(it, 1)
    with tools.session(tmp_path / "session") as it:
        assert tools.bits(it) == tools.uninterrupted().after(5)


def _observe_until_full(path, limit, send):
    """Sends how many rounds were acknowledged when the first did not fit, and how many in the end."""
    tools.as_in_tests()
    with tools.told():
        it = tools.session(path, snapshot_every=50)
        tools.observe(it, 1)
        if limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        with contextlib.suppress(cx.SessionError):
            tools.observe(it, 5000)
        full, before = it.rounds, tools.bits(it)
        with contextlib.suppress(cx.SessionError):
            it.observe(tools.a_round(full) | {"value": np.full(4, np.nan)})
        assert tools.bits(it) == before
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        else:
            os.unlink(path.with_name("ballast"))
        try:
            tools.observe(it, 3)
        except cx.SessionError as error:  # an error of which SQLite does not say whether the round is on disk
            assert "open" in str(error)
            it.close()
            it = tools.session(path)
            assert it.rounds in (full, full + 1)
            tools.observe(it, full + 3 - it.rounds)
        send.send_bytes(f"{full} {it.rounds}".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def _assert_full_and_well(path, limit):
    process, receive = tools.in_process(_observe_until_full, path, limit)
    full, rounds = map(int, receive.recv_bytes().split())
    process.join()
    assert 1 < full < 5000 and rounds == full + 3
    with tools.session(path) as it:
        assert it.rounds == rounds
        assert tools.bits(it) == tools.uninterrupted().after(rounds)


@pytest.mark.parametrize("limit", [150_000, 400_000])
def test_a_file_that_may_not_grow_costs_no_acknowledged_round(tmp_path, limit):
    _assert_full_and_well(tmp_path / "session", limit)


def test_a_full_disk_costs_no_acknowledged_round(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no small disk can be mounted here")
    try:
        (disk / "ballast").write_bytes(bytes(100_000))
        _assert_full_and_well(disk / "session", 0)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
