"""Drift plus penalty: virtual queues that remember what was overspent. These need `domain.project`."""

import abc
from fractions import Fraction
from typing import Any

from jaxtyping import Array

from ..core.facts import Facts
from ..dual.virtual_queue import VirtualQueue
from ..primal.ogd import OGD
from .primal_dual import AbstractPrimalDual
from .projected import with_steps


class AbstractDriftPlusPenalty(AbstractPrimalDual):
    r"""$x_{t+1} = \Pi_X\left(x_t - \frac{1}{2\alpha}(V\,\nabla f_t + Q_t\nabla g_t)\right)$ with the virtual queue
    $Q_{t+1} = [Q_t + g_t(x_t) + \langle\nabla g_t(x_t), x_{t+1}-x_t\rangle]_+$. What differs is V and alpha.
    """

    @abc.abstractmethod
    def tuning(self, horizon: Array) -> tuple[Any, Any]:
        """(V, alpha) for a game of this many rounds."""

    def rule(self, problem, horizon):
        return VirtualQueue(self.tuning(horizon.astype(float))[0])

    def bounds(self, problem):
        return with_steps(problem, lambda T: 1 / (2 * self.tuning(T)[1]))


class DPP(AbstractDriftPlusPenalty):
    r"""Drift plus penalty (Yu, Neely, Wei, NeurIPS 2017), without constants of the problem.

    $x_{t+1} = \Pi_X\left(x_t - \frac{1}{2T}(\sqrt T\,\nabla f_t + Q_t\nabla g_t)\right)$, with the virtual queue
    $Q_{t+1} = [Q_t + g_t(x_t) + \langle\nabla g_t(x_t), x_{t+1}-x_t\rangle]_+$.

    Proven under Slater's condition: expected regret and violation $O(\sqrt T)$.

    >>> import cocoax as cx
    >>> learner = cx.learners.DPP()
    >>> learner.tuning(100.0)  # V and alpha for 100 rounds
    (10.0, 100.0)
    """

    facts = Facts(
        cost="one projection",
        guarantee="i.i.d. constraints, Slater, expected, proven",
        cites=("yu2017",),
        regret=Fraction(1, 2),
        violation=Fraction(1, 2),
    )

    primal: OGD

    def __init__(self):
        self.primal = OGD()

    def tuning(self, horizon):
        return horizon**0.5, horizon
