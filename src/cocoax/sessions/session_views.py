"""Looking at a session: its rounds, what waits, its totals, its past, and a bound on its regret."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..comparators.certificate import Certificate
from ..games.game import Game
from ..learners.base import Outcome
from ..problem.problem import Round
from .arguments import to_numpy
from .copies import LearnerCopies
from .history import game_of, regret_of, rows_of, table_of
from .outcomes import split, unpacked
from .standing import alarm_of, certificate_of, summary_of
from .stored import Stored
from .tickets import OPEN


class SessionViews(Stored):
    """What changes nothing."""

    @property
    def _copies(self) -> LearnerCopies:
        return self._durable.copies

    @property
    def rounds(self) -> int:
        """Number of observed rounds."""
        return self._copies.totals.rounds

    @property
    def pending(self) -> tuple[str, ...]:
        """The tickets whose rounds are not observed yet."""
        return tuple(name for name in self._copies.tickets if name != OPEN)

    @property
    def request(self) -> Round | None:
        """The request that was decided last and whose round is not observed yet, in a session without `pending`."""
        return to_numpy(self._copies.tickets[OPEN].request) if OPEN in self._copies.tickets else None

    @property
    def schema(self) -> Any:
        """Fields, shapes and dtypes of a round, as JSON; None before the first one."""
        return None if self._durable.schema is None else self._durable.schema.json

    @property
    def state(self) -> Any:
        """The state of the learner, for `play(state=...)` or another session; a tuple if there are several copies."""
        states = [self._copies.state(which) for which in range(len(self._copies.states))]
        return states[0] if len(states) == 1 else tuple(states)

    @property
    def alarm(self) -> str | None:
        """A sentence if a budget looks infeasible: its multiplier keeps growing while it is exceeded."""
        return alarm_of(self._copies)

    def outcome(self, ticket: str | None = None) -> Outcome | None:
        """The outcome of the last observed round, or of the one with this ticket; None if there is none."""
        with self._guard.alone(self):
            data = self._durable.outcome_of(ticket)
            return None if data is None else unpacked(split(data)[0], self._copies.constraints)

    def game(self, *, keep_rounds: bool = False) -> Game:
        """The rounds so far as a `Game`, whose numbers are float64; with their data if `keep_rounds`."""
        with self._guard.alone(self):
            return game_of(self._durable.observed(), self._copies, self._durable.schema, keep_rounds)

    def history(self, *, names: Sequence[str] | None = None) -> np.ndarray:
        """One row a round, with the columns of `Game.table()`: a structured array, which pandas and polars accept.

        If rounds have labels, `label` is a column. With `keep_decisions`, `decision_...` and `played_...` are columns
        too, one for each entry: `names` are those of the entries, by default their indices. They are NaN where the
        decision was not kept.
        """
        with self._guard.alone(self):
            return rows_of(table_of(self._durable.observed(), self._copies, names))

    def regret(self, comparator: Any = None) -> Any:
        """Running regret against the best fixed decision (with requests: policy) over the rounds so far, or another."""
        return regret_of(self.game(keep_rounds=True), self._copies.problem, comparator)

    def certificate(self, *, lmos: int = 20, policy: bool = False) -> Certificate:
        """A proven bound on the regret of all rounds so far, without going through them again: at most so many LMOs.

        Needs `certify=True`. With several copies, of all of them together. With `policy`, where requests are seen
        first: against the best policy.
        """
        with self._guard.alone(self):
            return certificate_of(self._copies, lmos, policy)

    def summary(self) -> dict:
        """Rounds, totals, multipliers, pending tickets and alarm, as plain numbers and strings; if certified, also a
        bound on the regret."""
        with self._guard.alone(self):
            path = None if self.path is None else str(self.path)
            return {"path": path, **summary_of(self._copies), "pending": len(self.pending), "alarm": self.alarm}
