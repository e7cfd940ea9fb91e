"""AdaGrad-norm gradient descent (Streeter, McMahan, 2010; Duchi, Hazan, Singer, 2011), with projections."""

from fractions import Fraction
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import theory
from ..core import tree
from ..core.facts import Facts
from ..domains.base import Point
from .adaptive import AbstractAdaptive
from .base import cost


class _State(eqx.Module):
    point: Point  # x_t
    squares: Float[Array, ""]  # V, the sum of the squared norms of gradients


class AdaGrad(AbstractAdaptive):
    r"""One gradient and one projection per round, any convex loss, no Lipschitz constant and no horizon.

    $x_{t+1} = \Pi_X\left(x_t - \frac{R}{\sqrt{2V_t}}\nabla_t\right)$ with $V_t = \sum_{s\le t}\|\nabla_s\|^2$. After
    every round t, Regret $\le \sqrt2\,R\sqrt{V_t}$ (standard). For domains that offer `project`.

    >>> import cocoax as cx
    >>> constants = AdaGrad().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (1.414, 0.0)
    """

    deterministic: ClassVar[bool] = True
    alpha: ClassVar[Fraction] = Fraction(1, 2)
    facts = Facts(
        cost="one projection", guarantee="after every round, no constants, proven", cites=("duchi2011",), regret=alpha
    )

    @property
    def needs(self):
        return ()

    @classmethod
    def variants(cls):
        return {"AdaGrad (projected)": cls()}

    def _constants(self, domain):
        return theory.constants.adagrad(domain.diameter(2))

    def init(self, domain, bounds, *, start, key, warm=None):
        return _State(start, jnp.zeros((), tree.dtype(start)))

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient = revealed.gradient(revealed.played)
        squares = state.squares + tree.dot(gradient, gradient)
        rate = jnp.asarray(domain.diameter(2), squares.dtype) / jnp.sqrt(2 * jnp.where(squares > 0, squares, 1))
        point = domain.project(tree.sub(state.point, tree.scale(rate, gradient)))
        return _State(point, squares), cost(gradient_calls=1, finite=tree.all_finite(gradient))

    def restart(self, domain, state, bounds, *, key):
        return self.init(domain, bounds, start=state.point, key=key), cost()
