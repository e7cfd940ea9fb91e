"""Forecasts as hints: a bet that those who use them do better than one who does not (Rakhlin, Sridharan, 2013)."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.facts import Facts
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from ..dual.base import AbstractDual, Weights
from ..dual.robust_pi import RobustPI
from ..errors import LearnerError
from ..primal.base import cost
from ..primal.bet import Bet
from ..primal.hedge import Hedge
from .base import AbstractLearner, first_decision, outcome, point_played, refuse_movement
from .pricing import asking_for_prediction, prediction
from .reveal import gradient_norms


class _State(eqx.Module):
    start: Point  # x_1
    total: Point  # G, the sum of gradients
    length: Float[Array, ""]  # root of the sum of |grad|^2
    errors: Float[Array, ""]  # root of the sum of |grad - hint|^2
    hedge: Hedge  # over the two that look at hints
    bet: Bet  # that these two are better than the one without
    dual: Any


class Hinted(AbstractLearner):
    r"""Decides after a forecast: regret falls with the forecast's errors, and rises by a constant where it is useless.

    A round's forecast is a part of it that is seen before the decision, `Problem(request="forecast")`. `predict` maps
    the request to the round that is expected; its gradient at the decision without a hint is the hint $m_t$. With
    $G=\sum_{s<t}\nabla_s$ and $\Pi$ the projection onto X,

    $u_t=\Pi\left(x_1-\frac{R\,G}{\sqrt{\sum_{s<t}\|\nabla_s\|^2}}\right),\qquad
    v_t=\Pi\left(x_1-\frac{R\,(G+m_t)}{\sqrt{\sum_{s<t}\|\nabla_s-m_s\|^2}}\right)$

    and $w_t=\arg\min_{w\in X}\langle m_t,w\rangle$: the first ignores forecasts, the last believes them. Where a root
    is 0, the LMO's answer is taken. AdaHedge mixes v and w to $a_t$ by what they would have cost, and
    $x_t=u_t+p_t(a_t-u_t)$ bets on $a$, so that never more than a constant is lost to u (`primal.bet`). Constraints are
    weighed by `dual.RobustPI`.

    **Arguments:**

    - `predict`: `request -> round`; by default the request is the round itself, as far as loss and constraint use it.

    Proven, for convex losses without constraints, every sequence and every hint, after every round t, with
    $z_s=\langle\nabla_s,u_s-a_s\rangle$:

    - Regret $\le2.12\,R\sqrt{\sum\|\nabla_s\|^2}+3\max_s|z_s|$: that of u and a constant (`theory.regret.optimistic`,
      `theory.regret.favourite`).
    - Regret $\le\min\left(2.12\,R\sqrt{\sum\|\nabla_s-m_s\|^2},\ \sum_s\langle\nabla_s,w_s-x\rangle\right)+
      2\sqrt{V\ln2}+4.93\,S$ and what the bet costs, about a root of $\sum z_s^2$ (`theory.regret.mixture`,
      `theory.regret.challenger`); S is the largest difference of $\langle\nabla_s,\cdot\rangle$ between v and w, and V
      the sum of its variances under the shares.

    Gradients and hints are freed of what does not matter (`domain.tangent`). X needs `project`.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.L2Ball(2, 1.0), lambda x, r: jnp.vdot(r["cost"], x), request="forecast"
    ... )
    >>> cost = jax.random.normal(jax.random.key(0), (200, 2))
    >>> rounds = {"cost": cost, "forecast": cost + 0.1}
    >>> learner = Hinted(lambda request: {"cost": request["forecast"]})
    >>> game = cx.play(problem, learner, rounds, key=jax.random.key(1))
    >>> bool(game.loss.mean() < -1.0)
    True
    """

    facts = Facts(
        cost="2 projections, 2 gradients, 3 LMOs",
        guarantee="regret by the errors of forecasts, or a constant more than without, no constants, proven",
        cites=("rakhlin2013", "derooij2014", "sani2014"),
    )

    predict: Callable | None
    dual: AbstractDual

    def __init__(self, predict: Any = None):
        self.predict = prediction(predict)
        self.dual = RobustPI()

    def check(self, problem):
        if not problem.has_requests:
            raise LearnerError('Hinted decides after a forecast; give Problem(request="forecast"), a field of rounds')
        refuse_movement(problem, self)

    def init(self, problem, *, key, horizon=None, start=None):
        self.check(problem)
        start = first_decision(problem, start)
        dtype = tree.dtype(start)
        zero = jnp.zeros((), dtype)
        hedge, dual = Hedge.begin(jnp.full(2, 1 / 2, dtype)), self.dual.init(problem.constraints, dtype)
        return _State(start, tree.zeros_like(start), zero, zero, hedge, Bet.begin(dtype), dual)

    def decision(self, state):
        return state.start

    def decide(self, problem, state, request):
        without, looking, _ = self._decisions(problem, state, request)
        return _mixed(state, without, looking)

    def observe(self, problem, state, round, *, played=None):
        without, looking, hint = self._decisions(problem, state, problem.request_of(round))
        played = point_played(played, _mixed(state, without, looking))
        loss, values, pull = problem.linearize(played, round)
        weights, dual = self.dual.weigh(state.dual, values, lambda: gradient_norms(problem, round, played))
        gradient = problem.domain.tangent(pull(weights.loss, weights.constraint))
        costs = jax.vmap(lambda decision: tree.dot(gradient, decision))(looking)
        gain = tree.dot(gradient, without) - state.hedge.shares @ costs
        state = _State(
            state.start,
            tree.add(state.total, gradient),
            jnp.hypot(state.length, tree.length(gradient)),
            jnp.hypot(state.errors, tree.length(tree.sub(gradient, hint))),
            state.hedge.observe(costs, costs.max() - costs.min(), 1.0),
            state.bet.observe(gain),
            dual,
        )
        spent = cost(lmo_calls=3, gradient_calls=2, finite=tree.all_finite(gradient))
        return state, outcome(loss, values, weights, spent)

    def _decisions(self, problem, state: _State, request) -> tuple[Point, Point, Point]:
        """The decision without the hint; those that use and believe it, with a leading axis; and the hint."""
        domain = problem.domain
        without = _leader(domain, state.start, state.total, state.length)
        weights = self.dual.forecast(state.dual)
        hint = domain.tangent(self._hint(problem, without, request, weights))
        using = _leader(domain, state.start, tree.add(state.total, hint), state.errors)
        believing = _leader(domain, state.start, hint, jnp.zeros_like(state.errors))
        return without, jax.tree.map(lambda *leaves: jnp.stack(leaves), using, believing), hint

    def _hint(self, problem, point, request, weights: Weights) -> Point:
        expected = request if self.predict is None else self.predict(request)
        with asking_for_prediction(problem, self.predict):
            return problem.linearize(point, expected)[2](weights.loss, weights.constraint)


def _mixed(state: _State, without: Point, looking: Point) -> Point:
    return tree.mix(without, tree.combine(state.hedge.shares, looking), state.bet.share)


def _leader(domain: AbstractDomain, start: Point, total: Point, length) -> Point:
    """argmin <total, x> + |x - start|^2 length / 2R over X."""
    rate = ratio(jnp.asarray(domain.diameter(2), length.dtype), length)
    regularised = domain.project(tree.sub(start, tree.scale(rate, total)))
    bare = tree.where(tree.norm(total, jnp.inf) > 0, domain.lmo(total).dense(), start)
    return tree.where(length > 0, regularised, bare)
