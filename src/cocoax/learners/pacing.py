"""Pacing as published: a PID controller (Zhang et al., 2016) and adaptive pacing (Balseiro, Gur, 2019)."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import tree
from ..core.facts import Facts
from ..core.tree import ratio
from .base import parameter, positive_parameter
from .pricing import AbstractPricing, prediction


class _Control(eqx.Module):
    prices: Float[Array, " m"]
    total: Float[Array, " m"]  # of the errors so far
    last: Float[Array, " m"]  # the last error
    size: Float[Array, " m"]  # mean |g| so far
    rounds: Int[Array, ""]


class PIDPacing(AbstractPricing):
    r"""$\lambda_{t+1} = \lambda_1\exp(k_Pe_t + k_I\sum_{s\le t}e_s + k_D(e_t-e_{t-1}))$, for each constraint.

    The error $e_t = g_t(x_t)/\bar g_t$ is what was overspent, in units of the mean $|g|$ so far.

    **Arguments:**

    - `first`: $\lambda_1$. It has a unit, of loss for each unit of the constraint.
    - `proportional`, `integral`, `derivative`: the gains. Without the last, it is PI control.
    - `predict`: as in `AutoPrice`.

    All four numbers must be tuned. A baseline.

    >>> import cocoax as cx
    >>> learner = cx.learners.PIDPacing(first=0.5, derivative=0.02)
    """

    facts = Facts(cost="1 LMO, 1 gradient", guarantee="a baseline with four numbers to tune", cites=("zhang2016",))

    first: Float[Array, ""]
    proportional: Float[Array, ""]
    integral_gain: Float[Array, ""]
    derivative: Float[Array, ""]
    predict: Callable | None

    def __init__(
        self,
        first: Any,
        *,
        proportional: Any = 0.1,
        integral: Any = 0.01,
        derivative: Any = 0.0,
        predict: Callable | None = None,
    ):
        self.first = positive_parameter(first, "first")
        gains = (("proportional", proportional), ("integral", integral), ("derivative", derivative))
        self.proportional, self.integral_gain, self.derivative = (
            parameter(value, name, 0, jnp.inf) for name, value in gains
        )
        self.predict = prediction(predict)

    def begin(self, problem, start, *, horizon, key):
        zeros = jnp.zeros(problem.constraints, tree.dtype(start))
        return _Control(zeros + self.first.astype(zeros.dtype), zeros, zeros, zeros, jnp.zeros((), jnp.int32))

    def multiplier(self, prices):
        return prices.prices

    def learn(self, problem, state, expected, played, loss, values):
        old, kind = state.prices, values.dtype
        rounds = old.rounds + 1
        size = old.size + (jnp.abs(values) - old.size) / rounds.astype(kind)
        error = ratio(values, size)
        total = old.total + error
        control = self.proportional.astype(kind) * error + self.integral_gain.astype(kind) * total
        control = control + self.derivative.astype(kind) * (error - old.last)
        prices = self.first.astype(kind) * jnp.exp(jnp.clip(control, -50, 50))
        return _Control(prices, total, error, size, rounds)


class AdaptivePacing(AbstractPricing):
    r"""$\lambda_{t+1} = \min(\max(\lambda_t + \epsilon g_t(x_t), 0), \bar\lambda)$, from $\lambda_1$.

    In the paper, the loss of buying is cost less value, so that its bids are value over $1+\lambda$. When the budget
    is spent, it stops: wrap it in `Budgeted`.

    **Arguments:**

    - `step`: $\epsilon$, in the paper of the order $T^{-1/2}$.
    - `first`, `most`: $\lambda_1$ and $\bar\lambda$.
    - `predict`: as in `AutoPrice`.

    >>> import cocoax as cx
    >>> learner = cx.learners.AdaptivePacing(step=10_000**-0.5, most=2.0)
    >>> round(float(learner.step), 4)
    0.01
    """

    facts = Facts(
        cost="1 LMO, 1 gradient",
        guarantee="against the best policy, i.i.d. second-price auctions, in print",
        cites=("balseiro2019",),
    )

    step: Float[Array, ""]
    first: Float[Array, ""]
    most: Float[Array, ""]
    predict: Callable | None

    def __init__(self, step: Any, *, first: Any = 0.0, most: Any = jnp.inf, predict: Callable | None = None):
        self.step, self.first = positive_parameter(step, "step"), parameter(first, "first", 0, jnp.inf)
        self.most, self.predict = parameter(most, "most", 0, jnp.inf), prediction(predict)

    def begin(self, problem, start, *, horizon, key):
        first = jnp.minimum(self.first, self.most).astype(tree.dtype(start))
        return jnp.broadcast_to(first, (problem.constraints,))

    def multiplier(self, prices):
        return prices

    def learn(self, problem, state, expected, played, loss, values):
        moved = state.prices + self.step.astype(values.dtype) * values
        return jnp.clip(moved, 0, self.most.astype(values.dtype))
