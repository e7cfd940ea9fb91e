"""Programs as JAX traces them, gone through one equation after another."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

_CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call")


def interpret(program: ClosedJaxpr, inputs, rule: Callable, lift: Callable = lambda constant: constant) -> list:
    """The outputs of a program, where `rule(equation, inputs)` has those of an equation.

    Values may be of any kind: numbers, marks, names. `lift` makes them of constants. `computed` is the rule of JAX
    itself; a rule may replace an equation, or go on with the programs inside it (`called`, `programs`).
    """
    jaxpr = program.jaxpr
    known = dict(zip(jaxpr.constvars, map(lift, program.consts))) | dict(zip(jaxpr.invars, inputs))

    def read(atom):
        return lift(atom.val) if isinstance(atom, Literal) else known[atom]

    for equation in jaxpr.eqns:
        known.update(zip(equation.outvars, rule(equation, [read(atom) for atom in equation.invars])))
    return [read(atom) for atom in jaxpr.outvars]


def computed(equation: JaxprEqn, inputs) -> list:
    """What JAX computes."""
    params = equation.primitive.get_bind_params(equation.params)
    before, params = params if isinstance(params, tuple) else ((), params)  # the former until JAX 0.9
    results = equation.primitive.bind(*before, *inputs, **params)
    return results if equation.primitive.multiple_results else [results]


def called(equation: JaxprEqn) -> ClosedJaxpr | None:
    """The program that an equation does nothing but call, with its own inputs; None of other equations."""
    return next(programs(equation), None) if equation.primitive.name in _CALLS else None


def programs(equation: JaxprEqn) -> Iterator[ClosedJaxpr]:
    """All programs inside an equation: what it calls, branches, the body of a loop."""
    for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=is_program):
        if is_program(inner):
            yield closed(inner)


def is_program(node: Any) -> bool:
    return isinstance(node, ClosedJaxpr | Jaxpr)


def closed(program: ClosedJaxpr | Jaxpr) -> ClosedJaxpr:
    """With its constants, of which an open one has none."""
    return ClosedJaxpr(program, ()) if isinstance(program, Jaxpr) else program


def depends(program: ClosedJaxpr, marks) -> list[bool]:
    """Which outputs depend on the inputs with a mark. True does not prove that they do."""

    def rule(equation, marks):
        inner = called(equation)
        return [any(marks)] * len(equation.outvars) if inner is None else depends(inner, marks)

    return interpret(program, marks, rule, lambda _: False)
