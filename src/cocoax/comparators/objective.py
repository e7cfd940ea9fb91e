"""The total loss and the constraints of a benchmark as compiled functions of one flat vector."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..core import tree
from ..errors import ProblemError
from ..problem.functions import constraint_values, function_of
from ..problem.rounds import number_of_rounds
from .comparator import each_round, float64
from .solver import Evaluation


class Expected(eqx.Module):
    """The constraints' expectation, as a vector."""

    function: Callable
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, function, names):
        self.function, self.names = function_of(function, "expected_constraint", "x"), names

    def __call__(self, x):
        return constraint_values(self.function, "expected_constraint", self.names, x)


class Objective:
    """F = (1/T) sum_t f_t and the G of the benchmark on flat vectors; every pass over the rounds is compiled."""

    def __init__(self, problem, rounds, expected, benchmark):
        self.problem, self.rounds, self.benchmark = problem, rounds, benchmark
        self.horizon = number_of_rounds(rounds)
        self.unit = 1.0 / self.horizon
        self.expected: Any = None if expected is None else float64(Expected(expected, problem.names))
        self.start = float64(problem.domain.start())
        loss, constraint = each_round(problem, rounds, self.start, None)
        for name, values in (("loss", loss), ("constraint", constraint)):
            bad = ~np.isfinite(np.asarray(values).reshape(self.horizon, -1)).all(axis=1)
            if bad.any():
                raise ProblemError(f"the {name} of round {bad.argmax()} is not finite at the domain's start")
        bad = ~np.asarray(_finite_gradients(problem, rounds, self.start))
        if bad.any():
            raise ProblemError(f"the gradient of round {bad.argmax()} is not finite at the domain's start")
        self.count = problem.constraints * (self.horizon if benchmark == "every_round" else 1)
        if expected is not None:
            jax.eval_shape(self.expected, self.start)

    def measure(self, x, weights):
        answer = _measure(self.problem, self.rounds, self.expected, self.start, x, weights, self.benchmark)
        loss, constraint, slope = (np.asarray(part) for part in answer)
        return Evaluation(x, float(loss), constraint, slope)

    def jacobian(self, x):
        if self.count == 0:
            return np.zeros((0, len(x)))
        return np.asarray(_jacobian(self.problem, self.rounds, self.expected, self.start, x, self.benchmark))


@eqx.filter_jit
def _finite_gradients(problem, rounds, x):
    return jax.vmap(lambda r: tree.all_finite(problem.gradients(x, r)))(rounds)


@eqx.filter_jit
def _measure(problem, rounds, expected, like, x, weights, benchmark):
    """(F, G, the gradient of F + <weights, G>) in one pass."""
    point = ravel_pytree(like)[1](x)
    horizon, m = number_of_rounds(rounds), problem.constraints
    if benchmark == "every_round":
        of_round = horizon * weights.reshape(horizon, m)
    else:
        of_round = jnp.broadcast_to(weights if expected is None else jnp.zeros(m), (horizon, m))

    def one(r, b):
        loss, constraint, pull = problem.linearize(point, r)
        return loss, constraint, pull(jnp.ones((), x.dtype), b)

    loss, constraint, slope = jax.vmap(one)(rounds, of_round)
    slope = ravel_pytree(jax.tree.map(lambda leaf: leaf.mean(0), slope))[0]
    if expected is not None:
        constraint, pull = jax.vjp(expected, point)
        return loss.mean(), constraint, slope + ravel_pytree(pull(weights)[0])[0]
    return loss.mean(), constraint.reshape(-1) if benchmark == "every_round" else constraint.mean(0), slope


@eqx.filter_jit
def _jacobian(problem, rounds, expected, like, x, benchmark):
    point = ravel_pytree(like)[1](x)
    if expected is not None:
        rows = jax.jacrev(expected)(point)
    else:
        rows = jax.vmap(lambda r: problem.gradients(point, r)[1])(rounds)
        merge = (
            (lambda leaf: leaf.reshape(-1, *leaf.shape[2:]))
            if benchmark == "every_round"
            else (lambda leaf: leaf.mean(0))
        )
        rows = jax.tree.map(merge, rows)
    return jax.vmap(lambda row: ravel_pytree(row)[0])(rows)
