"""The events of a session, as rows of a database that are chained by checksums."""

import contextlib
import json
import time
from collections.abc import Generator, Iterable
from typing import NamedTuple

from .database import Damaged, Database, Statement, checksum

DECIDED, OBSERVED, SKIPPED = "decided", "observed", "skipped"


class Event(NamedTuple):
    """A ticket was given, observed or skipped. `round` is None once it was forgotten."""

    kind: str
    ticket: str | None
    round: bytes | None
    played: bytes | None
    outcome: bytes | None  # with the checksum of the next state: a replay must give the same


def insertions(events: Iterable[Event], last: int, chain: bytes) -> tuple[list[Statement], bytes]:
    """The statements that store events after number `last`, whose checksum is `chain`; and the new last checksum."""
    statements = []
    for number, event in enumerate(events, last + 1):
        contents = checksum(event.round or b"", event.played or b"")
        chain = _link(chain, number, event, contents) or b""
        statements.append(("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (number, *event, contents, chain)))
    return statements, chain


def read(database: Database, size: int, last: int = 0, chain: bytes = b"") -> Generator[tuple[int, bytes, Event]]:
    """Yield (number, checksum, event) after number `last`, each checked; no field may be longer than `size`."""
    query = (
        "SELECT number, kind, ticket, round, played, outcome, contents, chain FROM events WHERE number > ? "
        "ORDER BY number"
    )
    for number, kind, ticket, round, played, outcome, contents, link in _or_too_long(
        database.read(query, last, longest=size), last
    ):
        event = Event(kind, ticket, round, played, outcome)
        good = number == last + 1 and isinstance(link, bytes) and link == _link(chain, number, event, contents)
        if good and (round is not None or played is not None):
            good = contents == checksum(round or b"", played or b"")
        if not good:
            raise Damaged(f"event {last + 1}")
        last, chain = number, link
        yield number, link, event


def read_some(database: Database, size: int, last: int, chain: bytes, seconds: float) -> list[tuple[int, bytes, Event]]:
    """The events after number `last` that are read within so many seconds, and one at least if there are any."""
    until, some = time.monotonic() + seconds, []
    with contextlib.closing(read(database, size, last, chain)) as rows:
        for row in rows:
            some.append(row)
            if time.monotonic() > until:
                break
    return some


def _or_too_long(rows, last):
    try:
        for row in rows:
            last = row[0]
            yield row
    except Damaged as damage:
        raise Damaged(f"event {last + 1} ({damage})") from None


def _link(chain, number, event: Event, contents) -> bytes | None:
    """The checksum of an event and all before it; None if a field has the wrong type."""
    texts, data = event[:2], event[2:]
    if not all(isinstance(text, str | None) for text in texts) or not isinstance(contents, bytes):
        return None
    if not all(isinstance(field, bytes | None) for field in data):
        return None
    return checksum(chain, str(number), json.dumps(texts), event.outcome or b"", contents)
