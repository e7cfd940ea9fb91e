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
from ..problem import derivatives
from ..problem.functions import constraint_values, function_of
from ..problem.problem import Problem
from ..problem.rounds import entry_not_finite, number_of_rounds
from .chunks import batch_size, has_own_gradients, map_rounds, sum_rounds
from .comparator import each_round, float64
from .search import Evaluation


class Expected(eqx.Module):
    """The constraints' expectation, as a vector."""

    function: Callable
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, function, names):
        self.function, self.names = function_of(function, "expected_constraint", "x"), names

    def __call__(self, x):
        return constraint_values(self.function, "expected_constraint", self.names, x)


class Functions(eqx.Module):
    """F = (1/T) sum_t f_t and the G of the benchmark, of flat vectors, in compiled code."""

    problem: Any
    rounds: Any
    expected: Any
    like: Any  # a decision
    benchmark: str = eqx.field(static=True)

    @property
    def horizon(self) -> int:
        return number_of_rounds(self.rounds)

    @property
    def count(self) -> int:
        """Of constraints."""
        return self.problem.constraints * (self.horizon if self.each_round else 1)

    def with_loss(self, loss) -> "Functions":
        """The same with another loss."""
        old = self.problem
        names = {} if old.constraint is None else {"constraints": old.names}
        problem = Problem(old.domain, loss, old.constraint, constraint_grad=old.constraint_grad, **names)
        return Functions(problem, self.rounds, self.expected, self.like, self.benchmark)

    @property
    def each_round(self) -> bool:
        return self.benchmark == "every_round"

    def point(self, x):
        return ravel_pytree(self.like)[1](x)

    def measure(self, x, weights, loss_weight=1.0, lanes=1):
        """(F, G, the gradient of loss_weight F + <weights, G>) in one pass over the rounds."""
        problem, point, horizon = self.problem, self.point(x), self.horizon
        if self.each_round:
            shares = weights.reshape(horizon, problem.constraints)
        else:
            shares = jnp.broadcast_to(weights / horizon, (horizon, problem.constraints))
            shares = shares if self.expected is None else jnp.zeros_like(shares)

        def of_batch(rounds, shares):
            loss, constraint, slope = _linearize(problem, point, rounds, loss_weight / horizon, shares)
            return loss.sum(), constraint.sum(0), slope

        batch = batch_size(problem, point, self.rounds, lanes=lanes)
        loss, constraint, slope = sum_rounds(of_batch, batch, self.rounds, shares)
        slope, constraint = ravel_pytree(slope)[0], constraint / horizon
        if self.expected is not None:
            constraint, pull = jax.vjp(self.expected, point)
            slope = slope + ravel_pytree(pull(weights)[0])[0]
        elif self.each_round:
            constraint = map_rounds(jax.vmap(lambda r: problem.values(point, r)[1]), batch, self.rounds).reshape(-1)
        return loss / horizon, constraint, slope

    def jacobian(self, x):
        """The gradients of G, the part of each that matters in X, and all of it."""
        point = self.point(x)
        if self.expected is None and not self.each_round:
            count = self.problem.constraints
            rows = jax.vmap(lambda weights: self.point(self.measure(x, weights, 0.0, count)[2]))(jnp.eye(count))
        elif self.expected is not None:
            rows = jax.jacrev(self.expected)(point)
        else:
            rows = jax.vmap(lambda r: self.problem.gradients(point, r)[1])(self.rounds)
            rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rows)
        parts = jax.vmap(self.problem.domain.tangent)(rows)
        return tuple(jax.vmap(lambda row: ravel_pytree(row)[0])(each) for each in (parts, rows))

    def curvature(self, x, weights, lanes=1):
        """Products with the Hessian of F + <weights, G>."""
        return lambda direction: jax.jvp(lambda at: self.measure(at, weights, 1.0, lanes)[2], (x,), (direction,))[1]


def _linearize(problem, point, rounds, loss_weight, shares):
    """(f_t, g_t, the gradient of sum_t loss_weight f_t + <shares_t, g_t>) for a batch of rounds."""
    loss_weights = jnp.full(len(shares), loss_weight, shares.dtype)
    if has_own_gradients(problem):

        def one(r, a, b):
            loss, constraint, pull = problem.linearize(point, r)
            return loss, constraint, pull(a, b)

        loss, constraint, slopes = jax.vmap(one)(rounds, loss_weights, shares)
        return loss, constraint, jax.tree.map(lambda leaf: leaf.sum(0), slopes)

    def values(at):
        return jax.vmap(lambda r: problem.values(at, r))(rounds)

    (loss, constraint), pull = derivatives.pulled_back(values, point)
    return loss, constraint, pull((loss_weights, shares))


