"""Online Frank-Wolfe that needs no bound on gradients, and whose regret follows their size."""

from fractions import Fraction
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import theory
from ..core import tree
from ..core.facts import Facts
from ..domains.base import AbstractVertex, Point
from .adaptive import AbstractAdaptive
from .base import cost, first_guess


class _State(eqx.Module):
    point: Point  # x_t
    anchor: Point  # x_1
    total: Point  # sum of the gradients before this round
    squares: Float[Array, ""]  # V, the sum of their squared norms
    vertex: AbstractVertex  # last LMO answer, the next one's guess


class AdaOFW(AbstractAdaptive):
    r"""One LMO and one gradient per round, any convex loss, any adversary, no Lipschitz constant.

    $v_t = \arg\min_{v\in X}\langle\sum_{s\le t}\nabla_s + \beta_t(x_t - x_1),\, v\rangle,\qquad
      x_{t+1} = (1-\sigma)x_t + \sigma v_t$

    with $\beta_t = \frac{\sqrt2}{R}T^{1/4}\sqrt{V_t}$, $V_t = \sum_{s\le t}\|\nabla_s\|^2$ and
    $\sigma=\min(1, 2/\sqrt T)$. After every round $t\le T$: Regret $\le 3RT^{1/4}\sqrt{V_t}$, derived by the
    argument of `OFW` with a regulariser that grows. Where the direction is zero the method stays.

    >>> import cocoax as cx
    >>> constants = AdaOFW().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (3.0, 0.0)
    """

    deterministic: ClassVar[bool] = True
    alpha: ClassVar[Fraction] = Fraction(3, 4)
    facts = Facts(
        cost="1 LMO", guarantee="after every round, no constants, proven", cites=("weibel2025",), regret=alpha
    )

    @property
    def needs(self):
        return ()

    def _constants(self, domain):
        return theory.constants.adaofw(domain.diameter(2))

    def init(self, domain, bounds, *, start, key, warm=None):
        vertex = first_guess(domain, start) if warm is None else warm.vertex
        return _State(start, start, tree.zeros_like(start), jnp.zeros((), tree.dtype(start)), vertex)

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        kind = tree.dtype(state.point)
        horizon = next_bounds.horizon.astype(kind)
        gradient = revealed.gradient(revealed.played)
        total, squares = tree.add(state.total, gradient), state.squares + tree.dot(gradient, gradient)
        beta = jnp.sqrt(2 * squares) * horizon**0.25 / jnp.asarray(domain.diameter(2), kind)
        direction = tree.add(total, tree.scale(beta, tree.sub(state.point, state.anchor)))
        vertex = domain.lmo(direction, state.vertex)
        sigma = jnp.where(tree.norm(direction, jnp.inf) > 0, jnp.minimum(1.0, 2 / jnp.sqrt(horizon)), 0.0)
        state = _State(vertex.mix(state.point, sigma), state.anchor, total, squares.astype(kind), vertex)
        return state, cost(lmo_calls=1, gradient_calls=1, finite=tree.all_finite(gradient))

    def restart(self, domain, state, bounds, *, key):
        return self.init(domain, bounds, start=state.point, key=key, warm=state), cost()
