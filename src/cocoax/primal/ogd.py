"""Online gradient descent (Zinkevich, 2003), with projections: the reference."""

from fractions import Fraction
from typing import ClassVar

import equinox as eqx

from .. import theory
from ..core import tree
from ..core.facts import Facts
from ..domains.base import Point
from .base import AbstractPrimal, cost, step_size


class _State(eqx.Module):
    point: Point  # x_t


class OGD(AbstractPrimal):
    r"""One gradient and one projection per round, any convex loss.

    $x_{t+1} = \Pi_X\left(x_t - \frac{R}{D\sqrt T}\nabla_t\right)$, with Regret $\le RD\sqrt T$. For domains that offer
    `project`.

    >>> import cocoax as cx
    >>> constants = OGD().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (1.0, 0.0)
    """

    deterministic: ClassVar[bool] = True
    alpha: ClassVar[Fraction] = Fraction(1, 2)
    facts = Facts(cost="one projection", guarantee="proven", cites=("zinkevich2003",), regret=alpha)

    @classmethod
    def variants(cls):
        return {"OGD (projected)": cls()}

    def _constants(self, domain):
        return theory.constants.ogd(domain.diameter(2))

    def init(self, domain, bounds, *, start, key, warm=None):
        return _State(start)

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient = revealed.gradient(revealed.played)
        rate = step_size(domain, next_bounds, 0.5)
        point = domain.project(tree.sub(state.point, tree.scale(rate, gradient)))
        return _State(point), cost(gradient_calls=1, finite=tree.all_finite(gradient))

    def restart(self, domain, state, bounds, *, key):
        return state, cost()
