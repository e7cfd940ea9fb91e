"""Whether loss and constraints can have poles, as their traces show."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from ..core import traces, tree
from ..domains.base import Point
from .problem import Problem, Round

# What is finite, with a finite derivative, wherever its arguments are finite.
_ARITHMETIC = {"abs", "add", "add_any", "clamp", "dot_general", "max", "min", "mul", "neg", "sign", "square", "sub"}
_SMOOTH = {"cos", "erf", "logistic", "sin", "tanh"}
_SUMS = {"argmax", "argmin", "cumsum", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_sum"}
_TESTS = {"and", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "select_n"}
_PLACES = {
    "concatenate",
    "dynamic_slice",
    "dynamic_update_slice",
    "iota",
    "pad",
    "rev",
    "scatter-add",
    "slice",
}
_SHAPES = {"broadcast_in_dim", "convert_element_type", "copy", "expand_dims", "reshape", "squeeze", "transpose"}
_ENTIRE = _ARITHMETIC | _SMOOTH | _SUMS | _TESTS | _PLACES | _SHAPES
_OWN_DERIVATIVE = "custom_jvp_call"  # which may be anything


def may_have_poles(problem: Problem, x: Point, round: Round) -> bool:
    """Whether values or gradients could be infinite somewhere in the domain, for rounds of finite numbers.

    True does not prove that they are: what the trace does not show counts as a pole, as logarithms, roots and
    divisions do wherever they stand. Overflow does not count. What functions close over is looked at, except where it
    is traced: there, numbers count as finite.
    """
    if problem.loss_grad is not None or problem.constraint_grad is not None:
        return True
    return not _is_entire(jax.make_jaxpr(problem.values)(x, round))


def _is_entire(program: Any) -> bool:
    found = []

    def rule(equation, inputs):
        inner = None if equation.primitive.name == _OWN_DERIVATIVE else traces.called(equation)
        if inner is not None:
            return traces.interpret(inner, inputs, rule, lift)
        found.append(_is_entire_equation(equation))
        return [None] * len(equation.outvars)

    def lift(constant):
        found.append(_is_finite(constant))

    traces.interpret(program, [None] * len(program.in_avals), rule, lift)
    return all(found)


def _is_finite(constant) -> bool:
    if tree.is_traced(constant) or not jnp.issubdtype(jnp.result_type(constant), jnp.inexact):
        return True
    return bool(np.isfinite(np.asarray(constant)).all())


def _is_entire_equation(equation) -> bool:
    name = equation.primitive.name
    if name == "gather":
        return equation.params["mode"] is not jax.lax.GatherScatterMode.FILL_OR_DROP  # with NaN, beyond the ends
    if name == "integer_pow":
        return equation.params["y"] >= 0
    if name == "div":
        below = equation.invars[1]
        return isinstance(below, Literal) and bool(below.val != 0)
    return name in _ENTIRE
