"""What a report shows, and what its learners are."""

import dataclasses
import functools
import inspect
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
import polars as pl

from ..results import rows, statistics
from .figures import Rates, Style

Changes = Mapping[tuple[str, str | None], Mapping[str, str]]  # of the learners that `one_by_one` names


@dataclasses.dataclass(frozen=True)
class Facts:
    """Everything that is shown, of all problems or of one; computed when it is first asked for."""

    stored: pl.DataFrame  # the games with their rows in the store, which is read once
    looks: dict[str, Style]
    rates: Rates

    def about(self, problem: str) -> "Facts":
        """Those of one problem."""
        return dataclasses.replace(self, stored=self.stored.filter(pl.col("problem") == problem))

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
        return max(self.table["horizon"])


def one_by_one(learners: Mapping[str, Any]) -> dict[tuple[str, str | None], Any]:
    """By name; where a name stands for another learner in each problem, by name and problem."""
    found = {}
    for name, learner in learners.items():
        each = learner if isinstance(learner, Mapping) else {None: learner}
        found |= {(name, problem): one for problem, one in each.items()}
    return found


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
    part = jax.device_get(part)  # comparing arrays of JAX would compile a program
    fields = _fields(part)
    try:
        given = {
            name: fields[name] if name in fields else getattr(part, name)
            for name in inspect.signature(type(part)).parameters
        }
        again = jax.device_get(type(part)(**given))
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
