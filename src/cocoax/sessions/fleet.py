"""Many campaigns of one problem and learner, in one file."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from ..core import check, tree
from ..core.compilation_cache import use_compilation_cache
from ..domains.base import Point
from ..errors import LearnerError, ProblemError, SessionError
from ..games.movement import as_played
from ..games.state import checked_start
from ..learners.base import AbstractLearner, Horizon, Outcome
from ..problem.problem import Problem, Round
from . import outcomes
from .arguments import MOST_PENDING_IN_A_FLEET, as_file, checked_labels, first_states, late_settings_of
from .campaigns import Campaigns
from .durable import DurableState
from .fleet_budgets import check_same_budgets, checked_budgets
from .fleet_compilation import compile_calls
from .fleet_decisions import cast_requests, decided
from .fleet_rounds import observed
from .fleet_tickets import check_waits, encoded
from .fleet_views import FleetViews
from .guard import Guard
from .identity import Identity
from .schema import RoundSchema
from .stacked import checked_names, checked_tickets, picked, waves
from .storage.events import Event
from .turn import Turn


class Fleet(FleetViews):
    """Many learners that take decisions in the real world, each for a campaign of its own, in one file.

    Each campaign has a name and plays as a `Session` would that begins with the key `fleet.key(name)`: the same bits
    where XLA compiles a round in a loop as it does alone, and else up to rounding (docs/sessions.md). All campaigns
    have the same problem, learner, and form of rounds. A call serves many of them: it compiles to one loop, and waits
    for the disk once.

    **Arguments:**

    - `path`: the file. If it exists, the fleet continues; if not, it starts. Without a path nothing is kept.
    - `key`: the source of all randomness when the fleet starts.
    - `horizon`, `start`: as in `play`, for every campaign.
    - `pending`, `copies`, `expires`: late feedback, as in `Session`, for every campaign: how many of its rounds may be
      pending at a time. `decide` returns tickets, too, and `observe(names, rounds, tickets=...)` takes them.
    - `snapshot_every`: the number of calls between snapshots, which is the most that opening after a crash replays.
    - `keep_rounds`: keep all rounds, which `history` and `regret` show; or only those since the last snapshot.
    - `keep_decisions`: keep the decision of every round from now on, for `history`.
    - `certify`: keep what `certificate` and `regret_bounds` need, in the states of the learners.
    - `other_rounding`: as in `Session`.

    Campaigns begin when they are first named, and end with `end`. Methods may be called from several threads.

    >>> import jax, numpy as np
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: -r["value"] * x[0], lambda x, r: x[0] - 0.5)
    >>> with cx.Fleet(problem, cx.learners.Auto(), key=jax.random.key(0)) as fleet:
    ...     names = ["spring", "summer", "autumn"]
    ...     decisions = fleet.decide(names)
    ...     outcomes = fleet.observe(names, {"value": np.array([1.0, 2.0, 1.5])})
    ...     decisions.shape, fleet.rounds(names).tolist()
    ((3, 1), [1, 1, 1])
    """

    def __init__(
        self,
        problem: Problem,
        learner: AbstractLearner,
        path: str | os.PathLike | None = None,
        *,
        key: PRNGKeyArray | None = None,
        horizon: Any = None,
        start: Any = None,
        pending: int = 0,
        copies: int | None = None,
        expires: int | None = None,
        snapshot_every: int = 512,
        keep_rounds: bool = True,
        keep_decisions: bool = False,
        certify: bool = False,
        other_rounding: bool = False,
    ):
        use_compilation_cache()
        check.instance(problem, Problem, ProblemError, "a fleet needs a Problem first")
        check.instance(learner, AbstractLearner, LearnerError, "a fleet needs one of cocoax.learners second")
        self.path = None if path is None else as_file(path)
        keep_rounds = check.flag(keep_rounds, "keep_rounds", SessionError)
        self._keeps_decisions = check.flag(keep_decisions, "keep_decisions", SessionError)
        certify = check.flag(certify, "certify", SessionError)
        learner = as_played(problem, learner, certify=certify)
        late = late_settings_of(problem, learner, horizon, pending, copies, expires, MOST_PENDING_IN_A_FLEET)
        settings = {**late, "fleet": True} | ({"certify": True} if certify else {})
        every = check.whole(snapshot_every, "snapshot_every", SessionError, low=1)
        if key is None and self.path is not None and self.path.exists():
            key = jax.random.key(0)  # only its dtype matters
        horizon = None if late.pop("horizon") is None else Horizon(settings["horizon"])
        start = checked_start(problem, start)
        example = first_states(problem, learner, key, None, horizon, start, 1)[0]
        if tree.has_element(learner.decision(example)):
            raise SessionError("a fleet keeps arrays; factored matrices need sessions of their own")
        identity = Identity(problem, learner, example, settings)
        campaigns = Campaigns(problem, learner, key, horizon, start, example, **late)
        self._guard = Guard()
        self._durable = DurableState(self.path, campaigns, identity, every, keep_rounds, other_rounding=other_rounding)

    def compile(self, like: Round = None) -> None:
        """Compile the programs for rounds like this one, or like those before, so that no call waits for it.

        Not for `played=`, for more than 1,024 campaigns in a call, and for a certificate's test whether the constraints
        can be met: these compile in their first call.
        """
        with self._guard.alone(self):
            schema = self._durable.schema or (None if like is None else RoundSchema.of(like, "like"))
            if schema is not None:
                like = schema.like if like is None else schema.cast(like, "like")
                compile_calls(self._campaigns, like)
                self._durable.identity.programs(like)

    def begin(self, names: Iterable[str], *, budgets: Any = None) -> None:
        """Begin these campaigns; with `learners.Budgeted`, each with its own budgets: a number, or a row, for each.

        Can be repeated: a campaign that has begun with these budgets stays as it is.
        """
        with self._guard.alone(self):
            names, campaigns = checked_names(names), self._campaigns
            self._durable.check_usable()
            table = None if budgets is None else checked_budgets(budgets, len(names), campaigns.budgets)
            places = {True: [], False: []}
            for place, name in enumerate(names):
                places[name in campaigns.rows].append(place)
            if table is not None:
                check_same_budgets(campaigns, [names[place] for place in places[True]], table[places[True]])
            if new := places[False]:
                campaigns, events = _begun(campaigns, [names[i] for i in new], None if table is None else table[new])
                self._durable.commit(campaigns, events)

    def change(self, names: Iterable[str], *, budgets: Any) -> None:
        """Give these campaigns other budgets, from the next decision on: the amounts for their whole game.

        What was spent and what waits counts. If that is more than a new budget, nothing more is spent.
        """
        with self._guard.alone(self):
            names, campaigns = checked_names(names), self._campaigns
            self._durable.check_usable()
            turn = Turn(campaigns, campaigns.rows_of(names))
            turn.change(np.arange(len(names)), checked_budgets(budgets, len(names), campaigns.budgets))
            self._commit(campaigns, turn)

    def decide(self, names: Iterable[str], requests: Round = None, *, tickets: Any = None) -> Point:
        """The decisions of these campaigns, in NumPy, with a leading axis; the same until their rounds are observed.

        New names begin a campaign. `requests`, along the same axis, are what is seen of the rounds already, if the
        problem has requests; they are on disk when this returns.

        With `pending`, it returns a pair: the decisions, and a list of tickets, one for each name. A name may come more
        than once, or again before its round is observed. Give `tickets`, names of your own, for a call that can be
        repeated if its answer was lost: one that waits gets its old decision. By default they are "0", "1", ...
        """
        with self._guard.alone(self):
            campaigns = self._campaigns
            names = checked_names(names, often=bool(campaigns.pending))
            if campaigns.problem.has_requests and requests is None:
                raise SessionError("this problem has requests; give requests=, one for each name")
            if requests is not None and not campaigns.problem.has_requests:
                raise SessionError("this problem has no requests; leave out requests=, or give Problem(request=...)")
            listed = checked_tickets(tickets, len(names), needed=None if campaigns.pending else False)
            self._durable.check_usable()
            if requests is not None:
                campaigns, requests = cast_requests(campaigns, self._durable.schema, names, requests)
            campaigns, began = _begun(campaigns, names)
            rows = campaigns.rows_of(names)
            if not campaigns.most_waiting:
                self._commit(campaigns, None, began)
                return campaigns.decisions(rows)
            turn, decisions, given = decided(campaigns, names, rows, requests, listed)
            self._commit(campaigns, turn, began)
            return (decisions, given) if campaigns.pending else decisions

    def observe(
        self,
        names: Iterable[str],
        rounds: Round = None,
        played: Point | None = None,
        *,
        at: Any = None,
        tickets: Any = None,
        labels: Any = None,
    ) -> Outcome:
        """Learn from a round of each of these campaigns; returns their outcomes when all rounds are on disk.

        Rounds are stacked along a leading axis. A bad round refuses them all: nothing has changed then. `played` are
        the decisions that were really played, if they were others; points outside the domain count, with a
        `SessionWarning`. `labels`, texts or dates, are kept for `history`. `at` makes a call safe to repeat: how many
        rounds each campaign had when it decided (`fleet.rounds(names)` then); a round that counts already is not
        counted again, and its outcome is returned once more. With `pending`, `tickets` say which rounds they are, in
        any order, and one that was observed before is not counted again.
        """
        with self._guard.alone(self):
            campaigns = self._campaigns
            names = checked_names(names, often=bool(campaigns.pending))
            listed = checked_tickets(tickets, len(names), needed=bool(campaigns.pending))
            labels = checked_labels(labels, len(names))
            self._durable.check_usable()
            campaigns, began = (campaigns, []) if campaigns.pending else _begun(campaigns, names)
            rounds_of = rounds, played, at, listed, labels, self._keeps_decisions
            turn, schema, numbers = observed(
                campaigns, self._durable.schema, names, campaigns.rows_of(names), *rounds_of
            )
            self._commit(campaigns, turn, began, schema)
            return outcomes.unpacked(numbers, campaigns.constraints)

    def skip(self, names: Iterable[str], *, tickets: Any = None) -> None:
        """Give up the open requests of these campaigns, or these tickets: their rounds will not be observed."""
        with self._guard.alone(self):
            campaigns = self._campaigns
            names = checked_names(names, often=bool(campaigns.pending))
            listed = checked_tickets(tickets, len(names), needed=bool(campaigns.pending))
            self._durable.check_usable()
            unique, parts = waves(campaigns.rows_of(names))
            turn = Turn(campaigns, unique)
            for places, at in parts:
                texts = encoded(picked(listed, places)) if campaigns.pending else None
                check_waits(turn, at, texts, picked(names, places))
                turn.skip(at, texts)
            self._commit(campaigns, turn)

    def end(self, names: Iterable[str]) -> None:
        """End these campaigns. Their past stays; if a name comes again, it begins anew."""
        with self._guard.alone(self):
            names, campaigns = checked_names(names), self._campaigns
            campaigns.rows_of(names)
            event = campaigns.end_event(names)
            self._durable.commit(campaigns, [event], None, lambda: campaigns.end(event))

    def _commit(self, campaigns: Campaigns, turn: Turn | None, began: Sequence[Event] = (), schema: Any = None):
        """Let campaigns that began, and what happened in a turn, count; or nothing, if there is an error."""
        if events := [*began, *([] if turn is None else turn.events)]:
            self._durable.commit(campaigns, events, schema, lambda: turn and campaigns.store(turn))

    def forget(self) -> None:
        """Drop all past rounds, after a snapshot, and free their space; states, totals and multipliers stay."""
        with self._guard.alone(self):
            self._durable.forget()


def _begun(campaigns: Campaigns, names: list[str], budgets: np.ndarray | None = None) -> tuple[Campaigns, list[Event]]:
    """(campaigns in which all of these have begun, the event of that). It counts when the event is on disk."""
    if all(map(campaigns.rows.__contains__, names)):
        return campaigns, []
    new = [name for name in dict.fromkeys(names) if name not in campaigns.rows]
    campaigns, event = campaigns.fork(), campaigns.begin_event(new, budgets)
    campaigns.begin(event)
    return campaigns, [event]
