"""Online recursive-gradient Frank-Wolfe (Xie, Shen, Zhang, Wang, Qian, AAAI 2020)."""

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
    previous: Point  # x_{t-1}, as it was played
    momentum: Point  # d_{t-1}
    vertex: AbstractVertex
    round: Int[Array, ""]  # t


class ORGFW(AbstractPrimal):
    r"""One LMO and two gradients per round, for smooth i.i.d. losses only (erratum E24).

    $d_t = \nabla f_t(x_t) + (1-\rho_t)(d_{t-1} - \nabla f_t(x_{t-1})),\qquad v_t = \arg\min_{v\in X}
    \langle d_t, v\rangle,\qquad x_{t+1} = x_t + \eta_t(v_t - x_t)$

    with $\eta_t=\rho_t=\frac{1}{t+1}$ and $d_1=\nabla f_1(x_1)$. $E$ Regret $\le (7RD + 6.5R^2L)\sqrt T$.

    >>> import cocoax as cx
    >>> constants = ORGFW().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (7.0, 6.5)
    """

    deterministic: ClassVar[bool] = True
    alpha: ClassVar[Fraction] = Fraction(1, 2)
    facts = Facts(cost="1 LMO, 2 gradients", guarantee="i.i.d. smooth losses, proven", cites=("xie2020",), regret=alpha)

    @property
    def needs(self):
        return ()

    def _constants(self, domain):
        return theory.constants.orgfw(domain.diameter(2))

    def init(self, domain, bounds, *, start, key, warm=None):
        vertex = first_guess(domain, start) if warm is None else warm.vertex
        return _State(start, start, tree.zeros_like(start), vertex, jnp.ones((), jnp.int32))

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        step = 1 / (state.round.astype(tree.dtype(state.point)) + 1)
        is_first = state.round == 1
        gradient = revealed.gradient(revealed.played)
        correction = tree.sub(state.momentum, revealed.gradient(state.previous))
        momentum = tree.add(gradient, tree.scale(jnp.where(is_first, 0.0, 1 - step), correction))
        vertex = domain.lmo(momentum, state.vertex)
        state = _State(vertex.mix(state.point, step), revealed.played, momentum, vertex, state.round + 1)
        finite = tree.all_finite(momentum)
        return state, cost(lmo_calls=1, gradient_calls=jnp.where(is_first, 1, 2), finite=finite)

    def restart(self, domain, state, bounds, *, key):
        return self.init(domain, bounds, start=state.point, key=key, warm=state), cost()
