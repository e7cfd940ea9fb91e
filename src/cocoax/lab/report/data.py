"""The data of a report: the statistics of its games, each computed when it is first needed."""

import dataclasses
import functools

import polars as pl

from ..results import rows, statistics
from .figures import Rates, Style


@dataclasses.dataclass(frozen=True)
class ReportData:
    """Of all problems, or of one."""

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

    @functools.cached_property
    def curves(self) -> pl.DataFrame:
        """At each problem's largest horizon."""
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
        """The largest."""
        return max(self.table["horizon"])
