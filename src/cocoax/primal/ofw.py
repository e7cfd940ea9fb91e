"""Online Frank-Wolfe with the best constant steps (Weibel, Gaillard, Koolen, Taylor, 2025, Theorem 2.1)."""

from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import theory
from ..core import tree
from ..core.facts import Facts
from ..core.parameters import optional_parameter
from ..domains.base import AbstractVertex, Point
from ..errors import LearnerError
from .base import AbstractPrimal, cost, first_guess


class _State(eqx.Module):
    point: Point  # x_t
    anchor: Point  # x_1
    total: Point  # sum of the gradients before this round
    vertex: AbstractVertex  # last LMO answer, the next one's guess


class OFW(AbstractPrimal):
    r"""One LMO and one gradient per round, any convex loss, any adversary.

    $v_t = \arg\min_{v\in X}\langle\eta\sum_{s\le t}\nabla_s + x_t - x_1,\, v\rangle,\qquad
      x_{t+1} = (1-\sigma)x_t + \sigma v_t$

    with $\eta = \frac{aR}{DT^{3/4}}$ and $\sigma=\min(1, b/\sqrt T)$. By default $a = \frac12 3^{3/4}$ and
    $b = \sqrt 3$: Regret $\le 4\cdot3^{-3/4}RDT^{3/4} \approx 1.755\,RDT^{3/4}$, proven in print. For any
    `rate` a and `mixing` b, and gradients of any size with $V = \sum\|\nabla_t\|^2$, derived:

    Regret $\le \frac{R^2}{2\eta} + \frac{\eta V}{\sigma} + R\sqrt{VT\sigma/2}$ (`theory.regret.ofw`).

    Where the direction is exactly zero every point minimises it, and the method stays.

    >>> import cocoax as cx
    >>> constants = OFW().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (1.755, 0.0)
    """

    rate: Float[Array, ""] | None
    mixing: Float[Array, ""] | None
    deterministic: ClassVar[bool] = True
    alpha: ClassVar[Fraction] = Fraction(3, 4)
    facts = Facts(cost="1 LMO", guarantee="proven", cites=("weibel2025",), regret=alpha)

    def __init__(self, rate: Any = None, mixing: Any = None):
        if (rate is None) != (mixing is None):
            raise LearnerError("OFW takes rate and mixing together, or neither")
        self.rate = optional_parameter(rate, "rate")
        self.mixing = optional_parameter(mixing, "mixing")

    @property
    def factored(self):
        return True

    def _constants(self, domain):
        """The constants of the theorem; for other rates, of the derived bound."""
        best = theory.constants.ofw(domain.diameter(2))
        if self.rate is None or self.mixing is None:
            return best
        terms = 0.5 / self.rate + self.rate / self.mixing + (self.mixing / 2) ** 0.5
        return best._replace(c1=domain.diameter(2) * jnp.maximum(terms, self.mixing**0.5))  # T < b^2: RDT

    def init(self, domain, bounds, *, start, key, warm=None):
        vertex = first_guess(domain, start) if warm is None else warm.vertex
        start = domain.truncate(start)
        return _State(start, start, tree.zeros_like(start), vertex)

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        kind = tree.dtype(state.point)
        horizon, lipschitz = next_bounds.horizon.astype(kind), next_bounds.lipschitz.astype(kind)
        rate = 0.5 * 3**0.75 if self.rate is None else self.rate.astype(kind)
        mixing = 3**0.5 if self.mixing is None else self.mixing.astype(kind)
        eta = rate * jnp.asarray(domain.diameter(2), kind) / (lipschitz * horizon**0.75)
        sigma = jnp.minimum(1.0, mixing / jnp.sqrt(horizon))
        gradient = revealed.gradient(revealed.played)
        total = domain.truncate(tree.add(state.total, gradient))
        direction = tree.add(tree.scale(eta, total), tree.sub(state.point, state.anchor))
        vertex = domain.lmo(direction, state.vertex)
        sigma = jnp.where(tree.is_nonzero(direction), sigma, 0.0)
        state = _State(domain.truncate(vertex.mix(state.point, sigma)), state.anchor, total, vertex)
        return state, cost(lmo_calls=1, gradient_calls=1, finite=tree.all_finite(gradient))

    def restart(self, domain, state, bounds, *, key):
        return self.init(domain, bounds, start=state.point, key=key, warm=state), cost()
