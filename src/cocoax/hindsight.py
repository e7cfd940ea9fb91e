"""The best fixed decision in hindsight, with a certificate: what regret is measured against."""

import warnings
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from . import _tree as tree
from ._hull import Hull
from ._solver import Infeasible, Measured, Solver
from .domains.base import Point
from .errors import InfeasibleError, ProblemError
from .problem import Environment, Problem, Round


class Comparator(eqx.Module):
    r"""A decision $x^*$ to compare with, and what proves it.

    `value` is $\sum_t f_t(x^*)$, and no decision that meets the constraints does better than `lower_bound`:
    $\min_{x\in X}\sum_t f_t(x) + \langle\lambda^*, \sum_t g_t(x)\rangle \ge$ `lower_bound`, where $\lambda^*$ is
    `multiplier`; so a unit of total violation is worth $\lambda^*$ units of total loss.
    All leaves are NumPy arrays of float64: comparators can be stacked.
    """

    x: Point
    loss: np.ndarray  # (T,): f_t(x*)
    constraint: np.ndarray  # (T, m): g_t(x*)
    value: np.ndarray
    lower_bound: np.ndarray
    multiplier: np.ndarray  # (m,), or (T, m) with benchmark="every_round"

    @property
    def gap(self):
        """How far `value` may be above the best possible one."""
        return self.value - self.lower_bound


def fixed(problem: Problem, rounds: Round, x: Point) -> Comparator:
    """Any one point as the comparator."""
    return _given(problem, rounds, x, None)


def path(problem: Problem, rounds: Round, xs: Point) -> Comparator:
    """One point a round (leading axis T), for dynamic regret."""
    return _given(problem, rounds, xs, 0)


def _given(problem, rounds, x, axis):
    with jax.enable_x64(True):
        problem, rounds, x = (_float64(each) for each in (problem, rounds, x))
        horizon = _horizon(rounds)
        if axis == 0 and _horizon(x) != horizon:
            raise ProblemError(f"a path needs one point a round: {horizon} rounds, {_horizon(x)} points")
        loss, constraint = (np.asarray(each) for each in _each_round(problem, rounds, x, axis))
    value, none = np.asarray(loss.sum()), np.zeros(problem.constraints)
    return Comparator(jax.tree.map(np.asarray, x), loss, constraint, value, value, none)


def hindsight(
    problem: Problem,
    rounds: Round | Environment,
    *,
    expected_constraint: Callable | None = None,
    benchmark: Literal["mean", "every_round"] = "mean",
    tol: float = 1e-6,
    horizon: int | None = None,
    key=None,
) -> Comparator:
    r"""The best fixed decision in hindsight, by linear minimisation only, in float64.

    $\min_{x\in X} \sum_{t=1}^T f_t(x)$ subject to $\frac1T\sum_{t=1}^T g_t(x) \le 0$.

    **Arguments:**

    - `rounds`: a PyTree with a leading axis T; or an `Environment`, whose rounds are then drawn with `horizon` and
      `key` while the decision stays at the domain's start. An adversary that reacts to decisions has no fixed
      rounds: give those of the game instead (`play(..., keep_rounds=True)`).
    - `expected_constraint`: `x ->` the expectation of g(x), a number or a vector, where it is known; it then
      replaces the mean.
    - `benchmark`: `"mean"` as above, or `"every_round"`: $g_t(x) \le 0$ for every t.
    - `tol`: value and lower bound agree to `tol * max(1, |value|)`, constraints hold to `tol` times their size.

    Raises `InfeasibleError`, with its proof, if no point of the domain meets the constraints. Warns if the
    certificate could not be closed to `tol`; the gap that is reported is always true (for a domain whose `lmo` is
    exact, and convex functions).

    >>> import jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(2),
    ...     loss=lambda x, r: jnp.vdot(r["cost"], x),
    ...     constraint=lambda x, r: x[0] - r["budget"],
    ... )
    >>> rounds = {"cost": jnp.array([[1.0, 2.0], [1.0, 4.0]]), "budget": jnp.array([0.5, 0.0])}
    >>> best = hindsight(problem, rounds)  # x[0] <= 0.25 on average
    >>> best.x.round(6).tolist(), round(float(best.value), 6), best.multiplier.round(6).tolist()
    ([0.25, 0.75], 5.0, [2.0])
    """
    if benchmark not in ("mean", "every_round"):
        raise ProblemError(f"benchmark must be 'mean' or 'every_round', got {benchmark!r}")
    if expected_constraint is not None and benchmark == "every_round":
        raise ProblemError("expected_constraint replaces the mean; with benchmark='every_round' leave it out")
    if not (np.isfinite(tol) and tol > 0):
        raise ProblemError(f"tol must be positive, got {tol}")
    if isinstance(rounds, Environment):
        rounds = _draw(problem, rounds, horizon, key)
    elif horizon is not None and horizon != _horizon(rounds):
        raise ProblemError(f"horizon={horizon} does not fit the {_horizon(rounds)} rounds given")

    with jax.enable_x64(True):
        objective = _Objective(_float64(problem), _float64(rounds), expected_constraint, benchmark)
        hull = Hull(objective.problem.domain, objective.start)
        try:
            solver = Solver(objective, hull, hull.centre, objective.count, tol).solve()
        except Infeasible as proof:
            raise objective.infeasible(*proof.args) from None
        return objective.comparator(solver)


