"""Requests that come at the same time become one call of the fleet, and wait for the disk once."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import SessionError, StorageError
from ..sessions.fleet import Fleet
from .columns import joined, listed, shape_of
from .errors import Refused

_log = logging.getLogger("cocoax.service")


@dataclass(slots=True, eq=False)
class Call:
    """One request that waits for its answer."""

    kind: str
    names: list
    data: Any = None  # requests or rounds, stacked
    played: Any = None
    at: np.ndarray | None = None
    tickets: list[str] | None = None  # of late feedback
    labels: list | None = None
    single: bool = False
    size: int = 0  # bytes of its body
    since: float = field(default_factory=time.perf_counter)
    future: asyncio.Future | None = None


class Batcher:
    """A queue, and the one thread that calls the fleet.

    Calls of one campaign are served in the order in which they came, each in a batch of its own. If a batch is refused,
    each half of it is tried again, and so on: a bad round refuses its own request alone, and the others wait for the
    disk a few times.
    """

    def __init__(
        self,
        fleet: Any,  # a Fleet, or what looks like one
        *,
        longest: int = 4096,
        most_bytes: int = 1 << 26,
        largest: int = 1024,
        most_campaigns: int = 250_000,
        served: Callable[[str, int, int, float], None] = lambda *_: None,
    ):
        self.fleet = fleet
        self._longest, self._most_bytes, self._largest = longest, most_bytes, largest
        self._most_campaigns = most_campaigns  # each takes memory as long as the file lives
        self._served = served  # is told (kind, requests, campaigns, seconds) of each call of the fleet
        self._queue: deque[Call] = deque()
        self._bytes = 0  # in the queue
        self._changed = threading.Condition()
        self._stopping = False
        self.failure: StorageError | None = None  # until something can be stored again
        self._thread = threading.Thread(target=self._run, name="fleet", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self):
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._stopping

    def stop(self):
        """Serve what waits, and end."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    async def answer(self, call: Call) -> dict:
        """What the call is answered with; raises `Refused` or a `SessionError`."""
        with self._changed:
            if not self.is_alive or self._loop is None:
                raise Refused(503, "the service is stopping; ask again later")
            if len(self._queue) >= self._longest or self._bytes + call.size > self._most_bytes:
                raise Refused(429, f"{len(self._queue)} requests wait already; ask again later")
            call.future = self._loop.create_future()
            self._queue.append(call)
            self._bytes += call.size
            self._changed.notify()
        return await call.future

    def _run(self):
        while True:
            with self._changed:
                while not self._queue and not self._stopping:
                    self._changed.wait()
                if not self._queue:
                    return
                batch = self._take()
            answers = [pair for group in self._groups(batch) for pair in zip(group, self._serve(group))]
            try:
                self._loop.call_soon_threadsafe(_deliver, answers)  # pyright: ignore[reportOptionalMemberAccess]
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

    def _take(self) -> list[Call]:
        """The calls of the next batch: the oldest ones, but one for a campaign."""
        taken, left, busy, size = [], [], set(), 0
        for call in self._queue:
            if size >= self._largest:  # nothing fits any more: names of thousands of calls are not looked at
                left.append(call)
                continue
            names = set(call.names)
            if busy.isdisjoint(names) and (not taken or size + len(names) <= self._largest):
                taken.append(call)
                size += len(names)
                self._bytes -= call.size
            else:
                left.append(call)
            busy |= names
        self._queue = deque(left)
        return taken

    def _groups(self, batch: list[Call]) -> list[list[Call]]:
        """Calls that the fleet can serve together."""
        groups: dict[Any, list[Call]] = {}
        for call in batch:
            given = call.tickets is None, call.data is None, call.played is None
            groups.setdefault((call.kind, *given, shape_of(call.data), shape_of(call.played)), []).append(call)
        return list(groups.values())

    def _serve(self, calls: list[Call]) -> list:
        """Answers or errors of calls of one shape."""
        began = time.perf_counter()
        try:
            answers = self._together(calls)
        except Exception as error:
            if isinstance(error, StorageError):  # of the disk, whatever was asked
                self.failure = error
                return [error] * len(calls)
            if len(calls) > 1:  # nothing counts twice, for every round has its number now
                half = len(calls) // 2
                return [*self._serve(calls[:half]), *self._serve(calls[half:])]
            if not isinstance(error, SessionError | Refused):
                _log.exception("a %s failed", calls[0].kind)
            return [error]
        if calls[0].kind != "decide":  # which need not store anything
            self.failure = None
        self._served(calls[0].kind, len(calls), sum(len(call.names) for call in calls), time.perf_counter() - began)
        return answers

    def _together(self, calls: list[Call]) -> list[dict]:
        kind, names = calls[0].kind, [name for call in calls for name in call.names]
        tickets = None if calls[0].tickets is None else [ticket for call in calls for ticket in call.tickets or ()]
        may_begin = kind in ("decide", "begin") or (kind == "observe" and not self.fleet.is_late)
        unknown = [] if may_begin else [name for name in names if name not in self.fleet]
        if unknown:
            raise Refused(404, f"there is no campaign {unknown[0]!r}; it has not begun, or has ended")
        if may_begin:
            self._check_room(names)
        if kind == "decide":
            return self._decided(calls, names, tickets)
        if kind == "observe":
            return self._observed(calls, names, tickets)
        if kind == "skip":
            self.fleet.skip(names, tickets=tickets)
        elif kind == "end":
            self.fleet.end(names)
        else:
            budgets = joined([call.data for call in calls])
            (self.fleet.begin if kind == "begin" else self.fleet.change)(names, budgets=budgets)
        return [{"names": call.names} for call in calls]

    def _check_room(self, names: list):
        """Raise if too many campaigns would begin: names that somebody makes up would fill the memory."""
        room = max(self._most_campaigns - len(self.fleet), 0)
        if len(names) > room and len({name for name in names if name not in self.fleet}) > room:
            most = self._most_campaigns
            raise Refused(409, f"there may be {most:,} campaigns; end some, or start it with a larger --campaigns")

    def _decided(self, calls: list[Call], names: list, tickets: list | None) -> list[dict]:
        answer = self.fleet.decide(names, joined([call.data for call in calls]), tickets=tickets)
        decisions, new = answer if self.fleet.is_late else (answer, None)
        parts = self._split(calls, {"decisions": decisions, "rounds": self.fleet.rounds(names)})
        if new is not None:
            left = iter(new)
            for call, part in zip(calls, parts):
                own = [next(left) for _ in call.names]
                part |= {"ticket": own[0]} if call.single else {"tickets": own}
        return parts

    def _observed(self, calls: list[Call], names: list, tickets: list | None) -> list[dict]:
        """Every round gets its number, or has a ticket, so that none counts twice if a batch is tried again."""
        fleet, at = self.fleet, None
        if not fleet.is_late:
            for call in calls:
                if call.at is None:
                    call.at = np.array([_rounds(fleet, name) for name in call.names], np.int64)
            at = np.concatenate([call.at for call in calls if call.at is not None])
        elif any(call.at is not None for call in calls):
            raise Refused(422, "this fleet has late feedback; give the tickets that decide answered with, and not at")
        outcome = fleet.observe(
            names,
            joined([call.data for call in calls]),
            joined([call.played for call in calls]),
            at=at,
            tickets=tickets,
            labels=[label for call in calls for label in call.labels or [None] * len(call.names)],
        )
        figures = {"loss": outcome.loss, "constraint": outcome.constraint, "multiplier": outcome.multiplier}
        return self._split(calls, {**figures, "rounds": fleet.rounds(names)})

    def _split(self, calls: list[Call], answers: dict) -> list[dict]:
        parts, place = [], 0
        for call in calls:
            parts.append(listed(answers, place if call.single else slice(place, place + len(call.names))))
            place += len(call.names)
        return parts


def _rounds(fleet: Fleet, name) -> int:
    return int(fleet.rounds([name])[0]) if name in fleet else 0


def _deliver(answers):
    for call, answer in answers:
        if call.future.done():  # its client has gone
            continue
        if isinstance(answer, Exception):
            call.future.set_exception(answer)
        else:
            call.future.set_result(answer)
