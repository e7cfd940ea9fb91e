"""Lyapunov learners: an adaptive primal, and weights from an exponential potential of the violation so far."""

from fractions import Fraction
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import theory
from ..core import check
from ..core.facts import Facts
from ..core.parameters import argument
from ..dual.drift_potential import DriftPotential
from ..dual.exponential_potential import ExponentialPotential
from ..dual.hard import Hard
from ..errors import LearnerError
from ..primal.ada_ofw import AdaOFW
from ..primal.adaptive import AbstractAdaptive
from .base import positive_parameter
from .primal_dual import AbstractPrimalDual, bounds_by_weights


def _adaptive(base, who, *, surely):
    """The base, checked; bounds that hold surely need one that draws no coins."""
    base = AdaOFW() if base is None else base
    needed = f"{who} needs a primal whose regret follows the gradients: primal.AdaOFW or primal.AdaGrad"
    check.instance(base, AbstractAdaptive, LearnerError, needed)
    if surely and not base.deterministic:
        raise LearnerError(
            f"{who} weighs with the current round, which only a deterministic primal allows; {type(base).__name__} "
            "draws coins, so give AdaOFW or AdaGrad, or choose LyapStoch"
        )
    return base


class _Lyapunov(AbstractPrimalDual):
    base: AbstractAdaptive

    @property
    def primal(self):
        return self.base

    def _regularity(self, problem, *needs):
        needs = tuple(dict.fromkeys(("lipschitz", *needs, *self.primal.needs)))
        return problem.constants(self.primal.norm, needs, f"{type(self).__name__} with {type(self.primal).__name__}")

    def bounds(self, problem):
        return bounds_by_weights(self._regularity(problem))

    def _growth(self, problem, horizon):
        """C, with which the regret after t rounds is at most C sqrt(sum of H_s^2)."""
        return self.primal.growth(problem.domain, self._regularity(problem), horizon.astype(float))

    def _drift(self, problem, horizon, constraints, factor: Any = 1.0):
        regularity, domain = self._regularity(problem, "constraint_bound"), problem.domain
        drift = theory.lyap_drift(
            horizon.astype(float),
            factor * self._growth(problem, horizon),
            diameter=domain.diameter(2),
            lipschitz=regularity.lipschitz,
            constraint_bound=regularity.constraint_bound,
            constraints=constraints,
            log=jnp.log,
            least=jnp.minimum,
        )
        return DriftPotential(drift.rate, drift.drain, drift.margin, _loss_weight(problem, regularity))


def _loss_weight(problem, regularity):
    """1 / RD, so that no round's loss differs by more than 1."""
    return 1 / (problem.domain.diameter(2) * regularity.lipschitz)


class LyapHard(_Lyapunov):
    r"""LYAP-HARD: hard constraints, any adversary, one LMO a round with `AdaOFW` (Sinha, Vaze, 2024).

    The base sees $h_t = \frac{f_t}{RD} + \lambda e^{\lambda Q_t}g_t^+$ with $g_t^+ = [\max_i g_t^i]_+$,
    $Q_t = \sum_{s\le t}g_s^+(x_s)$ and $\lambda = \frac1{2cRD\sqrt T}$, where the base's regret after t rounds is at
    most $cR\sqrt{\sum_{s\le t}\|\nabla_s\|^2}$: $c = 3T^{1/4}$ for `AdaOFW`, $\sqrt2$ for `AdaGrad`, which projects.

    The potential is theirs, rates without projections are those of Wang, Wan, Zhang (2025); proof and constants are
    derived. Against every x that meets all constraints in every round, surely: Regret $\le RD(c\sqrt T + \frac12)$,
    hard violation $\le 2cRD\sqrt T\ln(2 + 2c\sqrt T + 2T)$ (`theory.lyap_hard`). Where no such x exists nothing is
    promised; for constraints that hold only on average see `LyapStoch`.

    >>> import cocoax as cx
    >>> learner = cx.learners.LyapHard(cx.primal.AdaGrad())
    """

    facts = Facts(
        cost="its primal's: 1 LMO",
        guarantee="log T in the latter, proven",
        cites=("sinha2024",),
        regret=Fraction(3, 4),
        violation=Fraction(3, 4),
        hard=True,
    )

    def __init__(self, base=None):
        self.base = _adaptive(base, "LyapHard", surely=True)

    def rule(self, problem, horizon):
        regularity = self._regularity(problem)
        growth = self._growth(problem, horizon)
        rate = theory.lyap_hard_rate(horizon.astype(float), growth, lipschitz=regularity.lipschitz)
        return Hard(ExponentialPotential(rate, _loss_weight(problem, regularity)))


