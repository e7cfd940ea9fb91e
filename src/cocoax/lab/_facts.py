"""What a report shows, computed once, and what its learners are."""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import numpy as np
import polars as pl

from . import statistics
from .figures import Rates, Style


@dataclasses.dataclass(frozen=True)
class Facts:
    """Everything that is shown, of all problems or of one."""

    table: pl.DataFrame
    summary: pl.DataFrame
    curves: pl.DataFrame  # at each problem's largest horizon
    slopes: pl.DataFrame
    differences: pl.DataFrame
    seconds: pl.DataFrame
    learners: Mapping[str, Any]  # as the study was given them; of one problem, those that play it
    looks: dict[str, Style]
    rates: Rates

    @classmethod
    def of(cls, study, rates: Rates, looks) -> "Facts":
        games = study.table()
        curves = statistics.at_largest_horizon(statistics.over_rounds(study.curves(), games))
        return cls(
            games,
            statistics.summary(games),
            curves,
            statistics.slopes(games),
            statistics.differences(games),
            study.seconds(),
            study.learners,
            looks,
            rates,
        )

    def about(self, problem: str) -> "Facts":
        """Those of one problem."""
        frames = {
            field.name: getattr(self, field.name).filter(pl.col("problem") == problem)
            for field in dataclasses.fields(self)
            if isinstance(getattr(self, field.name), pl.DataFrame)
        }
        of_problem = {
            name: each[problem] if isinstance(each, Mapping) else each
            for name, each in self.learners.items()
            if not isinstance(each, Mapping) or problem in each
        }
        return dataclasses.replace(self, learners=of_problem, **frames)

    @property
    def constrained(self) -> bool:
        return statistics.is_constrained(self.table)

    @property
    def horizon(self) -> int:
        return max(self.table["horizon"])


def described(part) -> str:
    """A module as one would write it, with its numbers."""
    if isinstance(part, eqx.Module):
        given = arguments(part).items()
        inner = ", ".join(f"{key}={described(value)}" for key, value in given if value is not None)
        return f"{type(part).__name__}({inner})"
    if eqx.is_array_like(part) and not isinstance(part, bool):
        return f"{float(part):g}" if np.ndim(part) == 0 else np.array2string(np.asarray(part), threshold=6)
    return repr(part) if isinstance(part, str | bool) else getattr(part, "__name__", repr(part))


def arguments(part) -> dict[str, Any]:
    """What its class is to be given for an equal module; its fields, where that cannot be told from them."""
    fields = _fields(part)
    try:
        given = {
            name: fields[name] if name in fields else getattr(part, name)
            for name in inspect.signature(type(part)).parameters
        }
        again = type(part)(**given)
    except Exception:  # a class of the user's, which may need anything
        return fields
    return given if eqx.tree_equal(again, part) else fields


def _fields(part) -> dict[str, Any]:
    fields = dataclasses.fields(part)
    return {field.metadata.get("argument", field.name): getattr(part, field.name, None) for field in fields}


def changed(part) -> dict[str, str]:
    """What a learner, or a part of it, was given that is not what its class chooses when it is not told."""
    found = arguments(part)
    needed = {
        name: found.get(name)
        for name, parameter in inspect.signature(type(part)).parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    try:
        usual = type(part)(**needed)
    except Exception:  # a class of the user's, which may need anything
        return {}
    found = _unlike(part, usual)
    for name, inner in needed.items():
        if isinstance(inner, eqx.Module):
            found |= {f"{name}.{field}": value for field, value in changed(inner).items()}
    return found


def _unlike(part, usual) -> dict[str, str]:
    found: dict[str, str] = {}
    mine, others = arguments(part), arguments(usual)
    if mine.keys() != others.keys():
        mine, others = _fields(part), _fields(usual)
    for name, value in mine.items():
        other = others[name]
        if isinstance(value, eqx.Module) and type(value) is type(other):
            found |= {f"{name}.{inner}": each for inner, each in _unlike(value, other).items()}
        elif described(value) != described(other):
            found[name] = described(value)
    return found
