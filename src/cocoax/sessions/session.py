"""A game against the real world: decisions in production, one at a time, that survive a power cut."""

import contextlib
import os
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from ..core import check, tree
from ..core.compilation_cache import use_compilation_cache
from ..domains.base import Point
from ..errors import LearnerError, ProblemError, SessionError
from ..games.movement import as_played
from ..learners.base import AbstractLearner, Outcome
from ..problem.problem import Problem, Round
from . import packing, tickets
from .arguments import (
    as_decision,
    as_file,
    checked_label,
    checked_labels,
    first_states,
    late_settings_of,
    list_of_rounds,
    to_numpy,
)
from .copies import LearnerCopies
from .durable import DurableState
from .guard import Guard
from .identity import Identity
from .replay import replay
from .requests import cast_request, check_same, whole_round
from .schema import RoundSchema
from .session_views import SessionViews
from .storage.events import OBSERVED, Event
from .tickets import OPEN


class Session(SessionViews):
    """A learner that takes decisions in the real world.

    **Arguments:**

    - `path`: the file of the session. If it exists, the session continues; if not, it starts. Without a path nothing
      is kept.
    - `key`: the source of all randomness when the session starts; an old session continues with its own.
    - `state`: `game.state` of a game over logged data, to start from; `horizon`, `start`: as in `play`.
    - `pending`: for late feedback, how many rounds may be pending at a time; 0 if each round is observed before the
      next decision. Late rounds have tickets: `decide(ticket)`, `observe(round, ticket=ticket)`.
    - `copies`: how many independent copies of the learner share the late rounds, `pending` by default. Each copy then
      decides, observes, decides, ... as its proofs assume, so bounds of learners without a horizon hold over the
      rounds of each copy and add up: c T^p becomes at most c pending^(1-p) T^p (docs/sessions.md has the conditions).
      With fewer copies, each learns from more rounds, with gradients at its decision of that time, without a proof.
    - `expires`: a ticket expires when this many were given after it; by default never.
    - `keep_rounds`: keep all rounds, which `regret` and `replay` need; or only those since the last snapshot.
    - `keep_decisions`: keep the decision of every round from now on, and what was played, for `history`.
    - `snapshot_every`: the number of events between snapshots, which is the most that opening after a crash replays.
    - `certify`: keep what `certificate` needs, in the state of the learner.
    - `other_rounding`: go on although rounds after the newest snapshot come to other last bits than when they were
      stored, as on another machine.

    A file is opened with the same problem and learner: numbers and structure are compared, and the programs that JAX
    traces of them, but not what a callback does on the host. Under another version of cocoax or JAX it opens with a
    `SessionWarning`, programs uncompared; `replay` shows whether the decisions are the same.

    `decide` returns the same decision until its round is observed. `observe` returns when the round is on disk; if it
    raises `SessionError`, nothing has changed. Methods may be called from several threads.

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

    _mark: str | None = None  # a fact that a new file has until it is complete

    def __init__(
        self,
        problem: Problem,
        learner: AbstractLearner,
        path: str | os.PathLike | None = None,
        *,
        key: PRNGKeyArray | None = None,
        state: Any = None,
        horizon: Any = None,
        start: Any = None,
        pending: int = 0,
        copies: int | None = None,
        expires: int | None = None,
        keep_rounds: bool = True,
        keep_decisions: bool = False,
        snapshot_every: int = 256,
        certify: bool = False,
        other_rounding: bool = False,
    ):
        use_compilation_cache()
        check.instance(problem, Problem, ProblemError, "a session needs a Problem first")
        check.instance(learner, AbstractLearner, LearnerError, "a session needs one of cocoax.learners second")
        self.path = None if path is None else as_file(path)
        certify = check.flag(certify, "certify", SessionError)
        keep_rounds = check.flag(keep_rounds, "keep_rounds", SessionError)
        keep_decisions = check.flag(keep_decisions, "keep_decisions", SessionError)
        learner = as_played(problem, learner, certify=certify)
        late = late_settings_of(problem, learner, horizon, pending, copies, expires)
        settings = {**late, "certify": certify or None}
        every = check.whole(snapshot_every, "snapshot_every", SessionError, low=1)
        if keep_decisions and tree.has_element(problem.domain.start()):
            raise SessionError("factored matrices have no columns; leave out keep_decisions=")
        if key is None and self.path is not None and self.path.exists():
            key = jax.random.key(0)  # only its dtype matters
        states = first_states(problem, learner, key, state, horizon, start, settings["copies"])
        copies_of_learner = LearnerCopies(problem, learner, states, settings["pending"], settings["expires"])
        identity = Identity(problem, learner, states[0], settings)
        self._guard = Guard()
        self._keeps_decisions = keep_decisions
        self._stores_rounds = keep_rounds or path is not None  # a file needs them until the next snapshot
        self._durable = DurableState(
            self.path, copies_of_learner, identity, every, keep_rounds, self._mark, other_rounding
        )
        with contextlib.suppress(Exception):  # of any kind: users write the loss, and observe will tell
            self.compile()

    def compile(self, like: Round = None) -> None:
        """Compile the programs for rounds like this one, or like those before, so that no call waits for it.

        A session that has had rounds does so when it opens.
        """
        with self._guard.alone(self):
            schema = self._durable.schema or (None if like is None else RoundSchema.of(like, "like"))
            if schema is not None:
                like = schema.like if like is None else schema.cast(like, "like")
                self._copies.compile(like)
                self._durable.identity.programs(like)

    def decide(self, request: Round | str | None = None, *, ticket: str | None = None) -> Point:
        """The decision of the next round, in NumPy; the same until that round is observed.

        `request` is what is seen of the round already, if the problem has requests (`Problem(request=...)`). It is on
        disk when this returns; the same request gets the same decision, and the next one has to wait until the round
        is observed or skipped. Without requests, the first argument may be the ticket.

        With `pending`, the decision of the round with the name `ticket`. A pending ticket gets its old decision, so a
        call can be repeated if its answer was lost. Without a name, each call is a new round, named by its number;
        `session.pending[-1]` is that name.
        """
        with self._guard.alone(self):
            self._durable.check_usable()
            self._copies.check_horizon()
            has_requests = self._copies.problem.has_requests
            if request is not None and not has_requests:
                if ticket is not None or not (self._copies.pending or isinstance(request, str)):
                    raise SessionError("this problem has no requests; give Problem(request=...), or leave it out")
                request, ticket = None, request  # decide(ticket)
            if not self._copies.pending:
                if ticket is not None:
                    raise SessionError("tickets are for late feedback; start the session with pending=")
                if not has_requests:
                    return to_numpy(self._copies.decisions[0])
            name = tickets.named(self._durable, ticket)
            if name not in self._copies.tickets:
                tickets.check_new(self._durable, name)
                copies = self._copies.copy()
                request = cast_request(copies, self._durable.schema, request) if has_requests else None
                self._durable.commit(copies, [copies.give(name, request)])
            elif has_requests:
                check_same(self._copies, name, request)
            return to_numpy(self._copies.tickets[name].decision)

    def observe(
        self, round: Round = None, played: Point | None = None, *, ticket: str | None = None, label: Any = None
    ) -> Outcome:
        """Learn from a round; returns its outcome when the round is durable.

        The fields of a request that was decided may be left out of `round`; and `round` too, if the request said it
        all. A round whose request was not decided is observed as if it was. `played` is the decision that was really
        played, if that was another one; a point outside the domain counts, with a `SessionWarning`. `label`, a text or
        a date, is kept for `history`. A refused round changes nothing.
        """
        with self._guard.alone(self):
            return self._observe([(round, played, ticket, checked_label(label))], "round")[0]

    def observe_many(self, rounds: Any, *, labels: Any = None) -> list[Outcome]:
        """Learn from several rounds, oldest first: from all, or none and raise.

        `rounds` are a list, a frame of pandas or polars, or a PyTree with a leading axis; `labels` are one for each.
        The same as `observe` for each, with one write to the disk. Not for late feedback.
        """
        with self._guard.alone(self):
            if self._copies.pending:
                raise SessionError("late rounds come one by one; give each to observe, with its ticket=")
            listed = list_of_rounds(rounds)
            labels = checked_labels(labels, len(listed))
            return self._observe([(round, None, None, label) for round, label in zip(listed, labels)], "round {}")

    def _observe(self, observations, name):
        """Learn on a copy first; then store the events; only then the copy counts."""
        self._durable.check_usable()
        schema = self._durable.schema
        copies, events, outcomes = self._copies.copy(), [], []
        for number, (round, played, ticket, label) in enumerate(observations):
            tickets.check_pending(self._durable, copies, ticket)
            ticket = OPEN if OPEN in copies.tickets else ticket
            schema, round = whole_round(copies, schema, ticket, round, name.format(number))
            played = None if played is None else as_decision(played, copies.decisions[0], copies.problem.domain)
            outcome, outcome_data = copies.observe(ticket, round, played, label, self._keeps_decisions)
            round_data = packing.pack(round) if self._stores_rounds else None
            played_data = packing.pack(played) if self._stores_rounds and played is not None else None
            events.append(Event(OBSERVED, ticket, round_data, played_data, outcome_data))
            outcomes.append(outcome)
        self._durable.commit(copies, events, schema)
        return outcomes

    def skip(self, ticket: str | None = None) -> None:
        """Give up a ticket, or the last request: its round will not be observed, and no copy learns from it."""
        with self._guard.alone(self):
            if ticket is None and OPEN in self._copies.tickets:
                ticket = OPEN
            elif ticket is None:
                raise SessionError("skip needs the ticket of a round; give one of session.pending")
            else:
                tickets.check_pending(self._durable, self._copies, ticket)
            copies = self._copies.copy()
            self._durable.commit(copies, [copies.skip(ticket)])

    def forget(self, *, history: bool = False) -> None:
        """Drop the data of all rounds so far, after a snapshot, and free their space; their outcomes stay in `history`.

        With `history`, drop these too: totals and multipliers stay, and names of tickets may come again.
        """
        with self._guard.alone(self):
            self._durable.forget(history)

    @classmethod
    def replay(
        cls,
        source: Any,
        problem: Problem,
        learner: AbstractLearner,
        path: str | os.PathLike | None = None,
        **options: Any,
    ) -> "Session":
        """A new session that observes all rounds of an old one, with the same or another learner.

        For another learner, a changed loss, or a newer version of cocoax or JAX: the new decisions are those that the
        new learner would have taken; from rounds with `played`, it learns at what was played. The old files are only
        read. If they are damaged, the rounds before the damage count, with a warning. `options` are those of the new
        session, such as `key`; horizon and late feedback are those of the old session.
        """
        return replay(cls, as_file(source), problem, learner, path, options)
