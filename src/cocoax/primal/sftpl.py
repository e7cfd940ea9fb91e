"""Sampled follow the perturbed leader (Hazan, Minasyan, COLT 2020; the paper's Table 2 prints SFTRL, E20)."""

from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx

from .. import theory
from ..core import tree
from ..core.facts import Facts
from ..core.parameters import flag
from ..domains.base import AbstractVertex, Point
from ..theory.traced_powers import ceil_power
from .base import AbstractPrimal, cost, first_guess
from .perturbation import Ball, average, perturbed_leaders, repeat


class _State(eqx.Module):
    point: Point  # x_t, the mean of the leaders
    total: Point  # sum of the gradients seen
    vertices: AbstractVertex  # the leaders, a batch


class SFTPL(AbstractPrimal):
    r"""One gradient and m LMOs per round (one batch), any convex loss.

    $x_{t+1} = \frac1m\sum_{j\le m} \arg\min_{v\in X} \langle p^j_{t+1} + \sum_{s\le t}\nabla_s,\, v\rangle$

    with fresh $p^j$ uniform on the ball of radius $D\sqrt{\kappa_d T}$. With $m=T$ samples, any convex loss:
    $E$ Regret $\le (2\sqrt{\kappa_d}+1)RD\sqrt T$. With `smooth=True`, $m=\lceil\sqrt T\rceil$ samples are
    enough: $(2\sqrt{\kappa_d}RD + R^2L)\sqrt T$. Here $T$ is the run's horizon, a block's length in
    Algorithm 1 (erratum E21).

    >>> import cocoax as cx
    >>> constants = SFTPL().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (2.732, 0.0)
    """

    smooth: bool = eqx.field(static=True)
    deterministic: ClassVar[bool] = False
    alpha: ClassVar[Fraction] = Fraction(1, 2)
    facts = Facts(
        cost="T LMOs, ceil(sqrt T) if smooth", guarantee="expected, proven", cites=("hazan2020",), regret=alpha
    )

    def __init__(self, smooth: Any = False):
        self.smooth = flag(smooth, "smooth")

    @classmethod
    def variants(cls):
        return {"SFTPL": cls(), "SFTPL (smooth)": cls(smooth=True)}

    def _constants(self, domain):
        bound = theory.constants.sftpl_smooth if self.smooth else theory.constants.sftpl
        return bound(domain.diameter(2), domain.dimension)

    def _samples(self, bounds):
        return ceil_power(bounds.horizon, Fraction(1, 2), bounds.capacity) if self.smooth else bounds.horizon

    def init(self, domain, bounds, *, start, key, warm=None):
        most = theory.inner_steps(bounds.capacity) if self.smooth else bounds.capacity
        guesses = repeat(first_guess(domain, start), most) if warm is None else warm.vertices
        return self._next_state(domain, tree.zeros_like(start), guesses, bounds, key)

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient = revealed.gradient(revealed.played)
        total = tree.add(state.total, gradient)
        samples = self._samples(next_bounds)
        state = self._next_state(domain, total, state.vertices, next_bounds, key)
        return state, cost(lmo_calls=samples, gradient_calls=1, finite=tree.all_finite(gradient))

    def restart(self, domain, state, bounds, *, key):
        state = self.init(domain, bounds, start=state.point, key=key, warm=state)
        return state, cost(lmo_calls=self._samples(bounds))

    def _next_state(self, domain, total, guesses, bounds, key):
        """The state after the leaders were drawn anew for the gradients' `total`; the point is their mean."""
        size = Ball().size(bounds.lipschitz, bounds.horizon, domain.dimension)
        vertices = perturbed_leaders(domain, Ball(), total, size, guesses, key, shared=True)
        return _State(average(vertices, self._samples(bounds)), total, vertices)
