"""Dual ascent that is kept below a cap (as in Castiglioni, Celli, Marchesi, Romano, Gatti, 2022)."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check, tree
from ..core.facts import Facts
from ..core.parameters import positive_parameter
from ..errors import LearnerError
from .base import AbstractDual, Weights


class BoundedAscent(AbstractDual):
    r"""Projected gradient ascent on $\lambda g$ over $[0, \text{cap}]$, from $\lambda_1 = 0$:

    $\lambda_{t+1} = \min\{[\lambda_t + \mu\,g_t(x_t)]_+,\ \text{cap}\}$

    For values within [-G, G] and every $\lambda$ in $[0,\text{cap}]$,
    $\sum_t(\lambda-\lambda_t)g_t(x_t) \le \frac{\lambda^2}{2\mu}+\frac\mu2G^2T$: the regret of the dual.

    **Arguments:**

    - `cap`: the largest multiplier; may be infinite.
    - `step`: $\mu$.

    >>> import jax.numpy as jnp
    >>> dual = BoundedAscent(cap=1.0, step=0.5)
    >>> _, state = dual.weigh(dual.init(2, float), jnp.array([5.0, 1.0]))
    >>> dual.forecast(state).constraint.tolist()
    [1.0, 0.5]
    """

    facts = Facts(
        cost="m numbers", guarantee="multipliers below a cap: 1 / Slater's margin", cites=("castiglioni2022",)
    )

    cap: Float[Array, ""]
    step: Float[Array, ""]
    predictable: ClassVar[bool] = True

    def __init__(self, cap: Any, step: Any):
        if not (tree.is_traced(cap) or check.scalar(cap, "cap", LearnerError) > 0):
            raise LearnerError(f"cap must be positive, got {cap}")
        self.cap = jnp.asarray(cap, float)
        self.step = positive_parameter(step, "step")

    def init(self, constraints, dtype):
        return jnp.zeros(constraints, dtype)

    def forecast(self, state):
        return Weights(jnp.ones((), state.dtype), state)

    def weigh(self, state, values, norms=None):
        moved = state + self.step.astype(state.dtype) * values
        return self.forecast(state), jnp.clip(moved, 0, self.cap.astype(state.dtype))
