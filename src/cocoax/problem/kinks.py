r"""Kinks of a loss, found in its trace: every $|z|$, $\max(a, b)$ and $\min(a, b)$ that depends on the decision.

Since $\max(a,b) = \frac{a+b}2 + |\frac{a-b}2|$, all of them are absolute values. A loss is rebuilt with something else
in their place.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.extend.core.primitives import abs_p, max_p, min_p, sqrt_p

from ..core import traces

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
    program, like = jax.make_jaxpr(function, return_shape=True)(x, *rest)
    count, values = len(jax.tree.leaves(x)), jax.tree.leaves((x, *rest))

    def rule(equation, inputs):  # pairs: a value, and whether it depends on x
        values, depends = zip(*inputs) if inputs else ((), ())
        if not any(depends):
            return [(value, False) for value in traces.computed(equation, values)]
        inner = _inlined(equation)
        if inner is not None:
            return traces.interpret(inner, inputs, rule, lambda constant: (constant, False))
        replaced = _replaced(equation, values, *rules)
        if replaced is not None:
            return [(replaced, True)]
        look(equation, depends)
        return [(value, True) for value in traces.computed(equation, values)]

    marked = [(value, number < count) for number, value in enumerate(values)]
    results = traces.interpret(program, marked, rule, lambda constant: (constant, False))
    return jax.tree.unflatten(jax.tree.structure(like), [value for value, _ in results])


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
        return any(_uses(inner, _KINKS) for inner in traces.programs(equation))
    chosen = (each.aval for each, depend in zip(equation.invars, depends) if depend)
    return equation.primitive.name in _CASES or any(not jnp.issubdtype(one.dtype, jnp.inexact) for one in chosen)


def _inlined(equation):
    """The program that an equation calls, if it may hold kinks; not that of smooth functions such as logaddexp."""
    inner = traces.called(equation)
    is_smooth = equation.primitive.name == "custom_jvp_call" and inner is not None and _uses(inner, _OTHER)
    return None if is_smooth else inner


def _uses(program, names) -> bool:
    return any(
        equation.primitive.name in names or any(_uses(inner, names) for inner in traces.programs(equation))
        for equation in program.jaxpr.eqns
    )
