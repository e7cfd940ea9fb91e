"""Re-solving: the linear program of all requests so far, again and again, with HiGHS on the host."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..core import check, tree
from ..core.facts import Facts
from ..core.host import callback
from ..domains import ProbabilitySimplex
from ..errors import LearnerError
from .base import planned
from .price_sample import Sample
from .pricing import AbstractPricing, prediction


class _Solved(eqx.Module):
    prices: Float[Array, " m"]
    sample: Sample  # of all requests
    violation: Float[Array, " m"]
    rounds: Int[Array, ""]
    horizon: Int[Array, ""]


class Resolving(AbstractPricing):
    r"""Prices of the linear program that the requests so far would make, with what is left of the budgets.

    $\lambda_{t+1}$ is the dual solution of $\min\frac1t\sum_{s\le t}\langle a_s, x_s\rangle$ over answers $x_s$ in the
    simplex with $\frac1t\sum_{s\le t} g_s(x_s) \le -v_t/n_t$, where $v_t$ is the violation so far and $n_t$ the rounds
    left. HiGHS solves it after every `every`-th round, and after each of the first ones. It is what `AutoPrice`
    approximates, and the expensive reference: a solve takes time in proportion to t, on the host. Budgets that cannot
    be kept any more keep the price.

    **Arguments:**

    - `every`: how many rounds between two solves.
    - `predict`: as in `AutoPrice`.

    Only on a `ProbabilitySimplex`, and with a horizon.

    >>> import cocoax as cx
    >>> learner = cx.learners.Resolving(every=50)  # a linear program after rounds 1 to 50, 100, 150, ...
    """

    facts = Facts(
        cost="1 LMO; rarely, a linear program of all requests on the host",
        guarantee="near the best policy, i.i.d. requests, in print",
        cites=("agrawal2014",),
    )

    every: int = eqx.field(static=True)
    predict: Callable | None

    def __init__(self, *, every: int = 20, predict: Callable | None = None):
        self.every, self.predict = check.whole(every, "every", LearnerError, low=1), prediction(predict)

    def check(self, problem):
        super().check(problem)
        if not isinstance(problem.domain, ProbabilitySimplex):
            raise LearnerError("Resolving writes a program with every answer of a ProbabilitySimplex; use AutoPrice()")

    def begin(self, problem, start, *, horizon, key):
        plan = planned(horizon, "Resolving")
        zeros = jnp.zeros(problem.constraints, tree.dtype(start))
        sample = Sample.empty(plan.capacity, problem.constraints, start)
        return _Solved(zeros, sample, zeros, jnp.zeros((), jnp.int32), plan.rounds)

    def multiplier(self, prices):
        return prices.prices

    def rounds_left(self, state):
        return state.prices.horizon - state.prices.rounds

    def learn(self, problem, state, expected, played, loss, values):
        old, rounds = state.prices, state.prices.rounds + 1
        sample = old.sample.store(problem, expected, played, old.rounds, old.rounds)
        violation, prices = old.violation + values, old.prices
        if problem.constraints:
            left = jnp.maximum(old.horizon - rounds, 1).astype(values.dtype)
            total = problem.domain.vertex().dense().sum()

            def solve():
                arguments = sample.loss, sample.constraint, sample.offset, rounds, -violation / left, total, prices
                answer = jax.ShapeDtypeStruct(prices.shape, prices.dtype)
                return callback(_solved, answer, *arguments, vmap_method="sequential")

            prices = jax.lax.cond((rounds % self.every == 0) | (rounds < self.every), solve, lambda: prices)
        return _Solved(prices, sample, violation, rounds, old.horizon)


def _solved(loss, constraint, offset, rounds, target, total, before):
    """The dual solution, by HiGHS; the prices before, if there is none."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, kron

    count, answers = int(rounds), loss.shape[1]
    loss, constraint, offset = loss[:count], constraint[:count], offset[:count]
    if not all(np.isfinite(one).all() for one in (loss, constraint, offset, target)):
        return before
    scale = np.maximum(np.abs(constraint).max(axis=(0, 2)), 1e-300)
    size = max(float(np.abs(loss).max()), 1e-300)
    rows = csr_array((constraint / scale[:, None]).transpose(1, 0, 2).reshape(len(scale), -1))
    one_each = kron(eye_array(count), np.ones((1, answers)), format="csr")
    found = linprog(
        loss.ravel() / size,
        A_ub=rows,
        b_ub=count * (target - offset.mean(0)) / scale,
        A_eq=one_each,
        b_eq=np.full(count, float(total)),
        bounds=(0, None),
        method="highs",
    )
    return -found.ineqlin.marginals * size / scale if found.status == 0 else before
