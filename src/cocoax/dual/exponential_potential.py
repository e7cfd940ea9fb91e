"""The exponential Lyapunov potential (Sinha, Vaze, 2024): weights grow with what was violated so far."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.facts import Facts
from ..core.parameters import optional_parameter, positive_parameter
from ..errors import LearnerError
from .base import AbstractDual, Weights


def largest_exponent(dtype) -> float:
    """Where exponentials stop growing, so that the squares of weighted gradients stay finite."""
    return 0.4 * math.log(jnp.finfo(dtype).max)


class ExponentialPotential(AbstractDual):
    r"""Weighs the loss by v and each violated constraint by the slope of $e^{\lambda Q} - 1$ at its hard violation:

    $Q_t = Q_{t-1} + [g_t(x_t)]_+,\qquad w_t = \lambda e^{\lambda Q_t}\,1\{g_t(x_t) > 0\}$

    If no rate $\lambda$ is given, the learner that holds it tunes it by its theorem. The weights depend on the round
    that they weigh, so the primal must be deterministic; the forecast assumes that the next round violates nothing.
    Weights stop growing where $\lambda Q$ is so large that they would overflow; guarantees are lost long before.
    """

    facts = Facts(
        cost="m numbers", guarantee="hard constraints, a deterministic primal: LyapHard's", cites=("sinha2024",)
    )

    rate: Float[Array, ""] | None
    loss_weight: Float[Array, ""]  # v
    predictable: ClassVar[bool] = False

    def __init__(self, rate: Any = None, loss_weight: Any = 1.0):
        self.rate = optional_parameter(rate, "rate")
        self.loss_weight = positive_parameter(loss_weight, "loss_weight")

    @property
    def is_tuned(self):
        return self.rate is not None

    def init(self, constraints, dtype):
        return jnp.zeros(constraints, dtype)

    def forecast(self, state):
        if self.rate is None:
            raise LearnerError("ExponentialPotential needs its rate here; give ExponentialPotential(rate)")
        rate = self.rate.astype(state.dtype)
        slope = rate * jnp.exp(jnp.minimum(rate * state, largest_exponent(state.dtype)))
        return Weights(self.loss_weight.astype(state.dtype), slope)

    def weigh(self, state, values, norms=None):
        state = state + jnp.maximum(values, 0)
        weights = self.forecast(state)
        return Weights(weights.loss, jnp.where(values > 0, weights.constraint, 0)), state
