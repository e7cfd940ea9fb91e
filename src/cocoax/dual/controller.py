"""What proportional-integral controllers share: their parameters, and the units of their multipliers."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.parameters import discount, parameter, positive_parameter, rounds_remembered
from ..core.tree import ratio
from .base import AbstractDual, Weights


class _State(eqx.Module):
    control: Any
    loss_squares: Float[Array, ""]  # sum of |grad f|^2
    squares: Float[Array, " m"]  # sum of |grad g|^2


class AbstractController(AbstractDual):
    r"""Multipliers $\lambda$ from a proportional-integral controller of the constraint values g.

    The integral part is the multiplier, which rises by `gain` times g, in natural units. What the primal sees also has
    a proportional part: `proportional` times a running mean of g that forgets with `smoothing`. With `memory`, all sums
    forget: they lose 1/memory of themselves per round. A learner may give each multiplier's unit; alone, in `weigh`, it
    is the root mean square of |grad f| over that of |grad g_i|.
    """

    gain: Float[Array, ""]  # c
    proportional: Float[Array, ""]  # k
    smoothing: Float[Array, ""]
    memory: Float[Array, ""] | None
    predictable: ClassVar[bool] = False

    def __init__(self, gain: Any, proportional: Any, smoothing: Any, memory: Any):
        self.gain = positive_parameter(gain, "gain")
        self.proportional = parameter(proportional, "proportional", 0, float("inf"))
        self.smoothing = parameter(smoothing, "smoothing", 0, 0.999)
        self.memory = rounds_remembered(memory)

    @abc.abstractmethod
    def rest(self, constraints: int, dtype: Any) -> Any:
        """The controller's state before the first round."""

    @abc.abstractmethod
    def control(self, state: Any, values: Float[Array, " m"], unit: Float[Array, " m"]) -> tuple[Any, Any]:
        """(weights u, new state), given the values g and the unit of each multiplier."""

    @abc.abstractmethod
    def urgency(self, state: Any) -> Float[Array, " m"]:
        """How certain it is, from 0 to 1, that each constraint is being broken now.

        It is the running mean of g over its standard deviation, less 3, clipped to [0, 1].
        """

    def init(self, constraints, dtype: Any):
        return _State(self.rest(constraints, dtype), jnp.zeros((), dtype), jnp.zeros(constraints, dtype))

    def forecast(self, state: Any):
        return Weights(jnp.ones((), state.squares.dtype), state.control.integral)

    def weigh(self, state: Any, values, norms):
        keep = discount(self.memory, values.dtype)
        loss_norm, gradient_norms = norms()
        loss_squares = keep * state.loss_squares + loss_norm**2
        squares = keep * state.squares + gradient_norms**2
        unit = ratio(jnp.where(loss_squares > 0, jnp.sqrt(loss_squares), 1), jnp.sqrt(squares))
        weights, control = self.control(state.control, values, unit)
        return Weights(jnp.ones((), values.dtype), weights), _State(control, loss_squares, squares)

    def numbers(self, dtype: Any) -> tuple[Float[Array, ""], ...]:
        """(gain, proportional, smoothing), in this dtype."""
        return tuple(number.astype(dtype) for number in (self.gain, self.proportional, self.smoothing))
