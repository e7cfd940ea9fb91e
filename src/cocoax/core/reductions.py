"""How sums of a program may be added up."""

import math
import weakref
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

SHORT = 4095  # numbers: in float32, one loop then errs by 1.2 half units in the last place, a tree by 0.7 (30 seeds)
_TINY = 32  # numbers: so many are always added in order
_WHOLE = 1 << 16  # entries of an array of which sums are taken: XLA may make one of a sum of sums

_of_programs: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def sums_are_short(program: ClosedJaxpr) -> bool:
    """Whether every sum, minimum, maximum and inner product is short: of at most 32 numbers, or of at most `SHORT` that
    lie side by side in memory (which is not asked of products).

    CPUs are fastest if such sums are one loop, several numbers at a time. XLA would make a tree of three loops.
    """
    if program not in _of_programs:
        _of_programs[program] = all(map(_is_short, _equations(program.jaxpr)))
    return _of_programs[program]


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
