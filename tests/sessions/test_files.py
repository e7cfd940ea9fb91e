"""Files from strangers: nothing in them is executed, nothing large is believed, and all of them are refused."""

import contextlib
import json
import sqlite3

import jax
import pytest
import session_tools as tools

import cocoax as cx
from cocoax.sessions.storage import database, events

COLUMNS = [
    *(("facts", column) for column in ("name", "value", "checksum")),
    *(("events", column) for column in ("kind", "ticket", "round", "played", "outcome", "contents", "chain")),
    *(("snapshots", column) for column in ("notes", "checksum")),
    ("parts", "data"),
]


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    return tools.prepared(tmp_path_factory.mktemp("genuine"), 9, every=4)


@pytest.fixture
def path(tmp_path, genuine):
    return tools.copied(genuine, tmp_path / "copy")


def _change(path, statement, *arguments):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement, arguments)


def _sign(path):
    """Make all checksums right again."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for name, value in connection.execute("SELECT name, value FROM facts").fetchall():
            checksum = database.checksum(name, value)
            connection.execute("UPDATE facts SET checksum = ? WHERE name = ?", (checksum, name))
        chain, chains = b"", {0: b""}
        for number, *event in connection.execute(
            "SELECT number, kind, ticket, round, played, outcome FROM events ORDER BY number"
        ).fetchall():
            data = [each.encode() if isinstance(each, str) else each or b"" for each in event[2:4]]
            contents = database.checksum(*data)
            chain = chains[number] = events._link(chain, number, events.Event(*event), contents) or b""
            connection.execute("UPDATE events SET contents = ?, chain = ? WHERE number = ?", (contents, chain, number))
        for event, notes in connection.execute("SELECT event, notes FROM snapshots").fetchall():
            with contextlib.suppress(ValueError, RecursionError):
                notes = json.dumps(json.loads(notes) | {"chain": chains[event].hex()})
            state = b"".join(
                data.encode() if isinstance(data, str) else data
                for (data,) in connection.execute("SELECT data FROM parts WHERE event = ? ORDER BY part", (event,))
            )
            checksum = database.checksum(str(event), notes, state)
            connection.execute("UPDATE snapshots SET notes = ?, checksum = ? WHERE event = ?", (notes, checksum, event))


def _payload(marker):
    """What would make a file, if anybody unpickled it."""
    return f"cos\nsystem\n(S'touch {marker}'\ntR.".encode()


def test_a_schema_that_is_no_text_is_refused(path):
    with tools.session(path):
        pass
    data = path.read_bytes()
    at = data.index(b"CREATE TABLE facts")
    path.write_bytes(data[: at + 7] + b"\xec" + data[at + 8 :])
    tools.assert_refused(path)


def test_the_tool_signs_what_it_changed(path):
    _sign(path)
    with tools.session(path) as it:
        assert tools.bits(it) == tools.uninterrupted().after(9)


def test_a_file_of_pickled_code_is_refused(tmp_path):
    marker = tmp_path / "marker"
    (tmp_path / "session").write_bytes(_payload(marker))
    tools.assert_refused(tmp_path / "session")
    assert not marker.exists()


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("table, column", COLUMNS)
def test_pickled_code_in_a_column_is_refused(tmp_path, path, table, column, as_text, signed):
    marker = tmp_path / "marker"
    payload = _payload(marker).decode() if as_text else _payload(marker)
    _change(path, f"UPDATE OR REPLACE {table} SET {column} = ?", payload)
    if signed:
        with contextlib.suppress(TypeError, AttributeError):  # what cannot be signed
            _sign(path)
    if signed and column in ("checksum", "contents", "chain"):  # nothing is left of the payload
        with tools.session(path) as it:
            assert it.rounds == 9
        return
    tools.assert_refused(path)
    with tools.told(), contextlib.suppress(cx.SessionError):  # which needs no snapshots
        again = cx.Session.replay(path, tools.problem(), tools.learner(), key=jax.random.key(7))
        assert tools.bits(again) == tools.uninterrupted().after(again.rounds)
    assert not marker.exists()


def _nested(depth):
    return '{"list": [' * depth + "]}" * depth


FORMS = {
    "10**12 entries": json.dumps({"dtype": "float64", "shape": [10**6, 10**6]}),
    "10**30 entries": json.dumps({"dtype": "float64", "shape": [10**30]}),
    "negative": json.dumps({"dtype": "float64", "shape": [-1, -8]}),
    "an object": json.dumps({"dtype": "O", "shape": [1]}),
    "records": json.dumps({"dtype": "f8,O", "shape": [1]}),
    "deep": _nested(400),
    "deeper": _nested(100_000),
    "wide": json.dumps({"list": [{"dtype": "int8", "shape": []}] * 20_000}),
    "a long number": '{"dtype": "float64", "shape": [' + "9" * 5000 + "]}",
    "no JSON": "}",
    "a list": "[]",
    "null": "null",
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_cannot_be_is_refused(path, name):
    _change(path, "UPDATE facts SET value = ? WHERE name = 'round'", FORMS[name])
    _sign(path)
    tools.assert_refused(path)


SIGNATURES = ["7", "{}", "[]", '"text"', _nested(100_000), json.dumps({"version": "0.1.0"})]


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_signature_that_cannot_be_is_refused(path, signature):
    _change(path, "UPDATE facts SET value = ? WHERE name = 'signature'", signature)
    _sign(path)
    tools.assert_refused(path)


@pytest.mark.parametrize(
    "part, value",
    [("learner", 5), ("learner", []), ("settings", []), ("version", {}), ("decision", None), ("loss", ["a", "b"])],
)
def test_a_signature_with_a_part_that_cannot_be_is_refused(path, part, value):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        known = json.loads(connection.execute("SELECT value FROM facts WHERE name = 'signature'").fetchone()[0])
    _change(path, "UPDATE facts SET value = ? WHERE name = 'signature'", json.dumps(known | {part: value}))
    _sign(path)
    tools.assert_refused(path)


HUGE = {
    "a round": ("UPDATE events SET round = zeroblob(30000000) WHERE number = 9", True),
    "what was played": ("UPDATE events SET played = zeroblob(30000000) WHERE number = 9", True),
    "an outcome": ("UPDATE events SET outcome = zeroblob(30000000) WHERE number = 9", True),
    "a kind": ("UPDATE events SET kind = hex(zeroblob(15000000)) WHERE number = 9", True),
    "a ticket": ("UPDATE events SET ticket = hex(zeroblob(15000000)) WHERE number = 9", True),
    "a checksum": ("UPDATE events SET chain = zeroblob(30000000) WHERE number = 9", False),
    "a state": ("UPDATE parts SET data = zeroblob(30000000)", True),
    "notes": ("UPDATE snapshots SET notes = hex(zeroblob(15000000))", True),
    "a fact": ("UPDATE facts SET value = hex(zeroblob(15000000)) WHERE name = 'round'", True),
    "a number": ("UPDATE events SET number = 9223372036854775807 WHERE number = 9", True),
    "a short round": ("UPDATE events SET round = x'00' WHERE number = 9", True),
    "a short decision": ("UPDATE events SET played = x'00' WHERE number = 9", True),
    "another kind": ("UPDATE events SET kind = 'skipped', ticket = 'a' WHERE number = 9", True),
    "a ticket of nobody": ("UPDATE events SET ticket = 'a' WHERE number = 9", True),
    "parts of a state": ("INSERT INTO parts SELECT event, 1, zeroblob(30000000) FROM snapshots", True),
    "tickets": ('UPDATE snapshots SET notes = \'{"tickets": [[1]], "given": 0, "versions": [0]}\'', True),
}


@pytest.mark.parametrize("name", HUGE)
def test_what_is_too_large_or_too_small_is_refused(path, name):
    statement, signed = HUGE[name]
    _change(path, statement)
    if signed:
        _sign(path)
    tools.assert_refused(path)


TEXTS = [
    "facts SET value = ? WHERE name = 'round'",
    "facts SET checksum = ?",
    "snapshots SET notes = ?",
    "parts SET data = ?",
]
TEXTS += [f"events SET {column} = ? WHERE number = 9" for column in ("kind", "ticket", "round", "outcome", "chain")]


@pytest.mark.parametrize("where", TEXTS)
def test_a_long_text_that_begins_with_nul_is_not_read(path, where):
    """SQLite counts its length as 0."""
    _change(path, f"UPDATE {where.replace('?', 'CAST(zeroblob(60000000) AS TEXT)')}")
    tools.assert_refused(path)
    with tools.little_memory(100 * 2**20), tools.told(), contextlib.suppress(cx.SessionError):  # it copies the file
        cx.Session.replay(path, tools.problem(), tools.learner(), key=jax.random.key(7)).close()


@pytest.mark.parametrize(
    "settings", [{"pending": 10**7, "copies": 10**7}, {"pending": 10**6}, {"pending": 2, "copies": "many"}]
)
def test_a_small_file_that_speaks_of_many_copies_is_not_believed(path, settings):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        known = json.loads(connection.execute("SELECT value FROM facts WHERE name = 'signature'").fetchone()[0])
    known["settings"] = {"horizon": None, **settings}
    _change(path, "UPDATE facts SET value = ? WHERE name = 'signature'", json.dumps(known))
    _sign(path)
    with tools.little_memory(), pytest.raises(cx.SessionError, match="its settings"):
        cx.Session.replay(path, tools.problem(), tools.learner("Auto"), key=jax.random.key(7))


MADE = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
    "a view": "CREATE VIEW v AS SELECT * FROM events",
    "an index": "CREATE INDEX i ON events(kind)",
    "a table": "CREATE TABLE more(x)",
    "a virtual table": "CREATE VIRTUAL TABLE words USING fts5(x)",
    "a hidden trigger": (
        "INSERT INTO sqlite_schema VALUES ('trigger', 'sqlite_t', 'events', 0, "
        "'CREATE TRIGGER sqlite_t AFTER INSERT ON events BEGIN DELETE FROM events; END')"
    ),
    "no table": "DROP TABLE parts",
    "another application": "PRAGMA application_id = 7",
    "a newer format": "PRAGMA user_version = 2",
}


@pytest.mark.parametrize("name", MADE)
def test_a_database_with_more_or_less_in_it_is_refused(path, name):
    try:
        _change(path, MADE[name])
    except sqlite3.OperationalError as error:
        pytest.skip(str(error))
    tools.assert_refused(path)
