"""A quadratic penalty (Yuan, Lamperski, 2018): weights from the current round alone."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.facts import Facts
from ..core.parameters import optional_parameter
from ..errors import LearnerError
from .base import AbstractDual, Weights


class Penalty(AbstractDual):
    r"""Weighs each constraint by how much it is violated now:

    $\lambda_t = [g_t(x_t)]_+ / \zeta$

    the gradient of $[g_t]_+^2/2\zeta$. If $\zeta$ is not given, the learner that holds it tunes it by its theorem. The
    weights depend on the round that they weigh, so the primal must be deterministic; the forecast is the last round's.

    >>> import jax.numpy as jnp
    >>> dual = Penalty(zeta=2.0)
    >>> weights, _ = dual.weigh(dual.init(2, float), jnp.array([3.0, -1.0]))
    >>> weights.constraint.tolist()
    [1.5, 0.0]
    """

    facts = Facts(cost="m numbers", guarantee="hard constraints, a deterministic primal", cites=("yuan2018",))

    zeta: Float[Array, ""] | None
    predictable: ClassVar[bool] = False

    def __init__(self, zeta: Any = None):
        self.zeta = optional_parameter(zeta, "zeta")

    @property
    def is_tuned(self):
        return self.zeta is not None

    def init(self, constraints, dtype):
        return jnp.zeros(constraints, dtype)

    def forecast(self, state):
        return Weights(jnp.ones((), state.dtype), state)

    def weigh(self, state, values, norms=None):
        if self.zeta is None:
            raise LearnerError("Penalty needs zeta here; give Penalty(zeta)")
        state = jnp.maximum(values, 0) / self.zeta.astype(state.dtype)
        return self.forecast(state), state
