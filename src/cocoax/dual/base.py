"""What a dual method is: how much each constraint weighs."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from ..core.facts import Facts


class Weights(eqx.Module):
    r"""What a primal is given: $h_t = w f_t + \langle\lambda, g_t\rangle$, with w the weight of the loss.

    >>> import jax.numpy as jnp
    >>> weights = Weights(jnp.asarray(1.0), jnp.array([0.5, 2.0]))
    >>> float(weights.total())
    3.5
    """

    loss: Float[Array, ""]
    constraint: Float[Array, " m"]

    def total(self) -> Array:
        """By how much f's and g's common constants grow in h."""
        return self.loss + self.constraint.sum()


class AbstractDual(eqx.Module):
    r"""A dual method: `forecast` before a round, `weigh` when its constraint values are seen, `settle` after.

    Every primal goes with it, in `learners.PrimalDual`. `testing.check_dual` tells whether one of your own keeps all
    promises. For example, $\lambda_{t+1} = [\lambda_t + g_t(x_t)]_+$:

    >>> import jax.numpy as jnp
    >>> from cocoax.dual import AbstractDual, Weights
    >>> class Ascent(AbstractDual):
    ...     predictable = True
    ...
    ...     def init(self, constraints, dtype):
    ...         return jnp.zeros(constraints, dtype)
    ...
    ...     def forecast(self, state):
    ...         return Weights(jnp.ones((), state.dtype), state)
    ...
    ...     def weigh(self, state, values, norms):
    ...         return self.forecast(state), jnp.maximum(state + values, 0)
    >>> dual = Ascent()
    >>> _, state = dual.weigh(dual.init(2, float), jnp.array([0.5, -1.0]), None)
    >>> dual.forecast(state).constraint.tolist()
    [0.5, 0.0]
    """

    predictable: ClassVar[bool]
    """Whether the weights of a round are known before it."""

    settles: ClassVar[bool] = False
    """Whether the state moves in `settle`, by the next decision, and not in `weigh`."""

    facts: ClassVar[Facts]
    """What the catalogue says of it."""

    @property
    def is_tuned(self) -> bool:
        """Whether all its numbers are there; if not, the learner that holds it must know a theorem."""
        return True

    @abc.abstractmethod
    def init(self, constraints: int, dtype: Any) -> Any:
        """The state before the first round."""

    @abc.abstractmethod
    def forecast(self, state: Any) -> Weights:
        """The next round's weights; exact if `predictable`, else the best that is known."""

    @abc.abstractmethod
    def weigh(self, state: Any, values: Float[Array, " m"], norms: Callable[[], Any]) -> tuple[Weights, Any]:
        """(weights of this round, state after it), given `values` = g_t(x_t).

        `norms()` returns the l2 norms of the gradients of f_t and of each g_t at x_t. A rule that does not call it does
        not pay for them.
        """

    def settle(self, state: Any, moved: Any) -> Any:
        """The state after the primal moved.

        `moved.linearised()` and `moved.exact()` are g_t at the next decision.
        """
        return state
