"""Looking at a fleet: its campaigns, their totals, their past, and bounds on their regret."""

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from ..comparators.certificate import Certificate
from ..domains.base import Point
from ..errors import SessionError
from ..games.game import Game
from ..problem.problem import Problem
from .arguments import checked_campaign
from .campaigns import Campaigns
from .fleet_budgets import standing_of
from .fleet_certificates import bounds_of, certificate_of
from .fleet_history import Past, past_of
from .history import regret_of, remarked_table, rows_of, stacked_game
from .slots import FREE, oldest_first
from .stacked import checked_names
from .standing import alarm_for
from .storage.database import Damaged
from .stored import Stored
from .turn import Turn


class FleetViews(Stored):
    """What changes nothing."""

    @property
    def _campaigns(self) -> Campaigns:
        return self._durable.copies

    def __len__(self) -> int:
        return len(self._campaigns.rows)

    def __contains__(self, name: Any) -> bool:
        return name in self._campaigns.rows

    @property
    def names(self) -> tuple[str, ...]:
        """The campaigns that have begun and not ended."""
        return tuple(self._campaigns.rows)

    @property
    def problem(self) -> Problem:
        """The problem that all campaigns share."""
        return self._campaigns.problem

    @property
    def is_late(self) -> bool:
        """Whether several rounds of a campaign may be pending, with tickets."""
        return bool(self._campaigns.pending)

    @property
    def schema(self) -> Any:
        """Fields, shapes and dtypes of a round, as JSON; None before the first one."""
        return None if self._durable.schema is None else self._durable.schema.json

    def key(self, name: str) -> PRNGKeyArray:
        """The key of a session that takes the same decisions as this campaign."""
        return self._campaigns.key_of(checked_campaign(name))

    def rounds(self, names: Iterable[str]) -> np.ndarray:
        """How many rounds each of these campaigns has observed."""
        with self._guard.alone(self):
            return self._campaigns.totals.columns["rounds"][self._campaigns.rows_of(checked_names(names, often=True))]

    def summary(self, name: str | None = None) -> dict:
        """Totals and multipliers of one campaign, as `Session.summary`; without a name, of the whole fleet."""
        with self._guard.alone(self):
            campaigns = self._campaigns
            if name is not None:
                row = int(self._campaigns.rows_of([checked_campaign(name)])[0])
                alarm = alarm_for(campaigns.totals.alarms(row, campaigns.problem.names))
                totals = campaigns.totals.summary(row, campaigns.problem.names)
                return {"campaign": name, **totals, **self._waits(np.array([row])), "alarm": alarm}
            rows = np.fromiter(campaigns.rows.values(), np.int64, len(campaigns.rows))
            path = None if self.path is None else str(self.path)
            names = campaigns.problem.names
            whole = campaigns.totals.whole(rows, names) | campaigns.totals.multipliers(rows, names)
            alarms = int(campaigns.totals.columns["alarm"][rows].any(1).sum())
            return {"path": path, "campaigns": len(rows), **whole, **self._waits(rows), "alarms": alarms}

    def _waits(self, rows: np.ndarray) -> dict:
        """Pending tickets, and where budgets stand, of these campaigns together; nothing where there are none."""
        waits, standing = {}, standing_of(self._campaigns, rows)
        if self._campaigns.pending:
            waits = {"pending": int((self._campaigns.columns["number"][rows] != FREE).sum())}
        return waits | {name: table.sum(0).tolist() for name, table in standing.items()}

    def pending(self, name: str) -> tuple[str, ...]:
        """The tickets of a campaign whose rounds are not observed yet, oldest first."""
        with self._guard.alone(self):
            if not self._campaigns.pending:
                raise SessionError("tickets are for late feedback; begin the fleet with pending=")
            turn = Turn(self._campaigns, self._campaigns.rows_of([checked_campaign(name)]))
            order, counts = oldest_first(turn.columns, np.zeros(1, np.int64))
            tickets = turn.columns["ticket"][0, order[0, : counts[0]]].tolist()
            return tuple(ticket.decode() for ticket in tickets)

    def budgets(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Where the budgets of these campaigns stand, a row each: `budget`, `planned` (what may be spent by the end of
        the next round), `spent`, and `reserved` by decisions that wait for their rounds. Of `learners.Budgeted`."""
        with self._guard.alone(self):
            if not self._campaigns.budgets:
                raise SessionError("budgets are those of learners.Budgeted; this learner has none")
            return standing_of(self._campaigns, self._campaigns.rows_of(checked_names(names)))

    def certificate(self, name: str, *, lmos: int = 20) -> Certificate:
        """A proven bound on the regret of a campaign so far, as `Session.certificate`. Needs `certify=True`."""
        with self._guard.alone(self):
            return certificate_of(self._campaigns, int(self._campaigns.rows_of([checked_campaign(name)])[0]), lmos)

    def regret_bounds(self, names: Iterable[str]) -> np.ndarray:
        """Proven bounds on the regret of these campaigns so far, with at most seven LMOs each. Needs `certify=True`."""
        with self._guard.alone(self):
            return bounds_of(self._campaigns, self._campaigns.rows_of(checked_names(names)))

    def game(self, name: str, *, keep_rounds: bool = False) -> Game:
        """The rounds of a campaign so far as a `Game`; with their data if `keep_rounds`. Reads the whole file."""
        past, decision = self._past(name, keep_rounds)
        return stacked_game(self._campaigns.problem, past.numbers, past.rounds, decision)

    def history(self, name: str, *, names: Sequence[str] | None = None) -> np.ndarray:
        """One row a round of this campaign, as `Session.history`; `names` are those of a decision's entries."""
        past, decision = self._past(name, False)
        return rows_of(remarked_table(self._campaigns.problem, past.numbers, past.remarks, decision, names))

    def _past(self, name: str, keep_rounds: bool) -> tuple[Past, Point]:
        """(past rounds, something of a decision's form)."""
        with self._guard.alone(self):
            row = self._campaigns.rows_of([checked_campaign(name)])
            decision = jax.tree.map(lambda leaf: leaf[0], self._campaigns.decisions(row))
        events = self._durable.past(lambda: self._guard.alone(self))  # other calls need not wait for all of it
        try:
            past = past_of(name, int(row[0]), events, self._campaigns, self._durable.schema, keep_rounds)
        except Damaged as damage:
            raise SessionError(f"{self.path} is damaged at {damage}; {self._campaigns.remedy}") from None
        return past, decision

    def regret(self, name: str, comparator: Any = None) -> Any:
        """Running regret of a campaign, as `Session.regret`."""
        return regret_of(self.game(name, keep_rounds=True), self._campaigns.problem, comparator)
