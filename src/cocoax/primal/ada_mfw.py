"""Meta-Frank-Wolfe whose perturbations grow with the losses, for weights that are not known in advance."""

from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import theory
from ..core.facts import Facts
from .adaptive import AbstractAdaptive
from .base import RoundBounds
from .meta import AbstractMeta
from .mfw import MFW


class _State(eqx.Module):
    meta: Any
    squares: Float[Array, ""]  # sum of H_s^2 to the round of the decision


class AdaMFW(AbstractAdaptive):
    r"""`MFW` with K gradients and K LMOs per round, $K=\lceil\sqrt T\rceil$, for smooth losses that may grow.

    The ball that perturbations are drawn from has radius $r_t = \sqrt{2\kappa_d\sum_{s\le t}H_s^2}$, where $H_t$ bounds
    the gradients of round t and is known before it. If the smoothness is at most $LH_t/D$, then after every round

    $E\,$Regret$_t \le C\sqrt{\sum_{s\le t}H_s^2},\qquad C = 2\sqrt{2\kappa_d}R + 2R^2L/D$

    derived: a radius that never shrinks costs $Rr_t + \kappa_dR\sum H_s^2/r_s$, and curvature
    $\frac{2R^2L}{(K+1)D}\sum H_s$. Losses must ignore the coins of their round, so weights may not depend on it.

    >>> import cocoax as cx
    >>> constants = AdaMFW().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (2.449, 2.0)
    """

    meta: AbstractMeta
    deterministic: ClassVar[bool] = False
    alpha: ClassVar[Fraction] = Fraction(1, 2)
    facts = Facts(
        cost="ceil(sqrt T) LMOs and gradients",
        guarantee="smooth, weights that grow, expected, proven",
        cites=("chen2018",),
        regret=alpha,
    )

    def __init__(self):
        self.meta = MFW("ball")

    @property
    def needs(self):
        return ("lipschitz", "smoothness")

    def _constants(self, domain):
        return theory.constants.adamfw(domain.diameter(2), domain.dimension)

    def init(self, domain, bounds, *, start, key, warm=None):
        squares = jnp.square(bounds.lipschitz)
        warm = None if warm is None else warm.meta
        return _State(self.meta.init(domain, _grown(bounds, squares), start=start, key=key, warm=warm), squares)

    def decision(self, state):
        return self.meta.decision(state.meta)

    def step(self, domain, state, revealed, next_bounds, *, key):
        squares = state.squares + jnp.square(next_bounds.lipschitz)
        meta, cost = self.meta.step(domain, state.meta, revealed, _grown(next_bounds, squares), key=key)
        return _State(meta, squares), cost

    def restart(self, domain, state, bounds, *, key):
        squares = jnp.square(bounds.lipschitz)
        meta, cost = self.meta.restart(domain, state.meta, _grown(bounds, squares), key=key)
        return _State(meta, squares), cost


def _grown(bounds: RoundBounds, squares) -> RoundBounds:
    """The bounds with which MFW, whose radius is D sqrt(kappa T), draws from a ball of radius sqrt(2 kappa squares)."""
    bound = jnp.sqrt(2 * squares / bounds.horizon.astype(squares.dtype))
    return RoundBounds(bound, bounds.smoothness, bounds.horizon, bounds.capacity)
