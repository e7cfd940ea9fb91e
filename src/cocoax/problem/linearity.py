"""Whether loss and constraints are linear in the decision, as their traces show."""

from typing import Any

import jax
from jax.extend.core import Literal

from .problem import Problem, Round


def is_linear(problem: Problem, round: Round) -> bool:
    """Whether no gradient depends on the decision, for rounds of these shapes.

    False does not prove the contrary: what the trace does not show counts as dependence.
    """
    return is_constant(problem.gradients, problem.domain.start(), round)


def is_constant(function, x, *rest) -> bool:
    """Whether `function(x, *rest)` does not depend on x. False does not prove the contrary."""
    trace = jax.make_jaxpr(function)(x, *rest)
    entries = len(jax.tree.leaves(x))
    inputs = [number < entries for number in range(len(trace.jaxpr.invars))]
    return not any(_dependent(trace.jaxpr, inputs))


def _dependent(jaxpr, inputs: list[bool]) -> list[bool]:
    """Which outputs depend on those inputs."""
    known: dict[Any, bool] = dict(zip(jaxpr.invars, inputs))

    def depends(variable):
        return not isinstance(variable, Literal) and known.get(variable, False)

    for equation in jaxpr.eqns:
        arguments = [depends(variable) for variable in equation.invars]
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        inner = getattr(inner, "jaxpr", inner)
        if equation.primitive.name in ("jit", "pjit", "custom_jvp_call") and len(inner.invars) == len(arguments):
            outputs = _dependent(inner, arguments)
        else:
            outputs = [any(arguments)] * len(equation.outvars)
        known.update(zip(equation.outvars, outputs))
    return [depends(variable) for variable in jaxpr.outvars]
