"""What happens in a session, as rows of a database that are chained by checksums."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from .database import Damaged, Database, checksum

DECIDED, OBSERVED, SKIPPED = "decided", "observed", "skipped"


class Event(NamedTuple):
    """What happened: a ticket was given, observed or skipped. `round` is None once it was forgotten."""

    kind: str
    ticket: str | None
    round: bytes | None
    played: bytes | None
    outcome: bytes | None  # with the next state's checksum: what a replay must come to


def write(database: Database, number: int, chain: bytes, event: Event) -> bytes:
    """The checksum of the event and of all before it, of which `chain` was the last."""
    contents = checksum(event.round or b"", event.played or b"")
    new = _link(chain, number, event, contents) or b""
    database.run("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (number, *event, contents, new))
    return new


def read(database: Database, size: int, last: int = 0, chain: bytes = b"") -> Iterator[tuple[int, bytes, Event]]:
    """(number, checksum, event) of those after the last one known, each checked; no field is longer than `size`."""
    data = ", ".join(f"iif(length({name}) > :size, 'too long', {name})" for name in ("round", "played", "outcome"))
    query = (
        f"SELECT number, substr(kind, 1, 1000), substr(ticket, 1, 1000), {data}, substr(contents, 1, 100), "
        "substr(chain, 1, 100) FROM events WHERE number > :last ORDER BY number"
    )
    for number, kind, ticket, round, played, outcome, contents, link in database.read(
        query, {"size": size, "last": last}
    ):
        event = Event(kind, ticket, round, played, outcome)
        good = number == last + 1 and isinstance(link, bytes) and link == _link(chain, number, event, contents)
        if good and (round is not None or played is not None):
            good = contents == checksum(round or b"", played or b"")
        if not good:
            raise Damaged(f"event {last + 1}")
        last, chain = number, link
        yield number, link, event


def _link(chain, number, event: Event, contents) -> bytes | None:
    """The checksum of an event and of all before it."""
    texts, data = event[:2], event[2:]
    if not all(isinstance(text, str | None) for text in texts) or not isinstance(contents, bytes):
        return None
    if not all(isinstance(each, bytes | None) for each in data):
        return None
    return checksum(chain, str(number), json.dumps(texts), event.outcome or b"", contents)
