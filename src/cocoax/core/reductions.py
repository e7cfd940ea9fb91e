"""How sums of a program may be added up."""

import math
import weakref
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

SHORT = 4096  # numbers: more, added up in 32 lanes, would lose more digits than in a tree
_TINY = 32  # numbers: so many are always added in order
_WHOLE = 1 << 16  # entries of an array of which sums are taken: XLA may make one of a sum of sums

_of_programs: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def sums_are_short(program: ClosedJaxpr) -> bool:
    """Whether every sum, minimum or maximum is of at most `SHORT` numbers that lie side by side in memory.

    Then a CPU is fastest if it adds them from the first to the last, and loses no more digits than by a tree.
    """
    known = _of_programs.get(program)
    if known is None:
        known = _of_programs[program] = all(map(_is_short, _equations(program.jaxpr)))
    return known


def _equations(jaxpr: Jaxpr):
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _equations(getattr(inner, "jaxpr", inner))


def _is_program(node) -> bool:
    return isinstance(node, ClosedJaxpr | Jaxpr)


def _is_short(equation) -> bool:
    """Sums of whole numbers are exact in any order."""
    operand = equation.invars[0].aval if equation.invars else None
    if operand is None or not jnp.issubdtype(getattr(operand, "dtype", bool), jnp.inexact):
        return True
    name, shape, parameters = equation.primitive.name, operand.shape, equation.params
    if name == "dot_general":
        return _count(shape, parameters["dimension_numbers"][0][0]) <= SHORT
    axes = parameters.get("dimensions") if name == "reduce" else parameters.get("axes")
    if axes is None or not (name.startswith("reduce") or name in ("argmin", "argmax")):
        return True
    last, count = [*range(len(shape) - len(axes), len(shape))], _count(shape, axes)
    return count <= _TINY or (sorted(axes) == last and count <= SHORT and math.prod(shape) <= _WHOLE)


def _count(shape: tuple[int, ...], axes) -> int:
    return math.prod([shape[axis] for axis in axes])
