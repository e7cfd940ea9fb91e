"""What a study was given, checked."""

from collections.abc import Mapping

import jax
import numpy as np

from ..core import check
from ..errors import LabError, ProblemError


def check_rounds(name, drawn, longest):
    lengths = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in jax.tree.leaves(drawn.rounds)}
    if min(lengths, default=0) < longest:
        raise ProblemError(
            f"the problem {name!r} has {min(lengths, default=0)} rounds, but a horizon of {longest} was asked"
        )


def named(given, what) -> Mapping:
    if not isinstance(given, Mapping) or not given:
        found = "none" if given == {} else check.described(given)
        raise LabError(f"{what}s must be a dict of at least one {what} by its name, got {found}")
    if len({str(name) for name in given}) < len(given):
        raise LabError(f"two {what}s have the same name")
    return given


def of_problem(horizons, name):
    if not isinstance(horizons, Mapping):
        return horizons
    if name not in horizons:
        raise LabError(f"horizons are given by problem, but none for {name!r}")
    return horizons[name]


def numbers(values, name, low) -> list[int]:
    if isinstance(values, str) or any(isinstance(value, bool) for value in np.atleast_1d(values).tolist()):
        raise LabError(f"{name} must be a list of whole numbers, got {check.described(values)}")
    try:
        found = sorted({check.whole(value, name, LabError, low) for value in values})
    except TypeError:
        raise LabError(f"{name} must be a list of whole numbers, got {check.described(values)}") from None
    if not found:
        raise LabError(f"{name} must hold at least one number")
    return found
