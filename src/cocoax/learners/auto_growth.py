"""`AutoGrowth`, for wealth that grows by a product of returns: a slow target, traded within bands, under limits."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check
from ..core.facts import Facts
from ..core.parameters import parameter, positive_parameter
from ..core.tree import ratio
from ..domains.vectors.simplices import ProbabilitySimplex
from ..dual.base import Weights
from ..dual.robust_pi import RobustPI
from ..errors import LearnerError
from ..primal.base import cost
from ..primal.hedge import Hedge
from ..problem.problem import Problem
from .base import AbstractLearner, first_decision, outcome, point_played
from .debts import Debts
from .reveal import gradient_norms

_BANDS = (0.0, 0.005, 0.02)


class _State(eqx.Module):
    target: Float[Array, " d"]  # logarithms of y
    paths: Float[Array, "k d"]  # of each band
    before: Float[Array, "k d"]  # a round ago
    hedge: Hedge  # over the bands
    debts: Debts
    aim: Float[Array, " d"]  # the mean of the paths, a point of the domain
    point: Float[Array, " d"]  # the decision
    total: Float[Array, ""]


class AutoGrowth(AbstractLearner):
    r"""Portfolios: losses like $-\log\langle r_t,x\rangle$ on a `ProbabilitySimplex`, with fees and limits.

    Daily growth is almost all noise, so the target moves slowly: exponentiated gradient, $y_{t+1,i}\propto
    y_{ti}e^{-\eta\partial_if_t(y_t)}$, where derivatives are by shares of the simplex's total. What can be learnt is
    how much to trade, since that hardly changes the risk. If nobody trades, prices alone move the shares x to
    $h_i\propto-x_i\,\partial_if_t(x)$. A path with the *band* b trades only what leaves the band,
    $x_i\propto y_i\,\mathrm{clip}(h_i/y_i,1-b,1+b)$, as is optimal for fees in proportion (Davis, Norman, 1990). Paths
    with several bands are mixed by what each would have cost, its own fees included (AdaHedge). A limit on risk that
    was overspent has a price, which the target pays. One on trading is paid back by holding what is held, or by
    repeating the last decision, whichever relieves it more (`learners.debts`). A limit that was not overspent changes
    nothing.

    **Arguments:**

    - `step`: $\eta$; 0.05 is what the field uses (Helmbold et al., 1998).
    - `bands`: those of the paths, as parts of a share.
    - `dual`: `dual.RobustPI(0.01, 2.0)`, a slow one, since a slow target keeps what it has learnt from a price. It is
      made for limits near the risk of equal shares; `dual.RobustPI()` also keeps much tighter ones, and costs more.

    *Proven,* for convex losses without limits and without costs of movement, after every round: with K bands the loss
    is at most that of each path and $2\sqrt{V\ln K}+S(\frac43\ln K+4)$, V being the sum of the variances of the paths'
    losses under the shares and S the largest difference of two (`theory.regret.mixture`); on a simplex of total 1 the
    path with the band 0 is `primal.ExponentiatedGradient(step)`, with its regret
    (`theory.regret.exponentiated_gradient`). *Measured only:* fees and limits (docs/real_data.md).

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> growth = jnp.exp(0.01 * jax.random.normal(jax.random.key(0), (300, 4)))
    >>> instance = cx.problems.real.portfolio(data=growth, volatility=0.0055)
    >>> game = cx.play(instance.problem, AutoGrowth(), instance.recorded, key=jax.random.key(0))
    >>> bool(game.loss.sum() < instance.baseline("EG").value), bool(game.constraint.mean() < 0.03)
    (True, True)
    """

    facts = Facts(
        cost="2 gradients, a value for each band",
        guarantee="without limits and fees that of EG and AdaHedge, proven; limits measured: see docs/real_data.md",
        cites=("kivinen1997", "derooij2014", "davis1990"),
    )

    dual: RobustPI
    step_size: Float[Array, ""]
    bands: tuple[Float[Array, ""], ...]

    def __init__(self, step: Any = 0.05, bands: Any = _BANDS, dual: Any = None):
        if not isinstance(bands, tuple | list) or not bands:
            raise LearnerError(f"bands must be a list of numbers between 0 and 1, got {bands!r:.80}")
        self.dual = RobustPI(0.01, 2.0) if dual is None else dual
        check.instance(self.dual, RobustPI, LearnerError, "AutoGrowth needs a dual.RobustPI")
        self.step_size = positive_parameter(step, "step")
        self.bands = tuple(parameter(band, "band", 0, 1) for band in bands)

    def check(self, problem):
        _simplex(problem)

    def init(self, problem, *, key, horizon=None, start=None):
        simplex, start = _simplex(problem), first_decision(problem, start)
        total = simplex.total.astype(start.dtype)
        shares, count = start / total, len(self.bands)
        paths = jnp.broadcast_to(shares, (count, shares.size))
        return _State(
            Hedge.begin(shares).prior,
            paths,
            paths,
            Hedge.begin(jnp.full(count, 1 / count, start.dtype)),
            Debts.begin(self.dual, problem.constraints, start),
            start,
            start,
            total,
        )

    def decision(self, state):
        return state.point

    def observe(self, problem, state, round, *, played=None):
        played, total = point_played(played, state.point), state.total
        loss, values, pull = problem.linearize(played, round)
        slope = pull(jnp.ones_like(loss), jnp.zeros_like(values))
        gradients = problem.gradients(total * jnp.exp(state.target), round)
        refuges = jnp.stack([total * _held(played / total, slope), played])
        debts = state.debts.observe(
            self.dual, problem, round, values, lambda: gradient_norms(problem, round, played), state.aim, refuges
        )

        costs = jax.vmap(lambda x, before: problem.values(total * x, round, total * before)[0])(
            state.paths, state.before
        )
        hedge = state.hedge.observe(costs, costs.max() - costs.min(), 1.0)
        direction = total * (gradients[0] + debts.prices @ gradients[1])  # by shares: no unit of money matters
        target = jax.nn.log_softmax(state.target - self.step_size.astype(loss.dtype) * direction)
        paths = jax.vmap(lambda band, path: _traded(band, _held(path, slope), jnp.exp(target)))(
            jnp.stack(self.bands).astype(loss.dtype), state.paths
        )
        aim = total * (hedge.shares @ paths)
        finite = jnp.isfinite(slope).all() & jnp.isfinite(direction).all() & jnp.isfinite(costs).all()
        spent = cost(gradient_calls=2, finite=finite)
        weights = Weights(jnp.ones_like(loss), debts.prices + debts.shares)
        state = _State(target, paths, state.paths, hedge, debts, aim, debts.relieved(aim), total)
        return state, outcome(loss, values, weights, spent)


def _simplex(problem: Problem) -> ProbabilitySimplex:
    domain = problem.domain
    if not isinstance(domain, ProbabilitySimplex):
        raise LearnerError(
            f"AutoGrowth plays on a ProbabilitySimplex, got {type(domain).__name__}; choose learners.Auto()"
        )
    return domain


def _held(shares, slope):
    """The shares after prices have moved them: the slope of a logarithm has the returns, up to a factor."""
    worth = shares * jnp.maximum(-slope, 0)
    return jnp.where(worth.sum() > 0, ratio(worth, worth.sum()), shares)


def _traded(band, held, target):
    """The shares after trading what lies outside the band around the target."""
    shares = target * jnp.clip(ratio(held, target), 1 - band, 1 + band)
    return jnp.where(shares.sum() > 0, ratio(shares, shares.sum()), target)  # a band of 1 may keep nothing
