r"""The best policy in hindsight: one decision a round, after the round is seen, within the budgets of all rounds.

$\mathrm{OPT} = \min\{\sum_t f_t(x_t) : \sum_t g_t(x_t) \le 0,\ x_t\in X\}$. For every $\lambda\ge0$,
$\mathrm{OPT} \ge \sum_t D_t(\lambda)$ with $D_t(\lambda) = \min_{x\in X} f_t(x) + \langle\lambda, g_t(x)\rangle$ (weak
duality), and mixtures of such minimisers are policies.

A column is the sum of losses $F_j$ and of constraint values $G_j$ over all rounds, where every round has its best
answer at prices $\lambda_j$. Columns are cuts of the concave dual function, $D(\lambda) \le F_j + \langle\lambda,
G_j\rangle$. The best mixture of columns that meets the constraints is a policy, and bounds OPT from above; the best
$D(\lambda_j)$ bounds it from below (Dantzig, Wolfe, 1960). The next prices are the point nearest to the best ones where
all cuts exceed a level between both (Lemarechal, Nemirovskii, Nesterov, 1995).
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..core import check, tree
from ..errors import InfeasibleError, ProblemError
from ..problem.lagrangian import best_answer, proven_least
from ..problem.minorants import tangents
from ..problem.problem import Problem, Round
from .clock import Clock
from .comparator import Comparator, each_round, float64
from .price import gradient_squares, prices
from .quadratic import solve_quadratic

_BATCH = 4096  # rounds whose LMOs are one call
_MOST = 400  # columns
_LEVEL = 0.5  # between the bounds
_UNUSED = 1e-10


class Column(NamedTuple):
    """The best answers at prices `multiplier`, where the loss has `weight` 1; or 0: only the constraints count."""

    multiplier: np.ndarray
    weight: float
    loss: float  # summed over rounds, as the others
    constraint: np.ndarray
    gap: float  # how far the answers may be from the best ones

    @property
    def bound(self) -> float:
        """A lower bound of the dual function."""
        return self.weight * self.loss + float(self.multiplier @ self.constraint) - self.gap


class Mixture(NamedTuple):
    columns: list[Column]
    shares: np.ndarray
    lower: float  # no policy that meets the constraints has less loss
    multiplier: np.ndarray  # the prices that prove it
    done: bool


class Infeasible(Exception):
    """The constraints at these prices sum to at least bound > 0, for every policy."""

    def __init__(self, multiplier: np.ndarray, bound: float):
        self.multiplier, self.bound = multiplier, bound


def best_policy(problem: Problem, rounds: Round, tol: float, clock: Clock, start: Any = None) -> Comparator:
    """The comparator whose `x` is one decision a round; `multiplier` has the prices of the constraints.

    `start` is an earlier answer, with whose prices it begins.
    """
    needed = "a policy begins with prices: give start what hindsight returned, or leave it out"
    guess = None if start is None else check.instance(start, Comparator, ProblemError, needed).multiplier
    if problem.has_movement:
        raise ProblemError("a policy with movement is no sum over rounds; leave out policy=True, or previous")
    with jax.enable_x64(True):
        problem, rounds = float64(problem), float64(rounds)
        count = len(jax.tree.leaves(rounds)[0])

        def column(multiplier, weight):
            _, loss, values, gap = _answers(problem, rounds, jnp.asarray(multiplier), jnp.asarray(weight, float))
            return Column(multiplier, weight, float(loss.sum()), np.asarray(values.sum(0)), float(gap.sum()))

        try:
            with clock:
                found = best_mixture(column, problem.constraints, tol, clock.is_over, guess)
        except Infeasible as proof:
            raise _infeasible(problem, proof.multiplier, proof.bound, count) from None
        path = None
        for share, part in zip(found.shares, found.columns):
            x = _answers(problem, rounds, jnp.asarray(part.multiplier), jnp.asarray(part.weight, float))[0]
            path = tree.scale(share, x) if path is None else tree.add(path, tree.scale(share, x))
        loss, constraint = (np.asarray(values) for values in each_round(problem, rounds, path, 0))
        value, lower = np.asarray(loss.sum()), np.asarray(found.lower)
        paid = value + max(found.multiplier @ constraint.sum(0), 0.0)  # limits can be broken by a part `tol` of them
        if paid < lower - tol * max(1.0, abs(value)):
            raise ProblemError(
                f"the loss or a constraint is not convex, or the domain's lmo not exact: value {value:.6g} is below "
                f"its lower bound {lower:.6g}"
            )
        lower = np.minimum(value, lower)  # but for rounding it is
        if not found.done:
            warnings.warn(
                f"hindsight stopped before its certificate closed: value {value:.8g}, lower bound {lower:.8g} (gap "
                f"{value - lower:.2g})",
                stacklevel=4,
            )
        charged = prices(found.multiplier, gradient_squares(problem, rounds, path, 0))
        x = jax.tree.map(np.asarray, path)
        return Comparator(x, loss, constraint, value, lower, found.multiplier, charged, problem.names)


@eqx.filter_jit
def _answers(problem, rounds, multiplier, weight):
    """The best answers of all rounds, their losses and constraints, and how far each may be from the best one.

    One program for all uses: where answers tie, another one could differ.
    """
    weights = jnp.append(weight, multiplier)

    def one(round):
        answer = best_answer(problem, round, multiplier, weight)
        least = proven_least(problem, tangents(problem, answer.proof, round), weights)
        value = weight * answer.loss + multiplier @ answer.constraint
        return answer.x, answer.loss, answer.constraint, jnp.maximum(value - least, 0)

    return jax.lax.map(one, rounds, batch_size=_BATCH)


def _infeasible(problem, multiplier, bound, count):
    multiplier, bound = multiplier / multiplier.max(), bound / multiplier.max() / count
    parts = " + ".join(f"{one:.3g} * {name}" for one, name in zip(multiplier, problem.names) if one > 1e-6)
    return InfeasibleError(
        f"no policy meets the constraints: the mean of {parts} is at least {bound:.3g} for every policy; loosen "
        "them by at least this much",
        multiplier,
        bound,
    )


def best_mixture(
    column: Callable, constraints: int, tol: float, is_over: Callable[[str], bool], guess: np.ndarray | None = None
) -> Mixture:
    """`column(multiplier, weight) -> Column`; stops when value and lower bound agree to `tol`, or, if a policy is
    known, when time is over and on Ctrl-C. `is_over` is told how far it is; `guess` are prices that may be good."""
    free = column(np.zeros(constraints), 1.0)
    if np.all(free.constraint <= 0):
        return Mixture([free], np.ones(1), free.bound, free.multiplier, free.gap <= tol * max(1.0, abs(free.loss)))
    found, slack = _feasible_columns(column, free.constraint, tol)
    columns = [free, *found]
    if guess is not None and guess.shape == (constraints,):
        columns.append(column(np.maximum(guess, 0.0), 1.0))
    size = np.max([np.abs(one.constraint) for one in columns], axis=0)
    size = np.where(size > 0, size, 1.0)
    spread = np.ptp([one.loss for one in columns])
    unit = (spread if spread > 0 else 1.0) / size  # of a price
    best, interrupted = free, False
    while True:
        shares, value = _master(columns, size, slack / size)
        if best.bound < (last := columns[-1]).bound and last.weight:
            best = last
        precision = tol * max(1.0, abs(value))
        done = value - best.bound <= precision
        text = f"value {value:.6g}, gap {value - best.bound:.2g}"
        if done or interrupted or len(columns) >= _MOST or is_over(text):
            used = [(share, one) for share, one in zip(shares, columns) if share > 0]
            return Mixture([one for _, one in used], np.array([s for s, _ in used]), best.bound, best.multiplier, done)
        prices = _level(columns, best, value, unit)
        if any(np.array_equal(prices, one.multiplier) and one.weight for one in columns):
            prices = prices + 1e-12 * unit * len(columns)  # perturb: the same prices again would end the search
        try:
            columns.append(column(prices, 1.0))
        except KeyboardInterrupt:
            interrupted = True


def _feasible_columns(column, free, tol):
    """Columns of the constraints alone, of which some mixture meets all of them; or a proof that none does.

    And by how much they must be exceeded, if that is proven, but by less than `tol` of their sizes.
    """
    size = np.where(np.abs(free) > 0, np.abs(free), np.abs(free).max())
    columns, weights = [], np.full(len(free), 1 / len(free))
    while True:
        columns.append(column(weights / size, 0.0))
        if columns[-1].bound > tol:
            raise Infeasible(columns[-1].multiplier, columns[-1].bound)
        rows = np.array([one.constraint / size for one in columns])
        weights, excess = _game(rows)
        if excess <= 0 or len(columns) >= _MOST or (excess <= tol and columns[-1].bound > 0):
            return columns, max(excess, min(2 * excess, tol), 0.0) * size  # with some room, where that is allowed


def _game(rows):
    """The weights of the constraints that are worst for the best mixture of columns, and its largest excess."""
    count, constraints = rows.shape
    # min s over (mixture, s) with rows^T mixture <= s: s is the last variable
    G = np.concatenate([rows.T, -np.ones((constraints, 1))], axis=1)
    mixture, weights = solve_quadratic(
        np.zeros((count + 1, count + 1)),
        np.append(np.zeros(count), 1.0),
        count,
        G,
        np.zeros(constraints),
        np.append(np.ones(count), 0.0),
    )
    total = weights.sum()
    return weights / total if total > 0 else np.full(constraints, 1 / constraints), float(mixture[-1])


def _master(columns, size, slack):
    """(shares, value) of the best mixture that meets the constraints, exactly, but for the slack."""
    losses = np.array([one.loss for one in columns])
    rows = np.array([one.constraint / size - slack for one in columns])
    count = len(columns)
    cost = np.zeros((count, count)), losses - losses.min()
    shares, _ = solve_quadratic(*cost, count, rows.T, np.zeros(len(size)), np.ones(count))
    shares = np.where(shares > _UNUSED, shares, 0)
    shares /= shares.sum()
    excess = rows.T @ shares
    safest = int(np.argmin(rows.max(1)))
    if excess.max() > 0 and rows[safest].max() < 0:  # rounding: as much of a safe column as is needed
        part = np.max(excess / (excess - rows[safest]), initial=0, where=excess > 0)
        shares *= 1 - part
        shares[safest] += part
    return shares, float(losses @ shares)


def _level(columns, best, value, unit):
    """The prices nearest to the best ones, in their units, where no cut is below the level."""
    level = best.bound + _LEVEL * (value - best.bound)
    losses = np.array([one.loss for one in columns])
    slopes = np.array([one.constraint for one in columns]) * unit
    scale = max(np.abs(slopes).max(), 1e-300)
    centre, count = best.multiplier / unit, len(unit)
    nearest, _ = solve_quadratic(np.eye(count), -centre, count, -slopes / scale, (losses - level) / scale)
    return nearest * unit
