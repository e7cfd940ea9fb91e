"""Meta-Frank-Wolfe with projected gradient learners inside (the structure of OSPHG, Sadeghi, Fazel, 2020)."""

from fractions import Fraction
from typing import ClassVar

import equinox as eqx
import jax

from .. import theory
from ..core import tree
from ..core.facts import Facts
from ..domains.base import Point
from ..domains.vertices import Dense
from ..theory.traced_powers import ceil_power
from .base import AbstractPrimal, cost, step_size
from .mfw import MFW
from .perturbation import repeat


class _State(eqx.Module):
    point: Point  # x_t = x^{K+1}
    anchor: Point  # x^1, the same every round
    proposals: Dense  # v^1 .. v^K, a batch


class MetaOGD(AbstractPrimal):
    r"""K gradients and K projections per round (one batch each), $K=\lceil\sqrt T\rceil$, for smooth losses.

    As `MFW`, $x^{k+1} = x^k + \frac{2}{k+1}(v^k - x^k)$ and the decision is $x^{K+1}$, but without coins: the points
    $v^k$ are those of K gradient learners, $v^k \leftarrow \Pi_X(v^k - \frac{R}{D\sqrt T}\nabla f_t(x^k))$.

    Regret $\le (RD + 2R^2L)\sqrt T$, proven: the weights of the $v^k$ in $x^{K+1}$ sum to 1, each learner's regret is
    at most $RD\sqrt T$, and smoothness costs $2R^2L/(K+1)$ per round. For domains that offer `project`.

    >>> import cocoax as cx
    >>> constants = MetaOGD().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (1.0, 2.0)
    """

    deterministic: ClassVar[bool] = True
    alpha: ClassVar[Fraction] = Fraction(1, 2)
    facts = Facts(
        cost="ceil(sqrt T) projections and gradients", guarantee="smooth, proven", cites=("sadeghi2020",), regret=alpha
    )

    @classmethod
    def variants(cls):
        return {"MetaOGD (projected)": cls()}

    def _constants(self, domain):
        width = domain.diameter(2)
        return theory.Constants(1 / 2, 0.0, width, 2 * width**2)

    def init(self, domain, bounds, *, start, key, warm=None):
        most = theory.inner_steps(bounds.capacity)
        return _State(start, start, Dense(repeat(start, most)))

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        mixing, steps = MFW(), ceil_power(next_bounds.horizon, Fraction(1, 2), next_bounds.capacity)
        gradients = jax.vmap(revealed.gradient)(mixing.inner_points(state.anchor, state.proposals))
        rate = step_size(domain, next_bounds, 0.5)
        moved = tree.sub(state.proposals.point, tree.scale(rate, gradients))
        proposals = Dense(jax.vmap(domain.project)(moved))
        point = mixing.last_point(state.anchor, proposals, steps)
        used = cost(gradient_calls=steps, finite=tree.all_finite(gradients))
        return _State(point, state.anchor, proposals), used

    def restart(self, domain, state, bounds, *, key):
        return self.init(domain, bounds, start=state.point, key=key), cost()
