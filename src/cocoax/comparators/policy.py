r"""The best policy in hindsight: one decision a round, after the round is seen, within the budgets of all rounds.

$\mathrm{OPT} = \min\{\sum_t f_t(x_t) : \sum_t g_t(x_t) \le 0,\ x_t\in X\}$. For every $\lambda\ge0$,
$\mathrm{OPT} \ge \sum_t D_t(\lambda)$ with $D_t(\lambda) = \min_{x\in X} f_t(x) + \langle\lambda, g_t(x)\rangle$ (weak
duality), and mixtures of such minimisers are policies (`policy_prices`).
"""

import warnings
from typing import Any

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
from .policy_prices import Column, Infeasible, best_mixture
from .price import gradient_squares, prices

_BATCH = 4096  # rounds whose LMOs are one call


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
