"""Exponentiated gradient on a simplex (Kivinen, Warmuth, 1997), by default with AdaHedge's steps."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.facts import Facts
from ..core.parameters import positive_parameter
from ..domains.base import AbstractDomain
from ..domains.vectors.simplices import ProbabilitySimplex
from ..errors import LearnerError
from .base import AbstractPrimal, cost
from .hedge import Hedge


class _State(eqx.Module):
    hedge: Hedge
    total: Float[Array, ""]  # of the simplex's entries


class ExponentiatedGradient(AbstractPrimal):
    r"""$x_{t+1,i}\propto x_{1,i}\exp\left(-\eta_{t+1}\sum_{s\le t}\nabla_{si}\right)$, on a `ProbabilitySimplex`.

    **Arguments:**

    - `step`: $\eta$; by default AdaHedge's, $\eta_t=\ln d/\Delta_t$ with the mixability gap $\Delta$, which needs no
      constants, no horizon and no unit.

    Proven, for convex losses on a simplex of total r, from its centre, after every round (the gradient counts at the
    point played): by default Regret $\le r\left(2\sqrt{V\ln d}+S(\frac43\ln d+4)\right)$, where V is the sum of the
    gradients' variances under the shares $x_t/r$, at most $\frac14S^2t$, and S the largest difference of two entries of
    a gradient (`theory.regret.mixture`, times r). With a step, Regret
    $\le r\left(\frac{\ln d}\eta+\frac\eta8\sum_sS_s^2\right)$ (`theory.regret.exponentiated_gradient`).

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, growth: -jnp.log(jnp.vdot(growth, x)))
    >>> learner = cx.learners.PrimalDual(cx.primal.ExponentiatedGradient(), cx.dual.RobustPI())
    >>> growth = jnp.tile(jnp.array([1.1, 1.0, 0.9]), (100, 1))
    >>> bool(cx.play(problem, learner, growth, key=jax.random.key(0)).decision[0] > 0.9)
    True
    """

    deterministic: ClassVar[bool] = True
    facts = Facts(
        cost="1 gradient",
        guarantee="on simplices, after every round, regret T^(1/2), no constants, proven",
        cites=("kivinen1997", "derooij2014"),
    )

    step_size: Float[Array, ""] | None

    def __init__(self, step: Any = None):
        self.step_size = None if step is None else positive_parameter(step, "step")

    def init(self, domain, bounds, *, start, key, warm=None):
        total = _total(domain).astype(start.dtype)
        return _State(Hedge.begin(start / total), total)

    def decision(self, state):
        return state.total * state.hedge.shares

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient = revealed.gradient(revealed.played)
        if self.step_size is None:
            hedge = state.hedge.observe(gradient, gradient.max() - gradient.min(), 1.0)
        else:
            hedge = state.hedge.stepped(gradient, self.step_size.astype(gradient.dtype))
        return _State(hedge, state.total), cost(gradient_calls=1, finite=jnp.isfinite(gradient).all())

    def restart(self, domain, state, bounds, *, key):
        hedge = Hedge.begin(state.hedge.shares)
        return _State(eqx.tree_at(lambda h: h.shares, hedge, state.hedge.shares), state.total), cost()


def _total(domain: AbstractDomain) -> Float[Array, ""]:
    if not isinstance(domain, ProbabilitySimplex):
        raise LearnerError(f"ExponentiatedGradient plays on a ProbabilitySimplex, got {type(domain).__name__}")
    return domain.total
