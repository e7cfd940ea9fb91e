"""The tuned rivals in the arena: methods whose steps `benchmarks.tune` chose on other seeds.

Their parameters have units of the problem, which is why they need tuning. At another horizon than that of the tuning,
steps change as the theorems say.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ... import dual, learners, primal
from ...core import tree
from ...dual.base import AbstractDual
from ...learners.base import AbstractLearner, positive_parameter
from ...learners.primal_dual import AbstractPrimalDual
from ...learners.projected import AbstractRetuned, with_steps
from ...primal.base import AbstractPrimal, cost, step_size
from ...primal.steps import Constant

TUNED = ", tuned"  # ends the names of rivals in a study
MOST = 3  # rivals on each problem of an arena: the families that did best when they were tuned


class _Entropic(primal.ExponentiatedGradient):
    """Exponentiated gradient with the step sizes of `OGD`."""

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient = revealed.gradient(revealed.played)
        hedge = state.hedge.stepped(gradient, step_size(domain, next_bounds, 0.5).astype(gradient.dtype))
        spent = cost(gradient_calls=1, finite=jnp.isfinite(gradient).all())
        return eqx.tree_at(lambda state: state.hedge, state, hedge), spent


class _ByCoordinate(AbstractPrimal):
    r"""AdaGrad: $x_{t+1} = \Pi_X(x_t - \eta\nabla_t/\sqrt{\sum_{s\le t}\nabla_s^2})$, with the $\eta$ of `OGD`."""

    deterministic: ClassVar[bool] = True

    def init(self, domain, bounds, *, start, key, warm=None):
        return start, tree.zeros_like(start)

    def decision(self, state):
        return state[0]

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient, rate = revealed.gradient(revealed.played), step_size(domain, next_bounds, 0.5)
        squares = jax.tree.map(lambda total, entry: total + entry**2, state[1], gradient)

        def moved(x, entry, total):  # where the sum is 0, the entry is too
            return x - rate.astype(x.dtype) * entry / jnp.sqrt(jnp.where(total > 0, total, 1))

        point = domain.project(jax.tree.map(moved, revealed.played, gradient, squares))
        return (point, squares), cost(gradient_calls=1, finite=tree.all_finite(gradient))


class _Steps(AbstractPrimalDual):
    r"""Primal-dual methods with two tuned numbers; projected gradient steps of $\eta=$ `step`$/\sqrt T$ by default."""

    primal: AbstractPrimal
    step: Float[Array, ""]
    dual_step: Float[Array, ""]

    def __init__(self, step, dual_step):
        self.primal = self.method()
        self.step = positive_parameter(step, "step")
        self.dual_step = positive_parameter(dual_step, "dual_step")

    def method(self) -> AbstractPrimal:
        return primal.OGD()

    def bounds(self, problem):
        return with_steps(problem, lambda T: self.step / T**0.5)

    def rule(self, problem, horizon) -> AbstractDual:
        mu = self.dual_step / horizon.astype(float) ** 0.5
        return dual.RegularizedAscent(1 / (mu * (horizon + 2).astype(mu.dtype)), mu)


class TunedPDOGD(_Steps):
    r"""Projected primal-dual gradient with $\mu=$ `dual_step`$/\sqrt T$ and $\theta=\frac1{\mu(T+2)}$."""


class TunedAdaptivePDOGD(_Steps, AbstractRetuned):
    """`TunedPDOGD` for any horizon: in round t, it is tuned as for a game of t rounds."""


class TunedDPP(_Steps):
    r"""Drift plus penalty with $V=\sqrt T/$`dual_step`, and $\alpha$ such that f's gradient weighs $\eta$."""

    def bounds(self, problem):
        return with_steps(problem, lambda T: self.step * self.dual_step / T)

    def rule(self, problem, horizon):
        return dual.VirtualQueue(horizon.astype(float) ** 0.5 / self.dual_step)


class TunedTracked(_Steps):
    """`TunedPDOGD` with one LMO per round: decisions follow the gradient steps, without projections."""

    def method(self):
        return primal.Tracked(Constant(), atoms=8)

    def bounds(self, problem):
        return with_steps(problem, lambda T: self.step / T**0.25)  # the primal divides by a fourth root more than OGD


class _Ascent(_Steps):
    r"""`_Steps` with $\lambda_{t+1} = [\lambda_t + \mu g_t(x_t)]_+$, $\mu=$ `dual_step`$/\sqrt T$, as its dual."""

    def rule(self, problem, horizon):
        return dual.RegularizedAscent(0.0, self.dual_step / horizon.astype(float) ** 0.5)


class TunedEG(_Ascent):
    r"""Exponentiated gradient on a simplex: $x_{t+1}\propto x_t\exp(-\eta\nabla)$ with $\eta=$ `step`$/\sqrt T$."""

    def method(self):
        return _Entropic()  # pyright: ignore[reportCallIssue]


class TunedAdaGrad(_Ascent):
    r"""Projected AdaGrad, by coordinate; $\eta=$ `step`, the same for every horizon."""

    def method(self):
        return _ByCoordinate()

    def bounds(self, problem):
        return with_steps(problem, lambda T: self.step)


def _algorithm_1(theta_scale):
    return learners.Blocks(primal.OCG(), theta_scale=theta_scale)


def _algorithm_2(theta_scale):
    return learners.PDMFW(perturbation="ball", theta_scale=theta_scale)


def _orgfw(loss_weight):
    return learners.PrimalDual(primal.ORGFW(), dual.VirtualQueue(loss_weight))


FAMILIES: dict[str, Callable[..., AbstractLearner]] = {
    "PD-OGD (projected)": TunedPDOGD,
    "adaptive PD-OGD (projected)": TunedAdaptivePDOGD,
    "drift-plus-penalty (projected)": TunedDPP,
    "exponentiated gradient": TunedEG,
    "AdaGrad by coordinate (projected)": TunedAdaGrad,
    "Tracked with ascent": TunedTracked,
    "Algorithm 1 + OCG": _algorithm_1,
    "Algorithm 2 (ball)": _algorithm_2,
    "ORGFW with a virtual queue": _orgfw,
}
"""How to make a learner from its numbers; `benchmarks.tuning` says which numbers to try."""


def tuned_rivals(
    found: Mapping[str, Mapping], names: Iterable[str], families: Mapping[str, Callable], most: int | None = MOST
) -> dict[str, dict[str, AbstractLearner]]:
    """{family: {problem: learner}}: on each problem, the `most` families that scored best in tuning.

    `found` has the tuning's result by problem and family: `score` and `numbers`. `families` make a learner from
    numbers.
    """
    by_family: dict[str, dict[str, AbstractLearner]] = {f"{family}{TUNED}": {} for family in families}
    for name in names:
        results = found.get(name, {})
        for family in sorted(results, key=lambda family: results[family]["score"])[:most]:
            by_family[f"{family}{TUNED}"][name] = families[family](**results[family]["numbers"])
    return {family: by_problem for family, by_problem in by_family.items() if by_problem}
