"""Many hard constraints as one: the positive part of the worst."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check
from ..core.facts import Facts
from ..errors import LearnerError
from .base import AbstractDual, Weights


class _State(eqx.Module):
    rule: Any
    shares: Float[Array, " m"]  # of each constraint in the worst of the last round


class Hard(AbstractDual):
    r"""Plays `rule` on the one constraint $[\max_i g_t^i]_+ \le 0$, so that negative values do not offset violations.

    The weight goes to the worst constraint, if it is violated, in equal parts if several are: a subgradient of that
    function. Only the round itself tells which constraint that is, so the primal must be deterministic.

    >>> from cocoax import dual
    >>> rule = dual.Hard(dual.Penalty(0.5))
    """

    facts = Facts(
        cost="its rule's for one constraint", guarantee="the worst of several hard constraints", cites=("cocoax",)
    )

    rule: AbstractDual
    predictable: ClassVar[bool] = False

    def __init__(self, rule: Any):
        self.rule = check.instance(rule, AbstractDual, LearnerError, "Hard needs one of cocoax.dual")
        if rule.settles:
            raise LearnerError(f"{type(rule).__name__} looks at the next decision; give Hard a rule that does not")

    @property
    def is_tuned(self):
        return self.rule.is_tuned

    def init(self, constraints, dtype):
        return _State(self.rule.init(min(constraints, 1), dtype), jnp.full(constraints, 1 / max(constraints, 1), dtype))

    def forecast(self, state):
        weights = self.rule.forecast(state.rule)
        return Weights(weights.loss, weights.constraint * state.shares)

    def weigh(self, state, values, norms=None):
        if values.size == 0:
            return self.forecast(state), state
        worst = values.max()
        weights, rule = self.rule.weigh(state.rule, jnp.maximum(worst, 0)[None], norms)
        is_worst = (values == worst).astype(values.dtype)
        shares = is_worst / jnp.sum(is_worst)
        violated = jnp.where(worst > 0, weights.constraint, 0)
        return Weights(weights.loss, violated * shares), _State(rule, shares)
