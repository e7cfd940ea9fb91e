"""Replay: a new session observes the rounds of an old one."""

import contextlib
import itertools
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from ..errors import CocoaxError, SessionError
from . import packing, transfer
from .identity import listed
from .recovery import REPLAYING, check_complete, recorded_schema, warn
from .storage.acknowledged import AcknowledgedCounter
from .storage.database import Damaged
from .storage.events import DECIDED, OBSERVED, Event
from .storage.journal import DROPPED, Journal

_BATCH = 1000  # events in one transaction
_FORGOTTEN = "rounds of that session were forgotten; start a new one, with its state as state="
_LATE = ("pending", "copies", "expires")


def replay(session_class, source: Path, problem, learner, path, options):
    """`Session.replay`."""
    if not source.is_file():
        raise SessionError(f"there is no session in {source}; give the path of one")
    for name in _LATE:
        if name in options:
            raise SessionError(f"late feedback is replayed as it was; leave out {name}=")
    with _copied(source) as (copy, acknowledged):
        old = Journal(copy, salvage=True)
        try:
            return _replay(old, acknowledged, session_class, source, problem, learner, path, options)
        except Damaged as damage:
            raise SessionError(f"{source} is damaged at {damage}, before any round could be read") from None
        finally:
            old.close()


@contextlib.contextmanager
def _copied(source):
    """A copy of the files, which are locked meanwhile: SQLite writes even to files that it only reads."""
    counter = AcknowledgedCounter(source, read_only=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for file in (source, source.with_name(source.name + "-wal")):
                if file.is_file():
                    shutil.copyfile(file, Path(folder, file.name))
            yield Path(folder, source.name), counter.count
    finally:
        counter.close()


def _replay(old, acknowledged, session_class, source, problem, learner, path, options):
    check_complete(old, source)
    if old.fact(DROPPED) is not None:
        raise SessionError(_FORGOTTEN)
    settings, schema = _recorded_settings(old, problem), recorded_schema(old)
    if "state" in options:
        settings.pop("horizon", None)
    _check_copies(settings, problem, old.path)
    session = session_class.__new__(session_class)
    session._mark = REPLAYING
    session.__init__(problem, learner, path, **settings | options)
    try:
        if session.rounds or session.pending:
            raise SessionError(f"{path} is a session already; replay into a new file")
        _play_all(old, schema, session, source)
        session._durable.complete(REPLAYING)
    except BaseException:
        _discard(session)
        raise
    if acknowledged is not None and acknowledged > old.last:
        warn(f"{source}: {acknowledged - old.last} acknowledged event(s) after {old.last} are lost and not replayed")
    return session


def _discard(session):
    """Delete the files of a failed replay, which would open as if it were complete."""
    is_new = session._durable.was_new
    session.close()
    if session.path is not None and is_new:
        transfer.discard(session.path)


def _recorded_settings(old, problem) -> dict:
    recorded = old.fact("signature")
    settings = recorded.get("settings") if isinstance(recorded, dict) else None
    if not isinstance(settings, dict):
        raise Damaged("its signature")
    request = listed(problem.request)
    before = settings.get("request")
    is_apart = before is not None or settings.get("pending")  # else a stored round holds its request
    if before != request and is_apart:
        raise SessionError(f"that session has request={before}, this problem has request={request}; give that")
    return {name: settings.get(name) for name in ((*_LATE, "horizon") if settings.get("pending") else ("horizon",))}


def _check_copies(settings, problem, path):
    """A snapshot holds a decision of each copy: a small file that speaks of many is not believed."""
    copies = settings.get("copies") or settings.get("pending") or 1
    size = sum(os.stat(file).st_size for file in (path, f"{path}-wal") if os.path.exists(file))
    if not isinstance(copies, int) or copies * packing.size_like(problem.domain.start()) > size:
        raise Damaged("its settings")


def _play_all(old, schema, session, source):
    durable, keep_decisions = session._durable, session._keeps_decisions
    requests = recorded_schema(old, "request")
    events = _readable(old, max(durable.copies.largest_field(one) for one in (schema, requests)), source)
    start = last_print = time.monotonic()
    while batch := list(itertools.islice(events, _BATCH)):
        copies = durable.copies.copy()
        copies.request_schema = requests
        durable.commit(copies, [_play_again(copies, event, schema, keep_decisions) for event in batch], schema)
        if time.monotonic() - last_print > 2:
            last_print = time.monotonic()
            print(f"{old.last:,} events replayed in {last_print - start:.0f} s", file=sys.stderr, flush=True)


def _readable(old, size, source):
    try:
        yield from old.follow(size)
    except Damaged as damage:
        warn(f"{source} is damaged at {damage}: what comes after was not replayed")


def _play_again(copies, event, schema, keep_decisions) -> Event:
    is_data = event.kind == OBSERVED or (event.kind == DECIDED and copies.problem.has_requests)
    if is_data and event.round is None:
        raise SessionError(_FORGOTTEN)
    try:
        return event._replace(outcome=copies.play(schema, event, keep_decisions=keep_decisions))
    except CocoaxError as error:
        raise SessionError(f"round {copies.totals.rounds} cannot be replayed: {error}") from None
