"""Meta-Frank-Wolfe (Chen, Harshaw, Hassani, Karbasi, ICML 2018), with exact gradients."""

from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp

from .. import theory
from ..core.facts import Facts
from ..core.parameters import argument
from ..theory.traced_powers import ceil_power
from .meta import AbstractMeta
from .perturbation import AbstractPerturbation, named_perturbation


class MFW(AbstractMeta):
    r"""K gradients and K LMOs per round (one batch each), $K=\lceil\sqrt T\rceil$, for smooth losses.

    K inner learners, each follow-the-perturbed-leader, propose vertices; with $\gamma_k = \frac{2}{k+1}$,
    $x^{k+1} = x^k + \gamma_k(v^k - x^k)$, the decision is $x^{K+1}$, and learner k then sees $\nabla f_t(x^k)$.

    Since $\gamma_1=1$, $x^{k+1} = \frac{2}{k(k+1)}\sum_{j\le k} j\,v^j$: one matrix product instead of a loop.
    $E$ Regret $\le (cRD + 2R^2L)\sqrt T$ with $c=2\sqrt{\kappa_d}$ for the ball and $2\sqrt d$, in the l1 and linf
    norms, for the cube.

    >>> import cocoax as cx
    >>> constants = MFW().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (1.732, 2.0)
    """

    facts = Facts(
        cost="ceil(sqrt T) LMOs and gradients",
        guarantee="smooth, expected, proven",
        cites=("chen2018",),
        regret=AbstractMeta.alpha,
    )

    noise: AbstractPerturbation = argument("perturbation")

    def __init__(self, perturbation: Any = "ball"):
        self.noise = named_perturbation(perturbation)

    def _constants(self, domain):
        return theory.constants.mfw(self.noise.diameter(domain), domain.dimension, self.noise.name)

    def most_steps(self, capacity):
        return theory.inner_steps(capacity)

    def steps(self, bounds):
        return ceil_power(bounds.horizon, Fraction(1, 2), bounds.capacity)

    def mixture(self, k, j):
        is_first = k == 0
        return is_first.astype(k.dtype), 2 * j / jnp.where(is_first, 1, k * (k + 1))

    def estimates(self, points, revealed, key):
        return jax.vmap(revealed.gradient)(points)
