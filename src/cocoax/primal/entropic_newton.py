"""Exponentiated gradient on products of simplices, with steps that the round's own curvature says."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..core import tree
from ..core.facts import Facts
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from ..domains.polytopes.matroids import PartitionMatroid
from ..domains.vectors.simplices import ProbabilitySimplex
from ..errors import LearnerError
from .base import AbstractPrimal, cost
from .diagonal_newton import linearized

_LEAST = 1e-6  # of a share: what was given up can come back
_MOST = 3.0  # by which a logarithm changes in a round


class _Groups(eqx.Module):
    """Coordinates whose shares sum to `total`, group by group."""

    labels: Int[Array, " n"]
    total: Float[Array, ""]
    count: int = eqx.field(static=True)

    def sums(self, values):
        """For each coordinate, the sum of the values in its group."""
        return jax.ops.segment_sum(values, self.labels, self.count)[self.labels]


class _State(eqx.Module):
    point: Point  # x_t
    spans: Float[Array, ""]  # root of the sum of squared spans of the gradients


class EntropicNewton(AbstractPrimal):
    r"""$x_{t+1,i}\propto x_{ti}e^{-\eta_t\nabla_{ti}}$ in each group, on a `ProbabilitySimplex` or a product of them.

    The product is a `PartitionMatroid` with ranks of 1, for example with routes for each pair of places. At first order
    the step is $\eta_td_t$ with $d_{ti}=-x_{ti}(\nabla_{ti}-\bar\nabla_{ti})$, where the bar is the mean in the group,
    weighted by shares. $\eta_t=\frac{\langle\nabla_t,-d_t\rangle}{\langle d_t,H_td_t\rangle}$ minimises the round's
    second-order model along it. Logarithms change by at most 3 in a round. Where the Hessian H gives no positive
    curvature, $\eta_t=\sqrt{8\ln n/\sum_sS_s^2}$ with the spans S of the gradients. Decisions do not depend on units,
    and no constant is needed.

    It is made for losses with much curvature that are nearly the same in all rounds, such as the cost of traffic.
    *Measured only:* docs/real_data.md.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.PartitionMatroid([[0, 1], [2, 3]], [1, 1]), lambda x, r: jnp.sum(r * x**4))
    >>> learner = cx.learners.PrimalDual(cx.primal.EntropicNewton(), cx.dual.RobustPI())
    >>> rounds = jnp.tile(jnp.array([1.0, 8.0, 1.0, 1.0]), (30, 1))
    >>> [round(float(x), 3) for x in cx.play(problem, learner, rounds, key=jax.random.key(0)).decision]
    [0.667, 0.333, 0.5, 0.5]
    """

    deterministic: ClassVar[bool] = True
    facts = Facts(
        cost="2 gradients",
        guarantee="on products of simplices, no constants, measured: see docs/real_data.md",
        cites=("kivinen1997", "cocoax"),
    )

    def init(self, domain, bounds, *, start, key, warm=None):
        groups_of(domain)
        return _State(start, jnp.zeros((), start.dtype))

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        groups = groups_of(domain)
        total = groups.total.astype(state.point.dtype)
        gradient, product = linearized(revealed.gradient, revealed.played)
        shares = jnp.maximum(revealed.played / total, _LEAST)
        shares = shares / groups.sums(shares)
        above = gradient - groups.sums(shares * gradient)
        spans = jnp.hypot(state.spans, above.max() - above.min())
        unit = jnp.abs(above).max()  # without it, the curvature would have the third power of the loss's unit
        above = ratio(above, unit)
        direction = -total * shares * above
        curvature = jnp.dot(direction, product(direction))
        usual = math.sqrt(8 * math.log(max(shares.size, 2))) * ratio(unit, spans)
        rate = jnp.where(curvature > 0, ratio(-jnp.dot(gradient, direction), curvature), usual)
        weights = shares * jnp.exp(-jnp.clip(rate * above, -_MOST, _MOST))
        spent = cost(gradient_calls=2, finite=jnp.isfinite(gradient).all())
        return _State(total * weights / groups.sums(weights), spans), spent

    def restart(self, domain, state, bounds, *, key):
        return state, cost()


def groups_of(domain: AbstractDomain, who: str = "EntropicNewton") -> _Groups:
    """The groups of coordinates whose simplices the domain is a product of; an error for other domains names `who`."""
    if isinstance(domain, ProbabilitySimplex):
        return _Groups(jnp.zeros(domain.shape, int), domain.total, 1)
    if isinstance(domain, PartitionMatroid) and (tree.is_traced(domain.ranks) or np.all(np.asarray(domain.ranks) == 1)):
        total = jnp.where((domain.ranks == 1).all(), 1.0, jnp.nan)  # inside jit, other ranks show in a decision of NaN
        return _Groups(domain.labels, total, domain.ranks.size)
    other = " with other ranks" if isinstance(domain, PartitionMatroid) else ""
    raise LearnerError(
        f"{who} plays on a ProbabilitySimplex or a PartitionMatroid with ranks of 1, got "
        f"{type(domain).__name__}{other}; choose learners.Auto()"
    )
