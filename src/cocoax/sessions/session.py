"""A game against the real world: decisions in production, one at a time, that survive a power cut."""

import os
import threading

import jax
import numpy as np

from ..comparators.hindsight import hindsight
from ..core import check, tree
from ..errors import LearnerError, ProblemError, SessionError
from ..games.game import Game
from ..learners.base import AbstractLearner
from ..problem.problem import Problem
from . import packing
from .arguments import as_file, checked_ticket, each_round, first_states, late_settings, on_host
from .copies import Players
from .history import game_of, rows_of
from .identity import signature
from .recovery import Durable
from .replay import replay
from .schema import Form
from .step import Observed
from .storage.events import DECIDED, OBSERVED, SKIPPED, Event


class Session:
    """A learner that takes decisions in the real world.

    **Arguments:**

    - `path`: the file that it lives in: there, the same line reopens it; not there, it is begun. Without a path nothing
      survives.
    - `key`: the source of all randomness, when the session begins; later it goes on from where it was.
    - `state`: `game.state` of a game over logged data, to begin from; `horizon`, `start`: as in `play`.
    - `pending`: for feedback that comes late, how many rounds may be waited for at a time; 0 where each round is
      observed before the next decision. Rounds then have tickets: `decide(ticket)`, `observe(round, ticket=ticket)`.
    - `copies`: how many independent copies of the learner share the late rounds, `pending` by default. Each then
      decides, observes, decides, ... as its proofs assume, so that bounds of learners without a horizon hold over each
      copy's rounds and add up: c T^p becomes at most c pending^(1-p) T^p (docs/sessions.md has the conditions). With
      fewer copies each learns from more rounds, with gradients at what was played then, without a proof.
    - `expires`: a ticket is given up when this many were given after it; by default never.
    - `keep_rounds`: keep all rounds, which `regret` and `replay` need; or only those since the last snapshot.
    - `snapshot_every`: how many events there are between snapshots: what reopening after a crash replays at most.

    `decide` gives the same until its round is observed. `observe` returns when the round is on disk, raises
    `SessionError` when it is not, and then nothing has changed. Methods may be called from several threads.

    >>> import jax
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: -r["value"] * x[0], lambda x, r: x[0] - 0.5)
    >>> with cx.Session(problem, cx.learners.Auto(), key=jax.random.key(0)) as session:
    ...     for value in [1.0, 2.0, 1.5]:
    ...         decision = session.decide()
    ...         outcome = session.observe({"value": value})
    ...     len(session.history()), session.summary()["rounds"]
    (3, 3)
    """

    def __init__(
        self,
        problem: Problem,
        learner: AbstractLearner,
        path: str | os.PathLike | None = None,
        *,
        key=None,
        state=None,
        horizon=None,
        start=None,
        pending: int = 0,
        copies: int | None = None,
        expires: int | None = None,
        keep_rounds: bool = True,
        snapshot_every: int = 256,
    ):
        check.instance(problem, Problem, ProblemError, "a session needs a Problem first")
        check.instance(learner, AbstractLearner, LearnerError, "a session needs one of cocoax.learners second")
        self.path = None if path is None else as_file(path)
        settings = late_settings(horizon, pending, copies, expires)
        every = check.whole(snapshot_every, "snapshot_every", SessionError, low=1)
        if not isinstance(keep_rounds, bool):
            raise SessionError(f"keep_rounds must be True or False, got {check.described(keep_rounds)}")
        if key is None and self.path is not None and self.path.exists():
            key = jax.random.key(0)  # only its form matters
        states = first_states(problem, learner, key, state, horizon, start, settings["copies"])
        players = Players(problem, learner, states, settings["pending"], settings["expires"])
        self._lock = threading.RLock()
        self._keeps_data = keep_rounds or path is not None  # a journal needs them until the next snapshot
        self._durable = Durable(self.path, players, signature(problem, learner, states, settings), every, keep_rounds)

    @property
    def _players(self) -> Players:
        return self._durable.players

    @property
    def rounds(self) -> int:
        """How many were observed."""
        return self._players.ledger.rounds

    @property
    def pending(self) -> tuple[str, ...]:
        """The tickets whose rounds are waited for."""
        return tuple(self._players.tickets)

    @property
    def state(self):
        """The learner's, for `play(state=...)` or another session; a tuple with several copies."""
        states = [self._players.state(which) for which in range(len(self._players.states))]
        return states[0] if len(states) == 1 else tuple(states)

    @property
    def alarm(self) -> str | None:
        """Which budgets look infeasible, because their multipliers keep growing while they are exceeded."""
        names = [name for name, grows in zip(self._players.problem.names, self._players.ledger.growing()) if grows]
        if not names:
            return None
        return (
            f"the multiplier of {', '.join(names)} keeps growing while it is exceeded: the budget looks infeasible; "
            "loosen it, or ask regret() for a proof"
        )

    def decide(self, ticket: str | None = None):
        """The decision of the round that comes, in NumPy; the same until that round is observed.

        With `pending`, the decision of the round that is called `ticket`; a ticket that is pending gets the decision
        that it got before, so a call can be repeated when its answer was lost. Without a name each call is a new round,
        called after how many there were; `session.pending[-1]` tells.
        """
        with self._lock:
            self._durable.check_usable()
            self._players.check_plan()
            if not self._players.pending:
                if ticket is not None:
                    raise SessionError("tickets are for late feedback; begin the session with pending=")
                return on_host(self._players.decisions[0])
            name = self._new_name() if ticket is None else checked_ticket(ticket)
            if name not in self._players.tickets:
                if len(self._players.live()) >= self._players.pending:
                    raise SessionError(
                        f"{len(self.pending)} rounds are pending already; observe or skip one, for example "
                        f"{self.pending[0]!r}, or begin with a larger pending="
                    )
                if self._durable.fate(name) is not None:
                    raise SessionError(self._gone(name))
                self._durable.commit(lambda players: [players.give(name)])
            return on_host(self._players.tickets[name].decision)

    def _new_name(self):
        number = self._players.given
        while self._durable.fate(str(number)) is not None:
            number += 1
        return str(number)

    def observe(self, round, played=None, *, ticket: str | None = None) -> Observed:
        """Learn from a round; returns what it came to when the round is durable.

        `played` is what was really done, where that was not the decision. A round that is refused changes nothing.
        """
        with self._lock:
            return self._observe([(round, played, ticket)], "round")[0]

    def observe_many(self, rounds) -> list[Observed]:
        """Several rounds, oldest first, as a list or a PyTree with a leading axis: all of them, or none and an error.

        The same as to observe them one by one, with one write to the disk. Not for late feedback.
        """
        with self._lock:
            if self._players.pending:
                raise SessionError("late rounds come one by one; give each to observe, with its ticket=")
            return self._observe([(round, None, None) for round in each_round(rounds)], "round {}")

    def _observe(self, given, name):
        form, outcomes = self._durable.form or Form.of(given[0][0], name.format(0)), []

        def events(players):
            for number, (round, played, ticket) in enumerate(given):
                ticket = self._pending_ticket(players, ticket)
                round = form.cast(round, name.format(number))
                played = None if played is None else self._as_decision(played)
                outcome = players.observe(ticket, round, played)
                outcomes.append(Observed.of(outcome, players.problem.constraints))
                data = None if played is None else packing.pack(played)
                kept = (packing.pack(round), data) if self._keeps_data else (None, None)
                yield Event(OBSERVED, ticket, kept[0], kept[1], outcome.tobytes())

        self._durable.commit(events, form)
        return outcomes

    def skip(self, ticket: str):
        """Give a ticket up: its round will not be observed, and nobody learns from it."""
        with self._lock:
            if ticket is None:
                raise SessionError("skip needs the ticket of a round; give one of session.pending")
            name = self._pending_ticket(self._players, ticket)
            self._durable.commit(lambda players: [players.skip(name)])

    def _pending_ticket(self, players, ticket):
        if (ticket is None) != (players.pending == 0):
            raise SessionError(
                "a ticket names a round of late feedback: observe(round, ticket=...) where the session was begun with "
                "pending=, and only there"
            )
        if ticket is not None and checked_ticket(ticket) not in players.tickets:
            raise SessionError(self._gone(ticket))
        return ticket

    def _gone(self, ticket) -> str:
        fate = {
            None: "was never given; ask decide for it first",
            DECIDED: "has expired; its round does not count",
            OBSERVED: "was observed already; its round counts once",
            SKIPPED: "was skipped; its round does not count",
        }
        return f"the ticket {ticket!r} {fate.get(self._durable.fate(ticket), 'is not known')}"

    def _as_decision(self, played):
        if tree.is_element(self._players.decisions[0]):
            raise SessionError("a session with factored matrices takes no played=; have the decision itself played")
        like = on_host(self._players.decisions[0])
        point = Form.of(like, "played").cast(played, "played")
        return jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(point))

    def game(self, *, keep_rounds: bool = False) -> Game:
        """The rounds so far as a `Game`, of which all can be asked that is asked of games; its figures are in float64.

        With `keep_rounds`, the game has their data too.
        """
        with self._lock:
            return game_of(self._durable.observed(), self._players, self._durable.form, keep_rounds)

    def history(self) -> np.ndarray:
        """One row a round, with the columns of `Game.table()`: a structured array, which pandas and polars take."""
        return rows_of(self.game().table())

    def regret(self, comparator=None):
        """Running regret against the best fixed decision over the rounds so far, or against another comparator."""
        game = self.game(keep_rounds=True)
        if comparator is None:
            comparator = hindsight(self._players.problem, game.rounds)
        return game.regret(comparator)

    def summary(self) -> dict:
        """Where it stands, in plain numbers."""
        with self._lock:
            return {
                "path": None if self.path is None else str(self.path),
                "learner": type(self._players.learner).__name__,
                **self._players.ledger.summary(self._players.problem.names),
                "pending": len(self.pending),
                "alarm": self.alarm,
            }

    def forget(self):
        """Drop the data of all rounds so far, after a snapshot; what they came to stays in `history`."""
        with self._lock:
            self._durable.forget()

    def close(self):
        """Leave a snapshot, so that it opens fast, and let others open it."""
        with self._lock:
            self._durable.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @classmethod
    def replay(cls, source, problem, learner, path=None, **options) -> "Session":
        """A new session whose learner, which may be another one, observes all rounds of an old one.

        For another learner, a changed loss, or a newer version of cocoax or JAX: the new decisions are those that the
        new learner would have taken; rounds with `played` are learnt from at what was played. The old files are read
        and never written. Of damaged ones, the rounds before the damage are taken, with a warning. `options` are those
        of the new session, such as `key`; its horizon and late feedback are taken over from the old one.
        """
        return replay(cls, as_file(source), problem, learner, path, options)
