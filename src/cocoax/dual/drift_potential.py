"""Queues that drain, weighed by an exponential potential and known before the round: no Slater point needed."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.facts import Facts
from ..core.parameters import optional_parameter, positive_parameter
from ..errors import LearnerError
from .base import AbstractDual, Weights
from .exponential_potential import largest_exponent


class _State(eqx.Module):
    queue: Float[Array, " m"]
    squares: Float[Array, ""]  # of the total weights so far


class DriftPotential(AbstractDual):
    r"""Weighs the loss by v and each constraint by the slope of $e^{\lambda Q} - \lambda Q - 1$ at its queue:

    $w_t = \lambda(e^{\lambda Q_t} - 1),\qquad Q_{t+1} = \Bigl[Q_t + g_t(x_t) - \kappa_0
    - \kappa_1\frac{\sum_iw_t^i}{\sqrt{\sum_{s\le t}(v + \sum_iw_s^i)^2}}\Bigr]_+$

    from $Q_1 = 0$, with the rate $\lambda$, the drain $\kappa_0$ and the margin $\kappa_1$. The margin drains a queue
    by as much as an adaptive primal's regret can fill it. If no numbers are given, the learner that holds it tunes it
    by its theorem. Weights stop growing where $\lambda Q$ is so large that they would overflow.
    """

    facts = Facts(cost="m + 1 numbers", guarantee="stochastic constraints, no Slater: LyapStoch's", cites=("cocoax",))

    rate: Float[Array, ""] | None
    drain: Float[Array, ""] | None
    margin: Float[Array, ""] | None
    loss_weight: Float[Array, ""]  # v
    predictable: ClassVar[bool] = True

    def __init__(self, rate: Any = None, drain: Any = None, margin: Any = None, loss_weight: Any = 1.0):
        if len({value is None for value in (rate, drain, margin)}) > 1:
            raise LearnerError("DriftPotential takes rate, drain and margin together, or none")
        self.rate = optional_parameter(rate, "rate")
        self.drain = optional_parameter(drain, "drain")
        self.margin = optional_parameter(margin, "margin")
        self.loss_weight = positive_parameter(loss_weight, "loss_weight")

    @property
    def is_tuned(self):
        return self.rate is not None

    def init(self, constraints, dtype):
        return _State(jnp.zeros(constraints, dtype), jnp.zeros((), dtype))

    def forecast(self, state):
        if self.rate is None:
            raise LearnerError("DriftPotential needs its numbers here; give DriftPotential(rate, drain, margin)")
        kind = state.queue.dtype
        rate = self.rate.astype(kind)
        slope = rate * jnp.expm1(jnp.minimum(rate * state.queue, largest_exponent(kind)))
        return Weights(self.loss_weight.astype(kind), slope)

    def weigh(self, state, values, norms=None):
        weights = self.forecast(state)
        squares = state.squares + jnp.square(weights.total())
        share = weights.constraint.sum() / jnp.sqrt(squares)
        drained = jnp.asarray(self.drain, values.dtype) + jnp.asarray(self.margin, values.dtype) * share
        return weights, _State(jnp.maximum(state.queue + values - drained, 0), squares)
