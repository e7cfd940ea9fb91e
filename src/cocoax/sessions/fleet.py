"""Many campaigns of one problem and learner, in one file."""

import os
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from ..core import check, tree
from ..core.compilation_cache import use_compilation_cache
from ..domains.base import Point
from ..errors import ConflictError, LearnerError, ProblemError, SessionError
from ..games.movement import as_played
from ..games.state import checked_start
from ..learners.base import AbstractLearner, Horizon, Outcome
from ..problem.problem import Problem, Round
from . import packing
from .arguments import as_file, first_states, late_settings
from .campaign_events import NotFiniteError
from .campaigns import Campaigns
from .durable import DurableState
from .fleet_views import FleetViews, checked_names
from .guard import Guard
from .identity import signature
from .requests import request_schema, stacked
from .schema import RoundSchema


class Fleet(FleetViews):
    """Many learners that take decisions in the real world, each for a campaign of its own, in one file.

    Each campaign has a name and plays as a `Session` would: the same bits, if that session begins with the key
    `fleet.key(name)`. All campaigns have the same problem, learner, and form of rounds. A call serves many of them: it
    compiles to one loop, and waits for the disk once.

    **Arguments:**

    - `path`: the file. If it exists, the fleet continues; if not, it starts. Without a path nothing is kept.
    - `key`: the source of all randomness when the fleet starts.
    - `horizon`, `start`: as in `play`, for every campaign.
    - `snapshot_every`: the number of calls between snapshots, which is the most that opening after a crash replays.
    - `keep_rounds`: keep all rounds, which `history` and `regret` show; or only those since the last snapshot.
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
        snapshot_every: int = 512,
        keep_rounds: bool = True,
        certify: bool = False,
        other_rounding: bool = False,
    ):
        use_compilation_cache()
        check.instance(problem, Problem, ProblemError, "a fleet needs a Problem first")
        check.instance(learner, AbstractLearner, LearnerError, "a fleet needs one of cocoax.learners second")
        self.path = None if path is None else as_file(path)
        keep_rounds = check.flag(keep_rounds, "keep_rounds", SessionError)
        certify = check.flag(certify, "certify", SessionError)
        learner = as_played(problem, learner, certify=certify)
        settings = {**late_settings(horizon, 0, None, None), "fleet": True} | ({"certify": True} if certify else {})
        every = check.whole(snapshot_every, "snapshot_every", SessionError, low=1)
        if key is None and self.path is not None and self.path.exists():
            key = jax.random.key(0)  # only its dtype matters
        horizon = None if settings["horizon"] is None else Horizon(settings["horizon"])
        start = checked_start(problem, start)
        example = first_states(problem, learner, key, None, horizon, start, 1)[0]
        if tree.has_element(learner.decision(example)):
            raise SessionError("a fleet keeps arrays; factored matrices need sessions of their own")
        identity = signature(problem, learner, [example], settings)
        campaigns = Campaigns(problem, learner, key, horizon, start, example)
        self._guard = Guard()
        self._durable = DurableState(self.path, campaigns, identity, every, keep_rounds, other_rounding=other_rounding)

    def compile(self, like: Round = None) -> None:
        """Compile the programs for rounds like this one, or like those before, so that no call waits for it."""
        with self._guard.alone(self):
            schema = self._durable.schema or (None if like is None else RoundSchema.of(like, "like"))
            if schema is not None:
                self._campaigns.compile(schema.like if like is None else schema.cast(like, "like"))

    def decide(self, names: Iterable[str], requests: Round = None) -> Point:
        """The decisions of these campaigns, in NumPy, with a leading axis; the same until their rounds are observed.

        New names begin a campaign. `requests`, along the same axis, are what is seen of the rounds already, if the
        problem has requests; they are on disk when this returns.
        """
        with self._guard.alone(self):
            names = checked_names(names)
            if self._campaigns.problem.has_requests != (requests is not None):
                raise SessionError("requests= go with Problem(request=...), and only with it")
            rows = self._rows(names)
            return self._campaigns.decisions(rows) if requests is None else self._answers(names, rows, requests)

    def _answers(self, names, rows, requests):
        campaigns = self._campaigns
        schema = campaigns.request_schema or request_schema(campaigns.problem, self._durable.schema, _first(requests))
        requests = stacked(schema, len(names)).cast(requests, "requests")
        if campaigns.request_schema is None:
            campaigns.fix_requests(schema)
        is_open = campaigns.columns["open"][rows]
        differs = (campaigns.columns["request"][rows] != packing.pack_rows(requests, len(rows))).any(1)
        if (is_open & differs).any():
            name = names[int(np.argmax(is_open & differs))]
            raise ConflictError(f"the request before of {name!r} is not observed yet; observe its round, or skip it")
        if not is_open.all():
            new = np.flatnonzero(~is_open)
            asked = jax.tree.map(lambda leaf: leaf[new], requests)
            event, answers = campaigns.decide_event(rows[new], asked)
            self._durable.commit(campaigns, [event], None, lambda: campaigns.decide(rows[new], asked, answers))
        return campaigns.answers(rows)

    def observe(
        self, names: Iterable[str], rounds: Round = None, played: Point | None = None, *, at: Any = None
    ) -> Outcome:
        """Learn from one round of each of these campaigns; returns their outcomes when all rounds are on disk.

        Rounds are stacked along a leading axis. A bad round refuses them all: nothing has changed then. `played` are
        the decisions that were really played, if they were others. `at` makes a call safe to repeat: how many rounds
        each campaign had when it decided (`fleet.rounds(names)` then); a round that counts already is not counted
        again, and its outcome is returned once more.
        """
        with self._guard.alone(self):
            names = checked_names(names)
            rows, campaigns = self._rows(names), self._campaigns
            fresh = self._not_counted(names, rows, at)
            if len(fresh):
                self._observe([names[i] for i in fresh], rows[fresh], *_chosen((rounds, played), fresh, len(names)))
            return campaigns.totals.last(rows)

    def _observe(self, names, rows, rounds, played):
        campaigns = self._campaigns
        rounds = self._completed(names, rows, rounds)
        schema = self._durable.schema or RoundSchema.of(_first(rounds), "rounds")
        rounds = stacked(schema, len(names)).cast(rounds, "rounds")
        if played is not None:
            like = jax.tree.map(np.asarray, campaigns.decisions(rows))
            played = RoundSchema.of(like, "played").cast(played, "played")
            played = jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(played))
        try:
            event, new = campaigns.observe_event(rows, rounds, played)
        except NotFiniteError as error:
            raise SessionError(f"the round of {names[error.place]!r} is not finite: {error.reason}") from None
        self._durable.commit(campaigns, [event], schema, lambda: campaigns.observe(new))

    def _completed(self, names, rows, rounds):
        """Rounds with the fields of their requests."""
        campaigns = self._campaigns
        if not campaigns.problem.has_requests:
            return rounds
        is_open, schema = campaigns.columns["open"][rows], campaigns.request_schema
        if schema is None or not is_open.all():
            raise ConflictError(f"{names[int(np.argmin(is_open))]!r} has no open request; decide first")
        requests = campaigns.requests(schema, rows)
        return requests if rounds is None else {**rounds, **requests} if isinstance(requests, dict) else rounds

    def _not_counted(self, names, rows, at) -> np.ndarray:
        """The places of rounds that do not count yet."""
        if at is None:
            return np.arange(len(rows))
        counts = self._campaigns.totals.columns["rounds"][rows]
        ahead = counts - np.broadcast_to(np.asarray(at), counts.shape)
        if not np.isin(ahead, (0, 1)).all():
            which = int(np.argmin(np.isin(ahead, (0, 1))))
            raise ConflictError(f"{names[which]!r} has {counts[which]} rounds; at= must be that, or one less to repeat")
        return np.flatnonzero(ahead == 0)

    def skip(self, names: Iterable[str]) -> None:
        """Give up the open requests of these campaigns: their rounds will not be observed."""
        with self._guard.alone(self):
            rows, campaigns = self._known(checked_names(names)), self._campaigns
            if not campaigns.columns["open"][rows].all():
                raise ConflictError("skip is for campaigns with an open request; decide first, or leave out the others")
            event, after = campaigns.skip_event(rows)
            self._durable.commit(campaigns, [event], None, lambda: campaigns.skip(rows, after))

    def end(self, names: Iterable[str]) -> None:
        """End these campaigns. Their past stays; if a name comes again, it begins anew."""
        with self._guard.alone(self):
            names, campaigns = checked_names(names), self._campaigns
            self._known(names)
            event = campaigns.end_event(names)
            self._durable.commit(campaigns, [event], None, lambda: campaigns.end(event))

    def _rows(self, names) -> np.ndarray:
        """The rows of these campaigns; new names begin."""
        self._durable.check_usable()
        campaigns = self._campaigns
        if new := [name for name in names if name not in campaigns.rows]:
            event = campaigns.begin_event(new)
            self._durable.commit(campaigns, [event], None, lambda: campaigns.begin(event))
        return self._known(names)

    def forget(self) -> None:
        """Drop all past rounds, after a snapshot, and free their space; states, totals and multipliers stay."""
        with self._guard.alone(self):
            self._durable.forget()


def _first(rounds) -> Any:
    """The first of stacked rounds. Whole numbers in lists are floats, as in a session."""

    def first(leaf):
        array = np.asarray(leaf)
        return array[0].astype(float) if isinstance(leaf, list) and array.dtype.kind in "iu" else array[0]

    return jax.tree.map(first, rounds, is_leaf=lambda node: isinstance(node, list))


def _chosen(trees, places, count):
    """These places of stacked trees, where not all were chosen."""
    return trees if len(places) == count else jax.tree.map(lambda leaf: np.asarray(leaf)[places], trees)
