"""Sessions that are killed, or whose files are damaged: nothing acknowledged is lost unnoticed."""

import contextlib
import sqlite3

import jax
import numpy as np
import power_tools as power
import pytest
import session_tools as tools
from slow_tools import slow_but

import cocoax as cx

SHORT, LONG = 23, 100  # rounds
FILES = ("session", "session-wal", "session-acknowledged")


FEW_KILLS = [(tools.RANDOM, 3, 0)]  # whoever learns, the same is written
KILLS = [
    *FEW_KILLS,
    ("Auto", 5, 0),
    *((tools.RANDOM, 16, seed) for seed in range(1, 9)),
    *(("Auto", 16, seed) for seed in range(1, 5)),
]


@pytest.mark.parametrize("name, kills, seed", slow_but(FEW_KILLS, KILLS))
def test_a_kill_at_any_instant_loses_no_acknowledged_round(tmp_path, name, kills, seed):
    """200 kills in all; each process goes on in what the one before left."""
    rng, same, last = np.random.default_rng(seed), tools.Uninterrupted(name), 0
    (tmp_path / "files").mkdir()
    for _ in range(kills):
        in_the_opening = rng.random() < 0.3
        seconds = rng.uniform(0, 0.05) if in_the_opening else rng.uniform(0.05, 0.6)
        last = max(last, tools.run_and_kill(tmp_path / "files" / "session", name, seconds))
        with tools.told() as sentences, tools.session(tools.copied(tmp_path / "files", tmp_path / "copy"), name) as it:
            assert last <= it.rounds <= last + 1
            assert tools.bits(it) == same.after(it.rounds)
        assert not sentences
        last = it.rounds
    assert last > 0


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    return tools.prepared(tmp_path_factory.mktemp("killed"), SHORT)


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    return tools.prepared(tmp_path_factory.mktemp("closed"), SHORT, closed=True)


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Killed when much is in the database, and some in the log of SQLite."""
    folder = tools.prepared(tmp_path_factory.mktemp("long"), LONG - SHORT, SHORT)
    assert all((folder / file).stat().st_size > 20_000 for file in FILES[:2])
    return folder


def _flipped(data, at, by):
    return data[:at] + bytes([data[at] ^ by]) + data[at + 1 :]


def _damaged_ways(data, flips, cuts, seed):
    """Bytes that differ from these somewhere: everywhere in the first 100 and the last 100 of them, and in between."""
    rng, size = np.random.default_rng(seed), len(data)
    ends = [*range(min(100, size)), *range(max(size - 100, 0), size)]
    offsets = {*rng.choice(size, min(flips, size), replace=False).tolist(), *rng.choice(ends, min(flips // 3, size))}
    for at in sorted(offsets):
        yield _flipped(data, at, int(rng.integers(1, 256)))
    for length in sorted({0, 1, size - 1, *rng.integers(0, size, cuts).tolist()}):
        yield data[:length]


def _open_damaged(path, known):
    """The session, or None if it was refused; what it is, is true, and what it lost, it tells."""
    with tools.told() as sentences:
        try:
            it = tools.session(path)
        except cx.SessionError:
            return None
    assert tools.bits(it) == tools.uninterrupted().after(it.rounds)
    assert it.rounds == known or (it.rounds < known and sentences)
    return it


def _assert_goes_on(it, path):
    rounds = it.rounds
    tools.observe(it, 2)
    with it:
        pass
    with tools.told() as sentences, tools.session(path) as again:
        assert tools.bits(again) == tools.uninterrupted().after(rounds + 2)
    assert not sentences


LITTLE_DAMAGE = [
    ("killed", "session", 50),
    ("killed", "session-wal", 80),
    ("killed", "session-acknowledged", 24),
    ("closed", "session", 80),
    ("long", "session", 25),
    ("long", "session-wal", 25),
]
DAMAGE = [*LITTLE_DAMAGE, *((state, file, 1800) for state, file, flips in LITTLE_DAMAGE if flips > 24)]


@pytest.mark.parametrize("state, file, flips", slow_but(LITTLE_DAMAGE, DAMAGE))
def test_damage_is_noticed(request, state, file, flips):
    """A flipped byte or a cut: refused, or gone on from a true state after fewer rounds, with a warning."""
    folder, known = request.getfixturevalue(state), LONG if state == "long" else SHORT
    data, opened = (folder / file).read_bytes(), 0
    tools.uninterrupted().after(known + 2)
    with power.memory_folder() as memory, tools.little_memory(64 * 2**20):
        for number, changed in enumerate(_damaged_ways(data, flips, 30, flips)):
            path = tools.copied(folder, memory / "copy")
            path.with_name(file).write_bytes(changed)
            it = _open_damaged(path, known)
            if it is None:
                continue
            opened += 1
            with tools.told():
                if number % 8 == 0:
                    _assert_goes_on(it, path)
                it.close()
    assert opened > 0


@pytest.mark.parametrize("at", [0, 8])
def test_a_damaged_count_of_acknowledged_rounds_is_told(tmp_path, killed, at):
    path = tools.copied(killed, tmp_path / "copy")
    count = path.with_name("session-acknowledged")
    count.write_bytes(_flipped(count.read_bytes(), at, 1))
    with tools.told() as sentences, tools.session(path) as it:
        assert it.rounds == SHORT
    assert "session-acknowledged is damaged: it is not known whether rounds are missing" in str(sentences)


def test_a_header_that_forbids_writing_is_refused_when_opening(tmp_path, closed):
    """It opened, and its first round was refused as if the disk were full."""
    path = tools.copied(closed, tmp_path / "copy")
    path.write_bytes(_flipped(path.read_bytes(), 18, 2 ^ 7))  # SQLite's number of the format for writing
    with pytest.raises(cx.SessionError, match="cannot write"):
        tools.session(path)


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_gone_is_missed(tmp_path, killed, file):
    path = tools.copied(killed, tmp_path / "copy")
    path.with_name(file).unlink()
    it = _open_damaged(path, SHORT)
    if file == "session-acknowledged":  # it is a witness only
        assert it.rounds == SHORT
    if file == "session":  # what is left was not touched
        assert it is None
        (path.parent / "session").write_bytes((killed / "session").read_bytes())
        it = tools.session(path)
        assert it.rounds == SHORT
    if it is not None:
        it.close()


def _change(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_replay_takes_the_rounds_before_the_damage(tmp_path, killed):
    path = tools.copied(killed, tmp_path / "copy")
    _change(path, "UPDATE events SET round = zeroblob(length(round)) WHERE number = 22")  # after the last snapshot
    with pytest.raises(cx.SessionError, match="damaged at event 22"):
        tools.session(path)
    with tools.told() as sentences:
        again = cx.Session.replay(path, tools.problem(), tools.learner(), tmp_path / "new", key=jax.random.key(7))
    assert any("damaged at event 22" in each for each in sentences)
    with again:
        assert again.rounds == 21
        assert tools.bits(again) == tools.uninterrupted().after(21)
        tools.observe(again, 3)
    with tools.session(tmp_path / "new") as it:
        assert tools.bits(it) == tools.uninterrupted().after(24)


CHANGES = [
    "UPDATE events SET round = zeroblob(length(round)) WHERE number = 3",
    "UPDATE events SET outcome = zeroblob(length(outcome)) WHERE number = 3",
    "UPDATE events SET ticket = 'a' WHERE number = 3",
    "UPDATE events SET chain = zeroblob(16) WHERE number = 3",
    "UPDATE events SET round = NULL, contents = zeroblob(16) WHERE number = 3",
    "DELETE FROM events WHERE number = 3",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_damage_before_the_last_snapshot_is_noticed_when_the_past_is_asked_for(tmp_path, closed, statement):
    path = tools.copied(closed, tmp_path / "copy")
    _change(path, statement)
    with tools.session(path) as it:
        assert tools.bits(it) == tools.uninterrupted().after(SHORT)
        with pytest.raises(cx.SessionError, match="damaged at event 3"):
            it.history()


def test_a_damaged_snapshot_is_replaced_by_the_one_before(tmp_path, closed):
    path = tools.copied(closed, tmp_path / "copy")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        newest = connection.execute("SELECT max(event) FROM snapshots").fetchone()[0]
        connection.execute("UPDATE parts SET data = zeroblob(length(data)) WHERE event = ?", (newest,))
    with pytest.warns(cx.SessionWarning, match="brought back from the one before"):
        it = tools.session(path)
    with it:
        assert tools.bits(it) == tools.uninterrupted().after(SHORT)