class LyapStoch(_Lyapunov):
    r"""LYAP-STOCH: stochastic constraints, any losses, no Slater point and no strong duality; one LMO a round
    with `AdaOFW`.

    The base sees $h_t = \frac{f_t}{RD} + \langle w_t, g_t\rangle$ with the weights of `dual.DriftPotential`, one queue
    for each constraint, known before the round; `theory.lyap_drift` gives its numbers. With C of the base
    ($3RT^{1/4}$ for `AdaOFW`, $\sqrt2R$ for `AdaGrad`, $2\sqrt{2\kappa_d}R + 2R^2L/D$ for `AdaMFW`, whose cost is
    $\lceil\sqrt T\rceil$), for every x and every t, surely for a deterministic base and in the mean over its coins
    otherwise:

    $\frac{\mathrm{Reg}_t(x)}{RD} + \sum_i\Phi(Q_{t+1}^i) \le \frac{4C}R\sqrt t
    + \sum_{s\le t}\langle w_s, g_s(x)\rangle + 0.864\,\ell^2\frac tT,\qquad \Phi(q) = e^{\lambda q} - \lambda q - 1$

    Derived. Hence in expectation, where $E\,g_t(x^\star)\le0$: Regret $=O(C\sqrt T)$, each violation
    $=O(C\sqrt{T\log T})$ (`theory.lyap_stoch`): exponents 3/4 with one LMO a round, 1/2 with $\sqrt T$ of them. A
    `scale` below 1 multiplies C in all weights; it is for practice, and carries no proof.

    >>> import cocoax as cx
    >>> learner = cx.learners.LyapStoch(cx.primal.AdaGrad(), scale=0.1)
    """

    facts = Facts(
        cost="its primal's: 1 LMO",
        guarantee="sqrt(log T) in the latter, expected, no Slater, proven",
        cites=("cocoax",),
        regret=Fraction(3, 4),
        violation=Fraction(3, 4),
    )

    growth_scale: Float[Array, ""] = argument("scale")

    def __init__(self, base=None, *, scale: Any = 1.0):
        self.base = _adaptive(base, "LyapStoch", surely=False)
        self.growth_scale = positive_parameter(scale, "scale")

    def rule(self, problem, horizon):
        return self._drift(problem, horizon, max(problem.constraints, 1), self.growth_scale)


class LyapPred(_Lyapunov):
    r"""LYAP-PRED: `LyapStoch` on the hard constraint $[\max_i g_t^i]_+ \le 0$; hard constraints, any adversary.

    Against every x that meets all constraints in every round, surely, derived: Regret $=O(C\sqrt T)$, hard violation
    $=O(C\sqrt{T\log T})$ (`theory.lyap_pred`), a $\sqrt{\log T}$ less than `LyapHard` with larger constants: prefer
    that one in practice. The positive part is not smooth, so `AdaMFW` is no base for it.

    >>> import cocoax as cx
    >>> learner = cx.learners.LyapPred(cx.primal.AdaGrad())
    """

    facts = Facts(
        cost="its primal's: 1 LMO",
        guarantee="sqrt(log T) in the latter, proven",
        cites=("cocoax",),
        regret=Fraction(3, 4),
        violation=Fraction(3, 4),
        hard=True,
    )

    def __init__(self, base=None):
        self.base = _adaptive(base, "LyapPred", surely=True)

    def rule(self, problem, horizon):
        return Hard(self._drift(problem, horizon, 1))