class Compiled:
    """`Functions`, compiled, with NumPy on both sides. The last answer is kept: methods ask again where they begin."""

    functions: Functions

    def __init__(self, functions: Functions):
        self.functions = functions
        self._last: tuple[np.ndarray, Evaluation] | None = None  # weights, and the answer for them
        self._rows: tuple[np.ndarray, ...] | None = None  # a point, and both Jacobians there

    def measure(self, x, weights) -> Evaluation:
        if self._last is None or not (_same(self._last[1].point, x) and _same(self._last[0], weights)):
            loss, constraint, slope = (np.asarray(part) for part in _measure(self.functions, x, weights))
            self._last = np.array(weights), Evaluation(np.array(x), float(loss), constraint, slope)
        return self._last[1]

    def jacobian(self, x) -> np.ndarray:
        """Of the constraints: the parts of their gradients that matter in X."""
        return self._gradients(x)[0]

    def whole_jacobian(self, x) -> np.ndarray:
        """With the parts that are the same everywhere in X; they are rounded too."""
        return self._gradients(x)[1]

    def _gradients(self, x):
        if self._rows is None or not _same(self._rows[0], x):
            rows = _jacobian(self.functions, x) if self.functions.count else [np.zeros((0, len(x)))] * 2
            self._rows = np.array(x), *(np.asarray(part) for part in rows)
        return self._rows[1:]

    def products(self, x, weights, directions):
        """The Hessian of F + <weights, G> times each of the `directions`, filled up so that few programs are compiled.

        NaN where derivatives are backward only.
        """
        count = len(directions)
        filled = np.concatenate([directions, np.zeros((-count % 64, len(x)))])
        try:
            return np.asarray(_products(self.functions, x, weights, filled))[:count]
        except (TypeError, ProblemError):
            return np.full_like(directions, np.nan)


class Objective(Compiled):
    """The functions of a benchmark, checked at the domain's start."""

    def __init__(self, problem, rounds, expected, benchmark):
        self.problem, self.rounds, self.benchmark = problem, rounds, benchmark
        self.horizon = number_of_rounds(rounds)
        self.unit = 1.0 / self.horizon
        self.expected: Any = None if expected is None else float64(Expected(expected, problem.names))
        self.start = float64(problem.domain.start())
        super().__init__(Functions(problem, rounds, self.expected, self.start, benchmark))
        self.count = self.functions.count
        self._check_start()

    def _check_start(self):
        if self.expected is not None:
            jax.eval_shape(self.expected, self.start)
        start = np.asarray(ravel_pytree(self.start)[0])
        at = self.measure(start, np.zeros(self.count))
        if not (np.isfinite(at.loss) and np.isfinite(at.constraint).all() and self.expected is None):
            loss, constraint = each_round(self.problem, self.rounds, self.start, None)
            for name, values in (("loss", loss), ("constraint", constraint)):
                bad = ~np.isfinite(np.asarray(values).reshape(self.horizon, -1)).all(axis=1)
                if bad.any():
                    t = int(bad.argmax())
                    entry = entry_not_finite(jax.tree.map(lambda leaf, t=t: leaf[t], self.rounds))
                    because = "" if entry is None else f", because {entry}"
                    raise ProblemError(f"the {name} of round {t} is not finite at the domain's start{because}")
        if not (np.isfinite(at.slope).all() and np.isfinite(self.jacobian(start)).all()):
            bad = ~np.asarray(_finite_gradients(self.problem, self.rounds, self.start))
            if bad.any():
                raise ProblemError(f"the gradient of round {bad.argmax()} is not finite at the domain's start")


def _same(one, other):
    return one.shape == other.shape and bool((one == other).all())


@eqx.filter_jit
def _finite_gradients(problem, rounds, x):
    return jax.lax.map(lambda r: tree.all_finite(problem.gradients(x, r)), rounds)


@eqx.filter_jit
def _measure(functions, x, weights):
    return functions.measure(x, weights)


@eqx.filter_jit
def _jacobian(functions, x):
    return functions.jacobian(x)


@eqx.filter_jit
def _products(functions, x, weights, directions):
    lanes = min(len(directions), 64)
    return jax.lax.map(functions.curvature(x, weights, lanes), directions, batch_size=lanes)
