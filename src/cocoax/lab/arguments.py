"""Checks of a study's arguments, and errors from users' code as one line."""

import contextlib
from collections.abc import Mapping

import jax
import numpy as np

from ..core import check
from ..errors import CocoaxError, LabError, ProblemError


def check_rounds(name, drawn, longest):
    """Raise `ProblemError` if a problem has fewer rounds than the longest horizon."""
    shortest = min((np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in jax.tree.leaves(drawn.rounds)), default=0)
    if shortest < longest:
        raise ProblemError(f"the problem {name!r} has {shortest} rounds, but a horizon of {longest} was asked")


def by_name(parts, what) -> Mapping:
    """`parts`, checked to be a nonempty dict with distinct names; `what` is "problem" or "learner"."""
    if not isinstance(parts, Mapping) or not parts:
        text = "none" if parts == {} else check.described(parts)
        raise LabError(f"{what}s must be a dict of at least one {what} by its name, got {text}")
    if len({str(name) for name in parts}) < len(parts):
        raise LabError(f"two {what}s have the same name")
    return parts


def of_problem(horizons, name):
    """The horizons of the problem `name`; `horizons` is one list for all problems, or a dict by problem."""
    if not isinstance(horizons, Mapping):
        return horizons
    if name not in horizons:
        raise LabError(f"horizons are given by problem, but none for {name!r}")
    return horizons[name]


def whole_numbers(values, name, low) -> list[int]:
    """The distinct numbers in increasing order, checked to be integers >= `low`."""
    if isinstance(values, str) or any(isinstance(value, bool) for value in np.atleast_1d(values).tolist()):
        raise LabError(f"{name} must be a list of whole numbers, got {check.described(values)}")
    try:
        numbers = sorted({check.whole(value, name, LabError, low) for value in values})
    except TypeError:
        raise LabError(f"{name} must be a list of whole numbers, got {check.described(values)}") from None
    if not numbers:
        raise LabError(f"{name} must hold at least one number")
    return numbers


def error_text(error: Exception) -> str:
    """The error as one line, beginning with its type unless it is a `CocoaxError`."""
    text = " ".join(str(error).split("\n--------------------")[0].split())
    return text if isinstance(error, CocoaxError) else f"{type(error).__name__}: {text}"


@contextlib.contextmanager
def naming_problem(name):
    """Context for users' code that makes a problem and its rounds: its errors become a `LabError` with the name."""
    try:
        yield
    except Exception as error:
        raise LabError(f"the problem {name!r} raised {error_text(error)}; mend it and run again") from error