class _Objective:
    """F = (1/T) sum_t f_t and the G of the benchmark on flat vectors; every pass over the rounds is compiled."""

    def __init__(self, problem, rounds, expected, benchmark):
        self.problem, self.rounds, self.benchmark = problem, rounds, benchmark
        self.horizon = _horizon(rounds)
        self.unit = 1.0 / self.horizon
        self.expected = None if expected is None else jax.tree_util.Partial(expected)
        self.start = _float64(problem.domain.start())
        loss, constraint = _each_round(problem, rounds, self.start, None)
        for name, values in (("loss", loss), ("constraint", constraint)):
            bad = ~np.isfinite(np.asarray(values).reshape(self.horizon, -1)).all(axis=1)
            if bad.any():
                raise ProblemError(f"the {name} of round {bad.argmax()} is not finite at the domain's start")
        self.count = problem.constraints * (self.horizon if benchmark == "every_round" else 1)
        if expected is not None:
            shape = jax.eval_shape(_vector, self.expected, self.start).shape
            if shape != (self.count,):
                raise ProblemError(
                    f"expected_constraint returned {shape[0]} value(s), but the problem has {self.count} constraint(s)"
                )

    def measure(self, x, weights):
        answer = _measure(self.problem, self.rounds, self.expected, self.start, x, weights, self.benchmark)
        loss, constraint, slope = (np.asarray(each) for each in answer)
        return Measured(x, float(loss), constraint, slope)

    def jacobian(self, x):
        if self.count == 0:
            return np.zeros((0, len(x)))
        return np.asarray(_jacobian(self.problem, self.rounds, self.expected, self.start, x, self.benchmark))

    def comparator(self, solver):
        _, unravel = ravel_pytree(self.start)
        x = unravel(jnp.asarray(solver.best.point))
        loss, constraint = (np.asarray(each) for each in _each_round(self.problem, self.rounds, x, None))
        value, lower = np.asarray(loss.sum()), np.asarray(solver.lower * self.horizon)
        if not solver.done:
            warnings.warn(
                f"hindsight stopped before its certificate closed: value {value:.8g}, lower bound {lower:.8g} "
                f"(gap {value - lower:.2g}), constraints exceeded by {solver.best_violation:.2g}",
                stacklevel=3,
            )
        multiplier = solver.multiplier
        if self.benchmark == "every_round":
            multiplier = self.horizon * multiplier.reshape(self.horizon, self.problem.constraints)
        return Comparator(jax.tree.map(np.asarray, x), loss, constraint, value, lower, multiplier)

    def infeasible(self, multiplier, bound):
        names = self.problem.names
        if self.benchmark == "every_round":
            names = [f"{name} of round {t}" for t in range(self.horizon) for name in names]
        largest = [i for i in np.argsort(-multiplier)[:3] if multiplier[i] > 1e-6]
        parts = " + ".join(f"{multiplier[i]:.3g} * {names[i]}" for i in largest)
        more = " + ..." if np.sum(multiplier > 1e-6) > len(largest) else ""
        kind = "" if self.benchmark == "every_round" else ("expected " if self.expected is not None else "mean ")
        if self.benchmark == "every_round":
            multiplier = multiplier.reshape(self.horizon, self.problem.constraints)
        return InfeasibleError(
            f"no point of the domain meets the {kind}constraints: {parts}{more} >= {bound:.3g} everywhere; "
            "loosen them by at least this much",
            multiplier,
            float(bound),
        )


@eqx.filter_jit
def _each_round(problem, rounds, x, axis):
    return jax.vmap(problem.values, in_axes=(axis, 0))(x, rounds)


@eqx.filter_jit
def _measure(problem, rounds, expected, like, x, weights, benchmark):
    """(F, G, the gradient of F + <weights, G>) in one pass."""
    point = ravel_pytree(like)[1](x)
    horizon, m = _horizon(rounds), problem.constraints
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
        constraint, pull = jax.vjp(lambda p: _vector(expected, p), point)
        return loss.mean(), constraint, slope + ravel_pytree(pull(weights)[0])[0]
    return loss.mean(), constraint.reshape(-1) if benchmark == "every_round" else constraint.mean(0), slope


@eqx.filter_jit
def _jacobian(problem, rounds, expected, like, x, benchmark):
    point = ravel_pytree(like)[1](x)
    if expected is not None:
        rows = jax.jacrev(lambda p: _vector(expected, p))(point)
    else:
        rows = jax.vmap(lambda r: problem.gradients(point, r)[1])(rounds)
        merge = (
            (lambda leaf: leaf.reshape(-1, *leaf.shape[2:]))
            if benchmark == "every_round"
            else (lambda leaf: leaf.mean(0))
        )
        rows = jax.tree.map(merge, rows)
    return jax.vmap(lambda row: ravel_pytree(row)[0])(rows)


@eqx.filter_jit
def _rounds_of(environment, decision, key, horizon):
    first, rest = jax.random.split(key)

    def emit(state, t):
        return environment.emit(state, decision, jax.random.fold_in(rest, t))

    return jax.lax.scan(emit, environment.init(first), jnp.arange(horizon))[1]


def _draw(problem, environment, horizon, key):
    if horizon is None or key is None:
        raise ProblemError("an Environment has no rounds of its own; give hindsight a horizon and a key")
    if horizon < 1:
        raise ProblemError(f"horizon must be at least 1, got {horizon}")
    return _rounds_of(environment, problem.domain.start(), key, int(horizon))


def _vector(expected, point):
    return jnp.atleast_1d(jnp.asarray(expected(point), tree.dtype(point)))


def _float64(x):
    return tree.astype(jax.tree.map(jnp.asarray, x), jnp.float64)


def _horizon(rounds) -> int:
    lengths = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(rounds)}
    if len(lengths) != 1 or lengths == {()} or lengths == {(0,)}:
        raise ProblemError(
            f"rounds must be a PyTree whose leaves share one leading axis of length T >= 1, got {sorted(lengths)}"
        )
    return lengths.pop()[0]
