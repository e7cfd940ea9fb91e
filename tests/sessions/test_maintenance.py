"""Operations on files without their problem: most of them while a session writes."""

import json
import shutil
import sqlite3
import sys
import threading

import jax
import numpy as np
import power_tools as power
import pytest
import session_tools as tools

import cocoax as cx
from cocoax import cli
from cocoax.sessions import maintenance
from cocoax.sessions.storage import live


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session"


@pytest.fixture
def run(monkeypatch, capsys):
    """What `cocoax session ...` prints, as JSON; or the sentence that it ends with."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["cocoax", "session", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        if ended.value.code:
            assert ended.value.code == 2 and said.err.count("\n") == 1, said.err
            return said.err
        return json.loads(said.out)

    return run


def _flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_an_open_session_is_inspected_verified_and_backed_up(path, run, tmp_path):
    with tools.session(path, snapshot_every=5) as it:
        tools.observe(it, 12)
        said = run("inspect", path)
        assert (said["kind"], said["events"], said["last_event"]) == ("session", {"observed": 12}, 12)
        assert said["acknowledged"] == 12 and said["snapshots"] == [10, 5] and said["learner"] == "Blocks"
        assert run("verify", path)["events"] == 12
        assert run("backup", path, tmp_path / "backup")["last_event"] == 12
        assert "exists already" in run("backup", path, tmp_path / "backup")
        tools.observe(it, 5)  # nobody took its lock
    assert not (tmp_path / "backup-wal").exists()
    with tools.session(tmp_path / "backup") as it:
        assert tools.bits(it) == tools.uninterrupted().after(12)
    with tools.session(path) as it:
        assert tools.bits(it) == tools.uninterrupted().after(17)


def test_backups_under_load_have_all_that_was_acknowledged(tmp_path):
    """The log begins anew many times meanwhile: snapshots are large."""
    with power.memory_folder() as folder, tools.session(folder / "session", snapshot_every=3) as it:
        tools.observe(it, 1)
        tools.uninterrupted().after(2)
        stop, number = threading.Event(), 0

        def load():
            while not stop.is_set():
                tools.observe(it, 1)
                if it.rounds % 40 == 0:
                    it.forget()

        thread = threading.Thread(target=load)
        thread.start()
        try:
            while it.rounds < 80 or number < 3:  # on a busy machine the first backup may take all of the rounds
                before, number = it.rounds, number + 1
                maintenance.backup(folder / "session", folder / f"backup {number}")
                with tools.session(folder / f"backup {number}") as copy:
                    assert before <= copy.rounds
                    assert tools.bits(copy) == tools.uninterrupted().after(copy.rounds)
        finally:
            stop.set()
            thread.join()


def test_damage_is_found_wherever_it_is(path, run, tmp_path):
    with tools.session(path, snapshot_every=5) as it:
        tools.observe(it, 12)
    whole, refused = path.read_bytes(), 0
    for at in range(0, len(whole), 331):
        _flip(path, at)
        try:
            maintenance.verify(path)
            with tools.session(path) as it:  # what was changed means nothing
                assert tools.bits(it) == tools.uninterrupted().after(12) and len(it.history()) == 12
        except cx.SessionError as error:
            assert "\n" not in str(error)
            refused += 1
        path.write_bytes(whole)
    assert refused > 10
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM events WHERE number > 10")
    database.close()
    assert "lost the last 2 acknowledged event(s)" in run("verify", path)
    assert "lost the last 2" in run("backup", path, tmp_path / "backup") and not (tmp_path / "backup").exists()
    assert "there is no session" in run("inspect", tmp_path / "none")


def test_a_folder_that_takes_no_backup_and_a_file_that_is_empty_are_said(path, run, tmp_path, monkeypatch):
    with tools.session(path) as it:
        tools.observe(it, 1)
    (tmp_path / "empty").touch()
    for command in ("inspect", "verify", "compact"):
        assert "is empty; give the file of a session" in run(command, tmp_path / "empty")

    def read_only(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(live.tempfile, "TemporaryDirectory", read_only)
    assert "cannot hold a copy of" in run("backup", path, tmp_path / "backup")


@pytest.mark.parametrize("options", [{}, {"pending": 3, "expires": 9}])
def test_a_state_is_exported_and_imported(path, tmp_path, options):
    with tools.session(path, **options) as it:
        for number in range(8):
            ticket = {"ticket": str(number)} if options else {}
            it.decide(**ticket)
            it.observe(tools.a_round(number), **ticket)
        it.decide(**({"ticket": "waits"} if options else {}))
        it.export(tmp_path / "state")
        with pytest.raises(cx.SessionError, match="exists already"):
            it.export(tmp_path / "state")
        it.decide(**({"ticket": "waits"} if options else {}))
        moved = cx.Session.import_(tmp_path / "state", tools.problem(), tools.learner(), tmp_path / "moved")
        assert tools.bits(moved) == tools.bits(it) and moved.rounds == 8 and len(moved.history()) == 0
        for each in (it, moved):
            each.observe(tools.a_round(8), **({"ticket": "waits"} if options else {}))
        assert tools.bits(moved) == tools.bits(it) and len(moved.history()) == 1
        moved.close()
        with pytest.raises(cx.SessionError, match="exists already"):
            cx.Session.import_(tmp_path / "state", tools.problem(), tools.learner(), tmp_path / "moved")


def test_an_export_with_a_changed_byte_is_refused(path, tmp_path):
    with tools.session(path) as it:
        tools.observe(it, 3)
        it.export(tmp_path / "state")
    whole = (tmp_path / "state").read_bytes()
    for at in [*range(0, len(whole), 7), len(whole) - 1]:
        _flip(tmp_path / "state", at)
        with pytest.raises(cx.SessionError, match="damaged"):
            maintenance.import_file(tmp_path / "state", tmp_path / "moved")
        (tmp_path / "state").write_bytes(whole)
    (tmp_path / "state").write_bytes(whole[:-1])
    with pytest.raises(cx.SessionError, match="damaged"):
        maintenance.import_file(tmp_path / "state", tmp_path / "moved")
    assert not (tmp_path / "moved").exists()


def test_a_closed_file_is_exported_and_imported_by_commands(path, run, tmp_path):
    with tools.session(path) as it:
        tools.observe(it, 3)
        assert "events after its newest snapshot" in run("export", path, tmp_path / "state")
    run("export", path, tmp_path / "state")
    run("import", tmp_path / "state", tmp_path / "moved")
    with tools.session(tmp_path / "moved") as it:
        assert tools.bits(it) == tools.uninterrupted().after(3)
        with pytest.raises(cx.SessionError, match="recorded with the learner"):
            cx.Session.import_(tmp_path / "state", tools.problem(), tools.learner("DPP"), tmp_path / "other", horizon=9)
    assert not (tmp_path / "other").exists()


def test_a_new_version_goes_on_without_the_rounds(path, monkeypatch):
    """Without its rounds a session cannot be replayed."""
    with tools.session(path, snapshot_every=5, keep_rounds=False) as it:
        tools.observe(it, 12)
        folder = shutil.copytree(path.parent, path.parent.parent / "as killed 3")
    path = folder / "session"
    monkeypatch.setattr(cx, "__version__", "99.0")
    with pytest.raises(cx.SessionError, match="forgotten"):
        cx.Session.replay(path, tools.problem(), tools.learner(), key=jax.random.key(0))
    with pytest.warns(cx.SessionWarning, match="this is 99.0"), tools.session(path, keep_rounds=False) as it:
        assert tools.bits(it) == tools.uninterrupted().after(12)


@pytest.mark.parametrize("way", ["forget", "command", "keep_rounds"])
def test_retention_frees_space_and_the_session_goes_on(path, run, way):
    with tools.session(path, snapshot_every=20, keep_rounds=way != "keep_rounds") as it:
        tools.observe(it, 100)
        if way == "forget":
            it.forget()
            it.forget(history=True)
            assert len(it.history()) == 0 and it.rounds == 100
            tools.observe(it, 1)
            assert len(it.history()) == 1
        else:
            tools.observe(it, 1)
    before = path.stat().st_size
    if way == "command":
        assert run("compact", path, "--forget-history")["bytes"] < 0.7 * before
        assert run("inspect", path)["dropped_events"] == 100 and run("verify", path)["last_event"] == 101
    with tools.session(path, keep_rounds=way != "keep_rounds") as it:
        assert tools.bits(it) == tools.uninterrupted().after(101)
        if way == "command":
            assert len(it.history()) == 1
            with pytest.raises(cx.SessionError, match="forgotten"):
                it.close()
                cx.Session.replay(path, tools.problem(), tools.learner(), key=jax.random.key(0))


def test_a_fleet_forgets_moves_and_goes_on(tmp_path, run):
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: r["a"] * x[0])
    names = [f"c{i}" for i in range(600)]  # so that an event is longer than a page of the file

    def fleet(path=None, **options):
        return cx.Fleet(problem, cx.learners.DPP(), path, key=jax.random.key(0), horizon=999, **options)

    sizes = {}
    for keeps in (True, False):
        path = tmp_path / f"fleet {keeps}"
        with fleet(path, snapshot_every=10, keep_rounds=keeps) as it:
            for number in range(100):
                it.observe(names, {"a": np.arange(600) / (1.0 + number)})
        sizes[keeps] = path.stat().st_size
        assert run("inspect", path)["kind"] == "fleet" and run("verify", path)["last_event"] == 101
    assert sizes[False] < 0.5 * sizes[True]
    run("backup", tmp_path / "fleet True", tmp_path / "backup")
    with fleet(tmp_path / "backup") as whole, fleet(tmp_path / "fleet False", keep_rounds=False) as it:
        assert it.decide(names).tobytes() == whole.decide(names).tobytes() and it.summary("c1")["rounds"] == 100
        assert len(it.history("c1")) < 30 < len(whole.history("c1")) == 100
        rest = len(it.history("c1"))
        assert it.history("c1")["loss"].tolist() == whole.history("c1")["loss"][-rest:].tolist()
        it.export(tmp_path / "state")
        moved = cx.Fleet.import_(tmp_path / "state", problem, cx.learners.DPP(), tmp_path / "moved")
        for each in (it, whole, moved):
            each.observe(names[:3], {"a": np.ones(3)})
        assert moved.decide(names).tobytes() == it.decide(names).tobytes() == whole.decide(names).tobytes()
        assert len(moved.history("c1")) == 1
        moved.close()
