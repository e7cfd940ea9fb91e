"""Online conditional gradient (Hazan, Introduction to Online Convex Optimization, 2nd ed., Algorithm 27)."""

from fractions import Fraction
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import theory
from ..core import tree
from ..core.facts import Facts
from ..domains.base import AbstractVertex, Point
from .base import AbstractPrimal, cost, first_guess


class _State(eqx.Module):
    point: Point  # x_t
    anchor: Point  # x_1
    total: Point  # sum of the gradients before this round
    vertex: AbstractVertex  # last LMO answer, the next one's guess
    round: Int[Array, ""]  # t


class OCG(AbstractPrimal):
    r"""One LMO and one gradient per round, any convex loss, any adversary.

    $v_t = \arg\min_{v\in X} \langle \eta\sum_{s<t}\nabla_s + 2(x_t - x_1),\, v\rangle,\qquad
      x_{t+1} = (1-\sigma_t)x_t + \sigma_t v_t$

    with $\eta = \frac{R}{2DT^{3/4}}$ and $\sigma_t = \min(1, 2/\sqrt t)$. Regret $\le 8RDT^{3/4}$, proven; the
    same proof gives $\frac{59}{12}RDT^{3/4}$. Where the direction is exactly zero (the first round after a
    start) every point minimises it, and the method stays.

    >>> import cocoax as cx
    >>> constants = OCG().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (8.0, 0.0)
    """

    deterministic: ClassVar[bool] = True
    alpha: ClassVar[Fraction] = Fraction(3, 4)
    facts = Facts(cost="1 LMO", guarantee="proven", cites=("hazan-oco",), regret=alpha)

    @property
    def factored(self):
        return True

    def _constants(self, domain):
        return theory.constants.ocg(domain.diameter(2))

    def init(self, domain, bounds, *, start, key, warm=None):
        vertex = first_guess(domain, start) if warm is None else warm.vertex
        start = domain.truncate(start)
        return _State(start, start, tree.zeros_like(start), vertex, jnp.ones((), jnp.int32))

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        kind = tree.dtype(state.point)
        horizon = next_bounds.horizon.astype(kind)
        diameter, lipschitz = jnp.asarray(domain.diameter(2), kind), next_bounds.lipschitz.astype(kind)
        eta = diameter / (2 * lipschitz * horizon**0.75)
        sigma = jnp.minimum(1.0, 2 / jnp.sqrt(state.round.astype(kind)))
        direction = tree.add(tree.scale(eta, state.total), tree.scale(2.0, tree.sub(state.point, state.anchor)))
        vertex = domain.lmo(direction, state.vertex)
        sigma = jnp.where(tree.is_nonzero(direction), sigma, 0.0)
        gradient = revealed.gradient(revealed.played)
        state = _State(
            domain.truncate(vertex.mix(state.point, sigma)),
            state.anchor,
            domain.truncate(tree.add(state.total, gradient)),
            vertex,
            state.round + 1,
        )
        return state, cost(lmo_calls=1, gradient_calls=1, finite=tree.all_finite(gradient))

    def restart(self, domain, state, bounds, *, key):
        return self.init(domain, bounds, start=state.point, key=key, warm=state), cost()
