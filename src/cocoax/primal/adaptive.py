"""Base of primals whose regret depends on the observed gradients, not on a bound on them."""

from typing import Any

from jaxtyping import Array, Float

from .. import theory
from ..domains.base import AbstractDomain
from ..problem.problem import Regularity
from .base import AbstractPrimal


class AbstractAdaptive(AbstractPrimal):
    r"""A primal with $\mathrm{Regret}_t \le C\sqrt{\sum_{s\le t}H_s^2}$ after every round $t \le T$, where $H_s$ is the
    norm of the s-th gradient, or the bound on it that was known before the round."""

    def growth(self, domain: AbstractDomain, regularity: Regularity, horizon: Float[Array, "..."]) -> Any:
        """C, for a plan of `horizon` rounds."""
        return theory.growth(self.constants(domain), regularity.lipschitz, regularity.smoothness, horizon=horizon)
