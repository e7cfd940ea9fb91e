"""The rounds of one session, observed by another."""

import contextlib
import itertools
import os
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

from ..errors import CocoaxError, SessionError, SessionWarning
from .recovery import largest_field, play_event, recorded_form
from .storage.acknowledged import Witness
from .storage.database import Damaged
from .storage.events import OBSERVED
from .storage.journal import Journal

_TOGETHER = 1000  # events in one transaction
_LATE = ("pending", "copies", "expires")


def replay(make_session, source: Path, problem, learner, path, options):
    """`Session.replay`."""
    if not source.is_file():
        raise SessionError(f"there is no session in {source}; give the path of one")
    for name in _LATE:
        if name in options:
            raise SessionError(f"late feedback is replayed as it was; leave out {name}=")
    with _copied(source) as (copy, acknowledged):
        old = Journal(copy, salvage=True)
        try:
            return _replayed(old, acknowledged, make_session, source, problem, learner, path, options)
        except Damaged as damage:
            raise SessionError(f"{source} is damaged at {damage}, before any round could be read") from None
        finally:
            old.close()


@contextlib.contextmanager
def _copied(source):
    """A copy of the files, which nobody writes meanwhile: SQLite would change what it only reads."""
    witness = Witness(source)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for file in (source, source.with_name(source.name + "-wal")):
                if file.is_file():
                    shutil.copyfile(file, Path(folder, file.name))
            yield Path(folder, source.name), witness.count
    finally:
        witness.close()


def _replayed(old, acknowledged, make_session, source, problem, learner, path, options):
    settings, form = _recorded_settings(old), recorded_form(old)
    if "state" in options:
        settings.pop("horizon", None)
    session = make_session(problem, learner, path, **settings | options)
    try:
        if session.rounds or session.pending:
            raise SessionError(f"{path} is a session already; replay into a new file")
        _play_all(old, form, session._durable, source)
    except BaseException:
        _discard(session)
        raise
    if acknowledged is not None and acknowledged > old.last:
        _warn(f"{source}: {acknowledged - old.last} acknowledged event(s) after {old.last} are lost and not replayed")
    return session


def _discard(session):
    """Half a replay would open as if it were whole."""
    is_new = not session._durable.was_there
    session.close()
    if session.path is not None and is_new:
        for suffix in ("", "-wal", "-acknowledged"):
            with contextlib.suppress(OSError):
                os.unlink(session.path.with_name(session.path.name + suffix))


def _recorded_settings(old) -> dict:
    recorded = old.fact("signature")
    settings = recorded.get("settings") if isinstance(recorded, dict) else None
    if not isinstance(settings, dict):
        raise Damaged("who plays what")
    return {name: settings.get(name) for name in ((*_LATE, "horizon") if settings.get("pending") else ("horizon",))}


def _play_all(old, form, durable, source):
    events = _readable(old, largest_field(form, durable.players), source)
    first = next(events, None)
    began = told = time.monotonic()
    while first is not None:
        batch = itertools.chain([first], itertools.islice(events, _TOGETHER - 1))
        durable.commit(lambda players, batch=batch: _played_again(players, batch, form), form)
        first = next(events, None)
        if time.monotonic() - told > 2:
            told = time.monotonic()
            print(f"{old.last:,} events replayed in {told - began:.0f} s", file=sys.stderr, flush=True)


def _readable(old, size, source):
    try:
        yield from old.follow(size)
    except Damaged as damage:
        _warn(f"{source} is damaged at {damage}: what comes after was not replayed")


def _played_again(players, events, form):
    for event in events:
        if event.kind == OBSERVED and event.round is None:
            raise SessionError("rounds of that session were forgotten; begin a new one, with its state as state=")
        try:
            outcome = play_event(players, form, event)
        except CocoaxError as error:
            raise SessionError(f"round {players.ledger.rounds} cannot be replayed: {error}") from None
        yield event._replace(outcome=outcome)


def _warn(text):
    warnings.warn(text, SessionWarning, stacklevel=2)
