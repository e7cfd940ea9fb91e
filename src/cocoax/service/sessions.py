"""Sessions by name, served as a fleet is."""

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np

from ..comparators.certificate import Certificate
from ..errors import ConflictError, SessionError
from ..learners.base import Outcome
from ..sessions.session import Session
from .batching import Batcher, Call
from .columns import listed
from .errors import Refused


class Sessions:
    """Looks like a fleet whose campaigns are these sessions. Each has its own problem, file and tickets."""

    def __init__(self, sessions: Mapping[str, Session]):
        self._sessions = dict(sessions)
        for name, session in self._sessions.items():
            if not isinstance(session, Session) or not isinstance(name, str):
                raise SessionError(f"sessions must be a dict of names and sessions, got {name!r}")

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, name: Any) -> bool:
        return name in self._sessions

    def __getitem__(self, name: str) -> Session:
        return self._sessions[name]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._sessions)

    def compile(self, like: Any = None):
        for session in self._sessions.values():
            session.compile(like)
            session.summary()  # with the certificate, if there is one

    def rounds(self, names: Iterable[str]) -> np.ndarray:
        return np.array([self._sessions[name].rounds for name in names])

    def history(self, name: str) -> np.ndarray:
        return self._sessions[name].history()

    def certificate(self, name: str, *, lmos: int = 20) -> Certificate:
        return self._sessions[name].certificate(lmos=lmos)

    def regret_bounds(self, names: Iterable[str]) -> np.ndarray:
        return np.array([self._sessions[name].certificate(lmos=7).regret for name in names])

    def summary(self, name: str | None = None) -> dict:
        """Of one session; without a name, the totals of all, as those of a fleet."""
        if name is not None:
            return {"campaign": name, **self._sessions[name].summary()}
        rows = [session.summary() for session in self._sessions.values()]
        rounds, loss = (sum(row[field] for row in rows) for field in ("rounds", "loss"))
        return {
            "path": None,
            "campaigns": len(rows),
            "rounds": rounds,
            "loss": loss,
            "mean_loss": loss / rounds if rounds else None,
            "violation": _by_constraint(rows, "violation", sum),
            "hard_violation": _by_constraint(rows, "hard_violation", sum),
            "mean_multiplier": _by_constraint(rows, "multiplier", lambda values: sum(values) / len(values)),
            "largest_multiplier": _by_constraint(rows, "multiplier", max),
            "alarms": sum(row["alarm"] is not None for row in rows),
        }

    def close(self):
        for session in self._sessions.values():
            session.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _by_constraint(rows: list[dict], field: str, joined: Any) -> dict:
    names = dict.fromkeys(name for row in rows for name in row[field])
    return {name: joined([row[field][name] for row in rows if name in row[field]]) for name in names}


class SessionBatcher(Batcher):
    """Calls of sessions, one by one: each has a disk to wait for."""

    fleet: Sessions

    def _groups(self, batch: list[Call]) -> list[list[Call]]:
        return [[call] for call in batch]

    def _together(self, calls: list[Call]) -> list[dict]:
        return [self._answer(call) for call in calls]

    def _answer(self, call: Call) -> dict:
        if call.kind in ("end", "begin", "change") or len(call.names) != 1:
            raise Refused(422, "sessions do not begin, change or end, and a request names one of them")
        name = call.names[0]
        if name not in self.fleet:
            raise Refused(404, f"there is no session {name[:200]!r}; GET /campaigns lists them")
        session, data, played = self.fleet[name], _first(call.data), _first(call.played)
        asked = None if call.tickets is None else call.tickets[0]
        if call.kind == "skip":
            session.skip(asked)
            return {"names": call.names}
        if call.kind == "decide":
            decision = session.decide(data, ticket=asked)
            ticket = asked or (session.pending[-1] if session.pending else None)
            stacked = jax.tree.map(lambda leaf: leaf[None], decision)
            answer = {"decisions": stacked, "rounds": np.array([session.rounds])}
            return listed(answer, 0 if call.single else slice(1)) | ({"ticket": ticket} if ticket else {})
        outcome = self._outcome(session, call, asked, data, played)
        figures = {"loss": outcome.loss, "constraint": outcome.constraint, "multiplier": outcome.multiplier}
        stacked = {name: np.asarray(figure)[None] for name, figure in figures.items()}
        return listed({**stacked, "rounds": np.array([session.rounds])}, 0 if call.single else slice(1))

    def _outcome(self, session: Session, call: Call, ticket: str | None, data, played) -> Outcome:
        """The outcome of the round; if the call was made before, that of then."""
        is_over = ticket is not None and ticket not in session.pending
        if is_over and (before := session.outcome(ticket)) is not None:
            return before
        if call.at is not None:
            ahead = session.rounds - int(call.at[0])
            if ahead == 1 and (before := session.outcome()) is not None:
                return before
            if ahead:
                raise ConflictError(f"it has {session.rounds} rounds; at must be that, or one less to repeat")
        label = None if call.labels is None else call.labels[0]
        return session.observe(data, played, ticket=ticket, label=label)


def _first(tree: Any) -> Any:
    return None if tree is None else jax.tree.map(lambda leaf: leaf[0], tree)
