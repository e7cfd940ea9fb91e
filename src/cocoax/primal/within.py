"""A primal on a smaller copy of the set; with `Mixture`, it learns the radius."""

from typing import Any, ClassVar

from jaxtyping import Array, Float

from ..core import check, tree
from ..core.facts import Facts
from ..core.parameters import parameter
from ..domains.composed.transforms import Scale
from ..errors import LearnerError
from .base import AbstractPrimal


class Within(AbstractPrimal):
    r"""Plays `primal` on $cX\subseteq X$, for sets X that contain the origin: balls of c times the radius.

    The best radius of a nuclear-norm or an l1 ball is usually unknown. Give the largest to the problem, and several c
    to `Mixture`: its regret is that of the best c against the best point of $cX$, plus what AdaHedge adds.

    >>> import cocoax as cx
    >>> radii = cx.primal.Mixture([cx.primal.Within(cx.primal.Tracked(), c) for c in (1.0, 0.3, 0.1)])
    >>> learner = cx.learners.PrimalDual(radii, cx.dual.RobustPI())
    """

    deterministic: ClassVar[bool] = True
    facts = Facts(cost="its primal's", guarantee="its primal's, against points of the smaller set", cites=("cocoax",))

    primal: AbstractPrimal
    factor: Float[Array, ""]

    def __init__(self, primal: Any, factor: Any):
        self.primal = check.instance(primal, AbstractPrimal, LearnerError, "Within needs one of cocoax.primal first")
        if not primal.deterministic:
            raise LearnerError(f"Within needs a primal that does not draw coins, got {type(primal).__name__}")
        self.factor = parameter(factor, "factor", 1e-9, 1)

    @property
    def needs(self):
        return self.primal.needs

    def init(self, domain, bounds, *, start, key, warm=None):
        origin = domain.contains(tree.zeros_like(start))
        if not tree.is_traced(origin) and not bool(origin):
            raise LearnerError(f"Within needs a set that holds the origin, got {type(domain).__name__}")
        return self.primal.init(self._smaller(domain), bounds, start=tree.scale(self.factor, start), key=key, warm=warm)

    def decision(self, state):
        return self.primal.decision(state)

    def step(self, domain, state, revealed, next_bounds, *, key):
        return self.primal.step(self._smaller(domain), state, revealed, next_bounds, key=key)

    def restart(self, domain, state, bounds, *, key):
        return self.primal.restart(self._smaller(domain), state, bounds, key=key)

    def _smaller(self, domain) -> Scale:
        """The domain cX."""
        return Scale(domain, self.factor)
