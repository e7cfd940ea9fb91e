"""The virtual queue that never falls below the slack (Yu, Neely, 2020)."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.facts import Facts
from ..core.parameters import positive_parameter
from .base import AbstractDual, Weights


class FlooredQueue(AbstractDual):
    r"""Weighs each constraint, in units $\gamma$, by its queue and its current value:

    $\lambda_t = \gamma(Q_t + \gamma g_t(x_t)),\qquad
    Q_{t+1} = \max\{-\gamma g_t(x_{t+1}),\ Q_t + \gamma g_t(x_{t+1})\}$

    A queue below $-\gamma g_t(x_t)$ is raised to it. In the first round that is the method's own
    $Q_1=\max\{0,-\gamma g(x_1)\}$. Later it changes nothing if the constraint is the same in all rounds, and
    keeps the weights nonnegative if it is not. Weights depend on the round that they weigh, so the primal must be
    deterministic.
    """

    facts = Facts(
        cost="m numbers, one evaluation", guarantee="Yu and Neely's, for one fixed constraint", cites=("yu2020",)
    )

    unit: Float[Array, ""]  # gamma
    predictable: ClassVar[bool] = False
    settles: ClassVar[bool] = True

    def __init__(self, unit: Any = 1.0):
        self.unit = positive_parameter(unit, "unit")

    def init(self, constraints, dtype):
        return jnp.zeros(constraints, dtype)

    def forecast(self, state):
        return Weights(jnp.ones((), state.dtype), self.unit.astype(state.dtype) * state)

    def weigh(self, state, values, norms=None):
        scaled = self.unit.astype(state.dtype) * values
        queue = jnp.maximum(state, -scaled)
        return self.forecast(jnp.maximum(queue + scaled, 0)), queue  # rounding may leave less than 0

    def settle(self, state, moved):
        scaled = self.unit.astype(state.dtype) * moved.exact()
        return jnp.maximum(-scaled, state + scaled)
