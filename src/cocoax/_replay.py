"""The rounds of one session, observed by another."""

import itertools
import sys
import time
import warnings
from pathlib import Path

from ._durable import largest_field, play_event, recorded_form
from ._journal import OBSERVED, Damaged, Journal
from .errors import SessionError, SessionWarning

_TOGETHER = 1000  # events in one transaction


def replay(make_session, source, problem, learner, path, key, options):
    """`Session.replay`."""
    old = Journal(Path(source).absolute(), must_exist=True, salvage=True)
    try:
        settings, form = _late_feedback(old), recorded_form(old)
        session = make_session(problem, learner, path, key=key, **settings | options)
        try:
            if session.rounds or session.pending:
                raise SessionError(f"{path} is a session already; replay into a new file")
            _replay(old, form, session._durable)
        except BaseException:
            session.close()
            raise
        return session
    except Damaged as damage:
        raise SessionError(f"{source} is damaged at {damage}, before any round could be read") from None
    finally:
        old.close()


def _late_feedback(old) -> dict:
    recorded = old.fact("signature")
    settings = recorded.get("settings") if isinstance(recorded, dict) else None
    if not isinstance(settings, dict):
        raise Damaged("who plays what")
    names = ("pending", "copies", "expires", "horizon") if settings.get("pending") else ("horizon",)
    return {name: settings.get(name) for name in names}


def _replay(old, form, durable):
    events = _readable(old, largest_field(form, durable.players))
    first = next(events, None)
    began = told = time.monotonic()
    while first is not None:
        batch = itertools.chain([first], itertools.islice(events, _TOGETHER - 1))
        durable.commit(_played_again(batch, form, durable), form)
        first = next(events, None)
        if time.monotonic() - told > 2:
            told = time.monotonic()
            print(f"{old.last:,} events replayed in {told - began:.0f} s", file=sys.stderr, flush=True)


def _readable(old, size):
    try:
        yield from old.follow(size)
    except Damaged as damage:
        warnings.warn(
            f"{old.path} is damaged at {damage}: what comes after was not replayed", SessionWarning, stacklevel=2
        )


def _played_again(events, form, durable):
    for event in events:
        if event.kind == OBSERVED and event.round is None:
            raise SessionError("rounds of that session were forgotten; begin a new one, with its state as state=")
        yield event._replace(outcome=play_event(durable.players, form, event))
