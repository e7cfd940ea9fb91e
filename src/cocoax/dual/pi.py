"""Proportional-integral control of the multipliers, without units and constants."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.facts import Facts
from ..core.parameters import discount
from ..core.tree import ratio
from .controller import AbstractController


class Control(eqx.Module):
    """State of the controller. `rounds`, `noise` and `squares` are over the rounds in which g was at work (`PI`)."""

    owed: Float[Array, " m"]  # the sum of g
    played: Float[Array, ""]  # rounds

    integral: Float[Array, " m"]  # lambda
    smoothed: Float[Array, " m"]  # e, a running mean of g and what is repaid
    rounds: Float[Array, " m"]
    noise: Float[Array, " m"]  # sum of (g - e)^2, with e of the round before
    squares: Float[Array, " m"]  # sum of g^2
    largest: Float[Array, " m"]  # g^2


class PI(AbstractController):
    r"""Multipliers that follow the sum of g, and its present value, each in its natural unit.

    $\mu_i = c\,\frac{\ell_i+\min(\lambda_i,10\ell_i)}{\sqrt{\sum^{*} g_i^2 + \max g_i^2}},\qquad
    \lambda_i \leftarrow [\lambda_i + \mu_i\tilde g_i]_+,\qquad u_i = [\lambda_i + k\mu_ie_i]_+$

    where u is what the primal sees, e a running mean of $\tilde g$, $\ell_i$ the root mean square of $|\nabla f|$ over
    that of $|\nabla g_i|$, and $\sum^*$ goes over the rounds with $\lambda_i>0$ or $g_i>0$. What was overspent beyond
    noise is paid back over as many rounds as were played:
    $\tilde g_i = g_i + \frac1t[\sum g_i - 0.7\sqrt{\sum^*(g_i-e_i)^2}]_+$. With `memory` all sums forget, 1/memory of
    themselves a round. Multipliers do not depend on units; no bound is proven.

    >>> import cocoax as cx
    >>> learner = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.PI())
    """

    facts = Facts(cost="8 m + 2 numbers, gradient norms", guarantee="no constants, no units", cites=("cocoax",))

    def __init__(self, gain: Any = 0.3, proportional: Any = 20.0, smoothing: Any = 0.7, memory: Any = None):
        super().__init__(gain, proportional, smoothing, memory)

    def rest(self, constraints: Any, dtype: Any) -> Control:
        zeros = jnp.zeros(constraints, dtype)
        return Control(zeros, jnp.zeros((), dtype), *[zeros] * 6)

    def control(self, state: Control, values: Any, unit: Any) -> tuple[Float[Array, " m"], Control]:
        """(u, new state) by the formulas above, given the values g and the units l."""
        keep = discount(self.memory, values.dtype)
        gain, proportional, smoothing = self.numbers(values.dtype)
        at_work = (state.integral > 0) | (values > 0)
        squares = keep * state.squares + jnp.where(at_work, values**2, 0)
        largest = jnp.maximum(keep * state.largest, values**2)
        rate = ratio(gain * (unit + jnp.minimum(state.integral, 10 * unit)), jnp.sqrt(squares + largest))
        owed, played = keep * state.owed + values, keep * state.played + 1
        noise = keep * state.noise + jnp.where(at_work, (values - state.smoothed) ** 2, 0)
        repaying = values + jnp.maximum(owed - 0.7 * jnp.sqrt(noise), 0) / played
        smoothed = smoothing * state.smoothed + (1 - smoothing) * repaying
        integral = jnp.maximum(state.integral + rate * repaying, 0)
        weights = jnp.maximum(integral + proportional * rate * smoothed, 0)
        rounds = keep * state.rounds + at_work.astype(values.dtype)
        return weights, Control(owed, played, integral, smoothed, rounds, noise, squares, largest)

    def urgency(self, state: Control) -> Float[Array, " m"]:
        variance = ratio(state.noise + state.largest, state.rounds)
        of_mean = variance * ((1 - self.smoothing) / (1 + self.smoothing)).astype(variance.dtype)
        return jnp.clip(ratio(state.smoothed, jnp.sqrt(jnp.maximum(of_mean, 0))) - 3, 0, 1)
