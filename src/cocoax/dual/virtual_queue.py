"""The virtual queue of drift-plus-penalty methods (Yu, Neely, Wei, 2017)."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.facts import Facts
from ..core.parameters import positive_parameter
from .base import AbstractDual, Weights


class VirtualQueue(AbstractDual):
    r"""Weighs the loss by V and each constraint by its queue, from $Q_1 = 0$:

    $Q_{t+1} = [Q_t + g_t(x_t) + \langle\nabla g_t(x_t), x_{t+1}-x_t\rangle]_+$

    >>> dual = VirtualQueue(loss_weight=10.0)
    >>> weights = dual.forecast(dual.init(2, float))
    >>> float(weights.loss), weights.constraint.tolist()
    (10.0, [0.0, 0.0])
    """

    facts = Facts(cost="m numbers, one linearisation", guarantee="drift-plus-penalty's", cites=("yu2017",))

    loss_weight: Float[Array, ""]  # V
    predictable: ClassVar[bool] = True
    settles: ClassVar[bool] = True

    def __init__(self, loss_weight: Any = 1.0):
        self.loss_weight = positive_parameter(loss_weight, "loss_weight")

    def init(self, constraints, dtype):
        return jnp.zeros(constraints, dtype)

    def forecast(self, state):
        return Weights(self.loss_weight.astype(state.dtype), state)

    def weigh(self, state, values, norms=None):
        return self.forecast(state), state

    def settle(self, state, moved):
        return jnp.maximum(state + moved.linearised(), 0)
