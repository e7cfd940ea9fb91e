"""Looking at a fleet: its campaigns, their totals, their past, and bounds on their regret."""

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from ..comparators.certificate import Certificate
from ..errors import SessionError
from ..games.game import Game
from ..problem.problem import Problem
from .arguments import checked_campaign
from .campaign_events import MOST
from .campaigns import Campaigns
from .fleet_certificates import bounds_of, certificate_of
from .fleet_history import rounds_of
from .history import regret_of, rows_of, stacked_game
from .standing import alarm_for
from .stored import Stored


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
    def schema(self) -> Any:
        """Fields, shapes and dtypes of a round, as JSON; None before the first one."""
        return None if self._durable.schema is None else self._durable.schema.json

    def key(self, name: str) -> PRNGKeyArray:
        """The key of a session that takes the same decisions as this campaign."""
        return self._campaigns.key_of(checked_campaign(name))

    def rounds(self, names: Iterable[str]) -> np.ndarray:
        """How many rounds each of these campaigns has observed."""
        with self._guard.alone(self):
            return self._campaigns.totals.columns["rounds"][self._known(checked_names(names))]

    def summary(self, name: str | None = None) -> dict:
        """Totals and multipliers of one campaign, as `Session.summary`; without a name, of the whole fleet."""
        with self._guard.alone(self):
            campaigns = self._campaigns
            if name is not None:
                row = int(self._known([checked_campaign(name)])[0])
                alarm = alarm_for(campaigns.totals.alarms(row, campaigns.problem.names))
                return {"campaign": name, **campaigns.totals.summary(row, campaigns.problem.names), "alarm": alarm}
            rows = np.fromiter(campaigns.rows.values(), np.int64, len(campaigns.rows))
            path = None if self.path is None else str(self.path)
            names = campaigns.problem.names
            whole = campaigns.totals.whole(rows, names) | campaigns.totals.multipliers(rows, names)
            alarms = int(campaigns.totals.columns["alarm"][rows].any(1).sum())
            return {"path": path, "campaigns": len(rows), **whole, "alarms": alarms}

    def certificate(self, name: str, *, lmos: int = 20) -> Certificate:
        """A proven bound on the regret of a campaign so far, as `Session.certificate`. Needs `certify=True`."""
        with self._guard.alone(self):
            return certificate_of(self._campaigns, int(self._known([checked_campaign(name)])[0]), lmos)

    def regret_bounds(self, names: Iterable[str]) -> np.ndarray:
        """Proven bounds on the regret of these campaigns so far, with at most seven LMOs each. Needs `certify=True`."""
        with self._guard.alone(self):
            return bounds_of(self._campaigns, self._known(checked_names(names)))

    def game(self, name: str, *, keep_rounds: bool = False) -> Game:
        """The rounds of a campaign so far as a `Game`; with their data if `keep_rounds`. Reads the whole file."""
        with self._guard.alone(self):
            row = self._known([checked_campaign(name)])
            decision = jax.tree.map(lambda leaf: leaf[0], self._campaigns.decisions(row))
        events = self._durable.past(lambda: self._guard.alone(self))  # other calls need not wait for all of it
        outcomes, data = rounds_of(name, int(row[0]), events, self._durable.schema, keep_rounds)
        return stacked_game(self._campaigns.problem, outcomes, data, decision)

    def history(self, name: str) -> np.ndarray:
        """One row a round of this campaign, as `Session.history`."""
        return rows_of(self.game(name).table())

    def regret(self, name: str, comparator: Any = None) -> Any:
        """Running regret of a campaign, as `Session.regret`."""
        return regret_of(self.game(name, keep_rounds=True), self._campaigns.problem, comparator)

    def _known(self, names) -> np.ndarray:
        rows = self._campaigns.rows
        if unknown := [name for name in names if name not in rows]:
            raise SessionError(f"there is no campaign {unknown[0]!r}; it has not begun, or has ended")
        return np.fromiter((rows[name] for name in names), np.int64, len(names))


def checked_names(names) -> list[str]:
    if isinstance(names, str):
        raise SessionError(f"names must be a list of names, got the string {names!r}; give [{names!r}]")
    names = list(names)
    for name in names:
        checked_campaign(name)
    if not 0 < len(names) <= MOST:
        raise SessionError(f"a call serves 1 to {MOST:,} campaigns, got {len(names)}; give them in parts")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise SessionError(f"{twice!r} comes twice; each campaign may come once in a call")
    return names
