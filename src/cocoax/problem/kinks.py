r"""Kinks of a loss, found in its trace: every $|z|$, $\max(a, b)$ and $\min(a, b)$ that depends on the decision.

Since $\max(a,b) = \frac{a+b}2 + |\frac{a-b}2|$, all of them are absolute values. A loss is rebuilt with something else
in their place.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal
from jax.extend.core.primitives import abs_p, max_p, min_p, sqrt_p

_CALLS = ("jit", "pjit", "custom_jvp_call", "closed_call")
_OTHER = ("exp", "log", "log1p", "exp2", "logistic", "pow", "while", "scan", "cond")
_ORDER = ("sort", "argmax", "argmin", "reduce_max", "reduce_min", "cummax", "cummin", "top_k")
_TESTS = ("eq", "ne", "lt", "le", "gt", "ge")
_POWERS = ("pow", "cbrt", "rsqrt", "atan2")
_UNKNOWN = ("custom_vjp_call",)  # it has no forward derivative, and may be anything
_STEPS = ("abs", "clamp", "sign", "floor", "ceil", "round", "rem", "while", "cond")
_CASES = (*_STEPS, *_ORDER, *_TESTS, *_POWERS, *_UNKNOWN)
_KINKS = ("max", "min", "sqrt", "select_n", *_CASES)
_WHOLE = ("scan", "remat2", "checkpoint")  # calls that are never inlined


def replace_kinks(function: Callable, rule: Callable, x, *rest, root: Callable = jnp.sqrt):
    """`function(x, *rest)` with `rule(z)` in place of every |z| that depends on x, and `root(z)` of its square roots.

    A root may have a kink where z is 0: that of a convex function if it counts positively, as it is nowhere lower.
    """
    return _rebuilt(function, (rule, root), lambda equation, depends: None, x, *rest)


def has_other_kinks(function: Callable, x, *rest) -> bool:
    """Whether x chooses between cases otherwise than by |z|, max and min, as in `where(x > 0, x, 0)` or `(x > 0) * x`.

    What is left of a convex function without its |z| need not be convex then. Of square roots see `replace_kinks`.
    """
    found = []

    def look(equation, depends):
        found.append(_chooses(equation, depends))

    jax.eval_shape(lambda *given: _rebuilt(function, (jnp.abs, jnp.sqrt), look, *given), x, *rest)
    return any(found)


def _rebuilt(function, rules, look, x, *rest):
    """`look` sees every equation that depends on x, and which of its arguments do, but for those of kinks."""
    trace, like = jax.make_jaxpr(function, return_shape=True)(x, *rest)
    count = len(jax.tree.leaves(x))
    values = jax.tree.leaves((x, *rest))
    marks = [number < count for number in range(len(values))]
    results, _ = _evaluate(trace.jaxpr, trace.consts, values, marks, rules, look)
    return jax.tree.unflatten(jax.tree.structure(like), results)


def _evaluate(jaxpr, consts, values, marks, rules, look):
    """Results, and whether they depend on the decision."""
    known: dict[Any, tuple] = {}

    def read(variable):
        return (variable.val, False) if isinstance(variable, Literal) else known[variable]

    known.update(zip(jaxpr.constvars, ((value, False) for value in consts)))
    known.update(zip(jaxpr.invars, zip(values, marks)))
    for equation in jaxpr.eqns:
        arguments, depends = zip(*map(read, equation.invars)) if equation.invars else ((), ())
        inner = _inlined(equation) if any(depends) else None
        if inner is not None:
            results, dependent = _evaluate(inner.jaxpr, inner.consts, arguments, depends, rules, look)
        else:
            replaced = _replaced(equation, arguments, *rules) if any(depends) else None
            if replaced is None:
                if any(depends):
                    look(equation, depends)
                params = equation.primitive.get_bind_params(equation.params)
                before, params = params if isinstance(params, tuple) else ((), params)  # the former until JAX 0.9
                replaced = equation.primitive.bind(*before, *arguments, **params)
            results = replaced if equation.primitive.multiple_results else [replaced]
            dependent = [any(depends)] * len(results)
        known.update(zip(equation.outvars, zip(results, dependent)))
    return tuple(zip(*map(read, jaxpr.outvars))) if jaxpr.outvars else ((), ())


def _replaced(equation, arguments, rule, root):
    if equation.primitive is sqrt_p:
        return root(arguments[0])
    if equation.primitive is abs_p and jnp.issubdtype(arguments[0].dtype, jnp.floating):
        return rule(arguments[0])
    if equation.primitive in (max_p, min_p) and jnp.issubdtype(jnp.result_type(*arguments), jnp.floating):
        a, b = (0.5 * jnp.asarray(argument) for argument in arguments)
        a, b = jnp.broadcast_arrays(a, b)
        return a + b + rule(a - b) if equation.primitive is max_p else a + b - rule(a - b)
    return None


def _chooses(equation, depends) -> bool:
    """Whether an equation's result has kinks or jumps where those of its arguments change."""
    if equation.primitive.name in _WHOLE:
        return _uses([equation], _KINKS)
    chosen = (each.aval for each, depend in zip(equation.invars, depends) if depend)
    return equation.primitive.name in _CASES or any(not jnp.issubdtype(one.dtype, jnp.inexact) for one in chosen)


def _inlined(equation):
    """The program that an equation calls, if it may hold kinks; not that of smooth functions such as logaddexp."""
    inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    if equation.primitive.name not in _CALLS or inner is None or not hasattr(inner, "consts"):
        return None
    smooth = equation.primitive.name == "custom_jvp_call" and _uses(inner.jaxpr.eqns, _OTHER)
    return None if smooth else inner


def _uses(equations, names):
    for equation in equations:
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        inner = getattr(inner, "jaxpr", inner)
        if equation.primitive.name in names or (hasattr(inner, "eqns") and _uses(inner.eqns, names)):
            return True
    return False
