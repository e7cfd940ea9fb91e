"""Follow the perturbed leader (Hannan, 1957; Kalai, Vempala, 2005), the paper's Algorithm 3 as corrected."""

from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx

from .. import theory
from ..core import tree
from ..core.facts import Facts
from ..core.parameters import argument
from ..domains.base import AbstractVertex, Point
from .base import AbstractPrimal, cost, first_guess
from .perturbation import AbstractPerturbation, named_perturbation


class _State(eqx.Module):
    total: Point  # sum of the gradients seen
    vertex: AbstractVertex  # the next decision


class FTPL(AbstractPrimal):
    r"""One LMO and one gradient per round, for linear losses $\langle w_t, x\rangle$.

    $x_{t+1} = \arg\min_{v\in X} \langle p_{t+1} + \sum_{s\le t} w_s,\, v\rangle$

    with $p$ drawn afresh every round (erratum E2) from a cube $[0,s]^d$ (E1), a centred cube or a ball. With
    the ball, $E$ Regret $\le 2RD\sqrt{\kappa_d T}$ for losses that do not see the round's own coins.

    >>> import cocoax as cx
    >>> constants = FTPL().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (1.732, 0.0)
    """

    noise: AbstractPerturbation = argument("perturbation")
    deterministic: ClassVar[bool] = False
    alpha: ClassVar[Fraction] = Fraction(1, 2)
    facts = Facts(cost="1 LMO", guarantee="for linear losses, expected, proven", cites=("kalai2005",), regret=alpha)

    def __init__(self, perturbation: Any = "ball"):
        self.noise = named_perturbation(perturbation)

    @property
    def norm(self):
        return self.noise.norm

    def _constants(self, domain):
        return theory.constants.ftpl(self.noise.diameter(domain), domain.dimension, self.noise.name)

    def init(self, domain, bounds, *, start, key, warm=None):
        guess = first_guess(domain, start) if warm is None else warm.vertex
        total = tree.zeros_like(start)
        return _State(total, self._perturbed_leader(domain, total, bounds, guess, key))

    def decision(self, state):
        return state.vertex.dense()

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient = revealed.gradient(revealed.played)
        total = tree.add(state.total, gradient)
        vertex = self._perturbed_leader(domain, total, next_bounds, state.vertex, key)
        finite = tree.all_finite(gradient)
        return _State(total, vertex), cost(lmo_calls=1, gradient_calls=1, finite=finite)

    def restart(self, domain, state, bounds, *, key):
        start = self.decision(state)
        return self.init(domain, bounds, start=start, key=key, warm=state), cost(lmo_calls=1)

    def _perturbed_leader(self, domain, total, bounds, guess, key):
        """The LMO's answer to total + fresh noise."""
        size = self.noise.size(bounds.lipschitz, bounds.horizon, domain.dimension)
        return domain.lmo(tree.add(total, tree.scale(size, self.noise.draw(key, total))), guess)
