"""What a dual method is: how much each constraint weighs."""

import abc
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float


class Weights(eqx.Module):
    """h_t = loss * f_t + <constraint, g_t>."""

    loss: Float[Array, ""]
    constraint: Float[Array, " m"]

    def total(self):
        """By how much f's and g's common constants grow in h."""
        return self.loss + self.constraint.sum()


class AbstractDual(eqx.Module):
    """A dual method: `forecast` before a round, `weigh` when its constraint values are seen, `settle` after."""

    predictable: ClassVar[bool]
    """Whether the weights of a round are known before it."""

    @abc.abstractmethod
    def init(self, constraints: int, dtype) -> Any:
        """The state before the first round."""

    @abc.abstractmethod
    def forecast(self, state) -> Weights:
        """The next round's weights; exact if `predictable`, else the best that is known."""

    @abc.abstractmethod
    def weigh(self, state, values: Float[Array, " m"], norms) -> tuple[Weights, Any]:
        """This round's weights, given g_t(x_t) and the norms of its gradients, and the state after."""

    def settle(self, state, moved) -> Any:
        """After the primal moved: `moved.linearised()` and `moved.exact()` are g_t at the next decision."""
        return state
