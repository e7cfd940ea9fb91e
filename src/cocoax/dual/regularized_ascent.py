"""Regularised dual ascent (Mahdavi, Jin, Yang, 2012), the dual step of both of the paper's algorithms."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.facts import Facts
from ..core.parameters import parameter
from ..errors import LearnerError
from .base import AbstractDual, Weights


class RegularizedAscent(AbstractDual):
    r"""Gradient ascent on $\lambda g - \frac\theta2\lambda^2$, from $\lambda_1 = 0$:

    $\lambda_{t+1} = [(1-\theta\mu)\lambda_t + \mu\, g_t(x_t)]_+$

    If no numbers are given, the learner that holds it tunes it by its theorem. Since $\theta\mu \le 1$, $\lambda_t \le
    G/\theta$ for values up to G (in blocks of K rounds, $GK/\theta$): it cannot reach a larger multiplier, even if the
    problem needs one.

    >>> import jax.numpy as jnp
    >>> dual = RegularizedAscent(theta=1.0, mu=0.1)
    >>> _, state = dual.weigh(dual.init(2, float), jnp.array([5.0, -1.0]))
    >>> dual.forecast(state).constraint.tolist()
    [0.5, 0.0]
    """

    facts = Facts(cost="m numbers", guarantee="the paper's", cites=("mahdavi2012",))

    theta: Float[Array, ""] | None
    mu: Float[Array, ""] | None
    predictable: ClassVar[bool] = True

    def __init__(self, theta: Any = None, mu: Any = None):
        if (theta is None) != (mu is None):
            raise LearnerError("RegularizedAscent takes theta and mu together, or neither")
        self.theta = None if theta is None else parameter(theta, "theta", 0, float("inf"))
        self.mu = None if mu is None else parameter(mu, "mu", 0, float("inf"))
        if not (theta is None or mu is None or tree.is_traced(theta, mu) or 0 <= theta * mu <= 1 + 1e-6):
            raise LearnerError(f"theta * mu must lie in [0, 1], got theta={theta} and mu={mu}")

    @property
    def is_tuned(self):
        return self.theta is not None

    def init(self, constraints, dtype):
        return jnp.zeros(constraints, dtype)

    def forecast(self, state):
        return Weights(jnp.ones((), state.dtype), state)

    def weigh(self, state, values, norms=None):
        if self.theta is None or self.mu is None:
            raise LearnerError("RegularizedAscent needs theta and mu here; give RegularizedAscent(theta, mu)")
        keep = (1 - self.theta * self.mu).astype(state.dtype)
        return self.forecast(state), jnp.maximum(keep * state + self.mu.astype(state.dtype) * values, 0)
