"""The data of a report: the statistics of its games, each computed when it is first needed."""

import dataclasses
import functools

import polars as pl

from ..results import rows, statistics
from .figures import Rates, Style


@dataclasses.dataclass(frozen=True)
class ReportData:
    """The games of all problems, or of one, and their statistics."""

    stored: pl.DataFrame  # the games with their rows in the store, which is read once
    looks: dict[str, Style]  # by learner
    rates: Rates

    def of_problem(self, name: str) -> "ReportData":
        return dataclasses.replace(self, stored=self.stored.filter(pl.col("problem") == name))

    @functools.cached_property
    def table(self) -> pl.DataFrame:
        return rows.table(self.stored)

    @functools.cached_property
    def played(self) -> pl.DataFrame:
        return statistics.played(self.table)

    @functools.cached_property
    def summary(self) -> pl.DataFrame:
        return statistics.summary(self.table)

    def standings_at(self, horizon: int) -> pl.DataFrame:
        """The summary at a horizon, sorted by score.

        Learners that missed games come last and have `whole=False`.
        """
        rows = self.summary.filter(pl.col("horizon") == horizon)
        rows = rows.with_columns(whole=(pl.col("games") == pl.col("games").max()) & pl.col("score_mean").is_not_nan())
        return rows.sort(~pl.col("whole"), "score_mean", maintain_order=True)

    @functools.cached_property
    def standings(self) -> pl.DataFrame:
        """`standings_at` the largest horizon."""
        return self.standings_at(self.horizon)

    @property
    def best(self) -> list[str]:
        """The learners with the lowest score at the largest horizon."""
        return best_of(self.standings)

    @functools.cached_property
    def curves(self) -> pl.DataFrame:
        """`statistics.over_rounds` at each problem's largest horizon."""
        last = statistics.at_largest_horizon(self.played)
        here = self.stored.filter(pl.col("horizon").is_in(last["horizon"].unique().to_list()))
        return statistics.over_rounds(rows.curves(here), last)

    @functools.cached_property
    def slopes(self) -> pl.DataFrame:
        return statistics.slopes(self.table)

    @functools.cached_property
    def differences(self) -> pl.DataFrame:
        return statistics.differences(self.table)

    @functools.cached_property
    def seconds(self) -> pl.DataFrame:
        return rows.seconds(self.stored)

    @property
    def constrained(self) -> bool:
        return statistics.is_constrained(self.table)

    @property
    def horizon(self) -> int:
        """The largest horizon."""
        return max(self.table["horizon"])


def best_of(standings: pl.DataFrame) -> list[str]:
    """The learners with the lowest score (several if equal); none if fewer than two played all games."""
    whole = standings.filter("whole")
    return [] if len(whole) < 2 else whole.filter(score_mean=whole["score_mean"][0])["learner"].to_list()
