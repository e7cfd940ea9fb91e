"""Forecasts as hints: an optimistic leader beside one without hints (Rakhlin, Sridharan, 2013)."""

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
from ..primal.hedge import Hedge
from .base import AbstractLearner, first_decision, gradient_norms, outcome, point_played
from .pricing import prediction


class _State(eqx.Module):
    start: Point  # x_1
    total: Point  # G, the sum of gradients
    squares: Float[Array, ""]  # sum of |grad|^2
    errors: Float[Array, ""]  # sum of |grad - hint|^2
    hedge: Hedge  # over the three decisions
    dual: Any


class Hinted(AbstractLearner):
    r"""Decides after a forecast: regret falls with the forecast's errors, and hardly rises where it is useless.

    A round's forecast is a part of it that is seen before the decision, `Problem(request="forecast")`. `predict` maps
    the request to the round that is expected; its gradient at the decision without a hint is the hint $m_t$. With
    $G=\sum_{s<t}\nabla_s$ and $\Pi$ the projection onto X,

    $u_t=\Pi\left(x_1-\frac{R\,G}{\sqrt{\sum_{s<t}\|\nabla_s\|^2}}\right),\qquad
    v_t=\Pi\left(x_1-\frac{R\,(G+m_t)}{\sqrt{\sum_{s<t}\|\nabla_s-m_s\|^2}}\right)$

    $w_t=\arg\min_{w\in X}\langle m_t,w\rangle$, and $x_t$ mixes the three by what they would have cost (AdaHedge):
    the first ignores forecasts, the last believes them. Where a root is 0, the LMO's answer is taken. Constraints are
    weighed by `dual.RobustPI`.

    **Arguments:**

    - `predict`: `request -> round`; by default the request is the round itself, as far as loss and constraint use it.

    Proven, for convex losses without constraints, every sequence and every hint, after every round:
    Regret $\le2.12\,R\min\left(\sqrt{\sum\|\nabla_s\|^2},\sqrt{\sum\|\nabla_s-m_s\|^2}\right)+2\sqrt{V\ln3}+5.47\,S$
    (`theory.regret.optimistic` and `theory.regret.mixture`), where S is the largest difference of
    $\langle\nabla_s,\cdot\rangle$ between two of the three, and V the sum of its variances under the shares; and at
    most $\sum_s\langle\nabla_s,w_s-x\rangle$ plus the same. Gradients and hints are freed of what does not matter
    (`domain.tangent`). X needs `project`.

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
        guarantee="regret by the errors of forecasts, after every round, no constants, proven",
        cites=("rakhlin2013", "derooij2014"),
    )

    predict: Callable | None
    dual: AbstractDual

    def __init__(self, predict: Any = None):
        self.predict = prediction(predict)
        self.dual = RobustPI()

    def check(self, problem):
        if not problem.has_requests:
            raise LearnerError('Hinted decides after a forecast; give Problem(request="forecast"), a field of rounds')
        if problem.has_movement:
            raise LearnerError("Hinted does not count movement; leave out previous")

    def init(self, problem, *, key, horizon=None, start=None):
        self.check(problem)
        start = first_decision(problem, start)
        dtype = tree.dtype(start)
        zero = jnp.zeros((), dtype)
        hedge = Hedge.begin(jnp.full(3, 1 / 3, dtype))
        return _State(start, tree.zeros_like(start), zero, zero, hedge, self.dual.init(problem.constraints, dtype))

    def decision(self, state):
        return state.start

    def decide(self, problem, state, request):
        decisions, _ = self._decisions(problem, state, request)
        return tree.combine(state.hedge.shares, decisions)

    def observe(self, problem, state, round, *, played=None):
        decisions, hint = self._decisions(problem, state, problem.request_of(round))
        played = point_played(played, tree.combine(state.hedge.shares, decisions))
        loss, values, pull = problem.linearize(played, round)
        weights, dual = self.dual.weigh(state.dual, values, lambda: gradient_norms(problem, round, played))
        gradient = problem.domain.tangent(pull(weights.loss, weights.constraint))
        costs = jax.vmap(lambda decision: tree.dot(gradient, decision))(decisions)
        apart = tree.sub(gradient, hint)
        state = _State(
            state.start,
            tree.add(state.total, gradient),
            state.squares + tree.dot(gradient, gradient),
            state.errors + tree.dot(apart, apart),
            state.hedge.observe(costs, costs.max() - costs.min(), 1.0),
            dual,
        )
        spent = cost(lmo_calls=3, gradient_calls=2, finite=tree.all_finite(gradient))
        return state, outcome(loss, values, weights, spent)

    def _decisions(self, problem, state: _State, request) -> tuple[Point, Point]:
        """The decisions that ignore, use and believe the hint, with a leading axis; and the hint."""
        domain = problem.domain
        without = _leader(domain, state.start, state.total, state.squares)
        weights = self.dual.forecast(state.dual)
        hint = domain.tangent(self._hint(problem, without, request, weights))
        using = _leader(domain, state.start, tree.add(state.total, hint), state.errors)
        believing = _leader(domain, state.start, hint, jnp.zeros_like(state.errors))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), without, using, believing), hint

    def _hint(self, problem, point, request, weights: Weights) -> Point:
        expected = request if self.predict is None else self.predict(request)
        return problem.linearize(point, expected)[2](weights.loss, weights.constraint)


def _leader(domain: AbstractDomain, start: Point, total: Point, squares) -> Point:
    """argmin <total, x> + |x - start|^2 sqrt(squares) / 2R over X."""
    rate = ratio(jnp.asarray(domain.diameter(2), squares.dtype), jnp.sqrt(squares))
    regularised = domain.project(tree.sub(start, tree.scale(rate, total)))
    bare = tree.where(tree.norm(total) > 0, domain.lmo(total).dense(), start)
    return tree.where(squares > 0, regularised, bare)
