"""Methods with all steps tuned by hand: the rivals of untuned learners in the arena.

Their numbers are in the units of a problem, so they need tuning. At another horizon than the one of the tuning, steps
change as the theorems say.
"""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Array, Float

from ... import dual, learners, primal
from ...dual.base import AbstractDual
from ...learners.base import AbstractLearner, positive_parameter
from ...learners.primal_dual import AbstractPrimalDual
from ...learners.projected import AbstractRetuned, with_steps
from ...primal.base import AbstractPrimal
from ...primal.steps import Constant
from .baselines import TunedAdaGrad, TunedEG

TUNED = ", tuned"  # ends the names of rivals in a study


class _Steps(AbstractPrimalDual):
    r"""Projected gradient steps of $\eta=$ `step`$/\sqrt T$."""

    primal: AbstractPrimal
    step: Float[Array, ""]
    dual_step: Float[Array, ""]

    def __init__(self, step, dual_step):
        self.primal = primal.OGD()
        self.step = positive_parameter(step, "step")
        self.dual_step = positive_parameter(dual_step, "dual_step")

    def bounds(self, problem):
        return with_steps(problem, lambda T: self.step / T**0.5)

    def rule(self, problem, horizon) -> AbstractDual:
        mu = self.dual_step / horizon.astype(float) ** 0.5
        return dual.RegularizedAscent(1 / (mu * (horizon + 2).astype(mu.dtype)), mu)


class TunedPDOGD(_Steps):
    r"""Projected primal-dual gradient with $\mu=$ `dual_step`$/\sqrt T$ and $\theta=\frac1{\mu(T+2)}$."""


class TunedAdaptivePDOGD(_Steps, AbstractRetuned):
    """The same for any horizon: in round t, tuned as for a game of t rounds."""


class TunedDPP(_Steps):
    r"""Drift plus penalty with $V=\sqrt T/$`dual_step`, and $\alpha$ such that f's gradient weighs $\eta$."""

    def bounds(self, problem):
        return with_steps(problem, lambda T: self.step * self.dual_step / T)

    def rule(self, problem, horizon):
        return dual.VirtualQueue(horizon.astype(float) ** 0.5 / self.dual_step)


class TunedTracked(_Steps):
    """The same as `TunedPDOGD` at one LMO a round: the target is followed, not projected."""

    def __init__(self, step, dual_step):
        super().__init__(step, dual_step)
        self.primal = primal.Tracked(Constant(), atoms=8)

    def bounds(self, problem):
        return with_steps(problem, lambda T: self.step / T**0.25)  # the primal divides by a fourth root more than OGD


class Units(NamedTuple):
    """The units of a problem, from its gradients at the start."""

    step: float  # R / |grad f|
    dual_step: float  # |grad f| / (R |grad g|^2)
    width: float = 1.0  # R


class Family(NamedTuple):
    """A method to tune: how to make a learner from numbers, and which numbers to try."""

    make: Callable[..., AbstractLearner]
    grid: Callable[[Units], dict[str, list[float]]]


def _times(unit, low, high):
    """Two values a decade."""
    return [float(unit * 10 ** (i / 2)) for i in range(2 * low, 2 * high + 1)]


def _both(units):
    return {"step": _times(units.step, -2, 3), "dual_step": _times(units.dual_step, -2, 3)}


def _adagrad(units):
    return {"step": _times(units.width, -4, 1), "dual_step": _times(units.dual_step, -2, 3)}


def _scales(units):
    return {"theta_scale": _times(1.0, -8, 2)}


def _algorithm_1(theta_scale):
    return learners.Blocks(primal.OCG(), theta_scale=theta_scale)


def _algorithm_2(theta_scale):
    return learners.PDMFW(perturbation="ball", theta_scale=theta_scale)


def _orgfw(loss_weight):
    return learners.PrimalDual(primal.ORGFW(), dual.VirtualQueue(loss_weight))


FAMILIES = {
    "PD-OGD (projected)": Family(TunedPDOGD, _both),
    "adaptive PD-OGD (projected)": Family(TunedAdaptivePDOGD, _both),
    "drift-plus-penalty (projected)": Family(TunedDPP, _both),
    "exponentiated gradient": Family(TunedEG, _both),
    "AdaGrad by coordinate (projected)": Family(TunedAdaGrad, _adagrad),
    "Tracked with ascent": Family(TunedTracked, _both),
    "Algorithm 1 + OCG": Family(_algorithm_1, _scales),
    "Algorithm 2 (ball)": Family(_algorithm_2, _scales),
    "ORGFW with a virtual queue": Family(_orgfw, lambda units: {"loss_weight": _times(1 / units.dual_step, -3, 4)}),
}
