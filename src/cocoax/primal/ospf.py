"""Online smooth projection-free method (Hazan, Minasyan, COLT 2020)."""

from fractions import Fraction
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import theory
from ..core import tree
from ..core.facts import Facts
from ..domains.base import AbstractVertex, Point
from ..theory.traced_powers import ceil_power
from .base import AbstractPrimal, cost, first_guess
from .perturbation import Ball, average, perturbed_leaders, repeat


class _State(eqx.Module):
    point: Point  # x, played throughout the inner block
    total: Point  # sum of all gradients seen
    vertices: AbstractVertex  # the leaders, a batch
    played: Int[Array, ""]  # rounds of the inner block already played


_THIRD = Fraction(1, 3)


def _block(bounds):
    return ceil_power(bounds.horizon, _THIRD, bounds.capacity)


class OSPF(AbstractPrimal):
    r"""One gradient and, on average, one LMO per round, for smooth losses.

    In inner blocks of $k=\lceil T^{1/3}\rceil$ rounds, plays
    $x = \frac1k\sum_{j\le k} \arg\min_{v\in X} \langle p^j + \sum_{s}\nabla_s,\, v\rangle$

    with the sum over all earlier blocks and $p^j$ uniform on the ball of radius $D\sqrt{\kappa_d kT}$.
    $E$ Regret $\le (2\sqrt{2\kappa_d}RD + R^2L)T^{2/3}$ for losses that are independent of their inner
    block's coins (erratum E30).

    >>> import cocoax as cx
    >>> constants = OSPF().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (2.449, 1.0)
    """

    deterministic: ClassVar[bool] = False
    alpha: ClassVar[Fraction] = Fraction(2, 3)
    facts = Facts(cost="1 LMO on average", guarantee="smooth, expected, proven", cites=("hazan2020",), regret=alpha)

    def _constants(self, domain):
        return theory.constants.ospf(domain.diameter(2), domain.dimension)

    def init(self, domain, bounds, *, start, key, warm=None):
        guesses = (
            repeat(first_guess(domain, start), theory.ceil_power(bounds.capacity, _THIRD))
            if warm is None
            else warm.vertices
        )
        return self._next_state(domain, tree.zeros_like(start), guesses, bounds, key)

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient = revealed.gradient(revealed.played)
        total = tree.add(state.total, gradient)
        block = _block(next_bounds)
        ends = state.played + 1 >= block
        state = jax.lax.cond(
            ends,
            lambda: self._next_state(domain, total, state.vertices, next_bounds, key),
            lambda: _State(state.point, total, state.vertices, state.played + 1),
        )
        finite = tree.all_finite(gradient)
        return state, cost(lmo_calls=jnp.where(ends, block, 0), gradient_calls=1, finite=finite)

    def restart(self, domain, state, bounds, *, key):
        state = self.init(domain, bounds, start=state.point, key=key, warm=state)
        return state, cost(lmo_calls=_block(bounds))

    def _next_state(self, domain, total, guesses, bounds, key):
        """The state at the start of an inner block: new leaders for the gradients' `total`, and their mean."""
        block = _block(bounds)
        size = Ball().size(bounds.lipschitz, block.astype(float) * bounds.horizon.astype(float), domain.dimension)
        vertices = perturbed_leaders(domain, Ball(), total, size, guesses, key, shared=True)
        return _State(average(vertices, block), total, vertices, jnp.zeros((), jnp.int32))
