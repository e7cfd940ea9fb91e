"""Drift plus penalty for other constraints, and by mirror descent. These need `domain.project`."""

from fractions import Fraction
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import check, tree
from ..core.facts import Facts
from ..domains.vectors.simplices import ProbabilitySimplex
from ..dual.floored_queue import FlooredQueue
from ..dual.virtual_queue import VirtualQueue
from ..errors import LearnerError
from ..learners.base import positive_parameter
from ..learners.drift import AbstractDriftPlusPenalty
from ..learners.primal_dual import AbstractPrimalDual
from ..learners.projected import lipschitz, with_steps
from ..primal.base import cost, step_size
from ..primal.ogd import OGD


class Liakopoulos(AbstractDriftPlusPenalty):
    r"""Cautious drift plus penalty (Liakopoulos, Destounis, Paschos, Spyropoulos, Mertikopoulos, 2019).

    For adversarial constraints, against the best decision that keeps every window of K rounds feasible:

    $x_{t+1} = \Pi_X\left(x_t - \frac{1}{2\alpha}(V\,\nabla f_t + Q_t\nabla g_t)\right),\qquad
    \alpha = \max\{T, V\sqrt T\}$

    with the queue of `learners.DPP`. For $V\in[K, T/K]$, regret $O(KT/V+\sqrt T)$ and violation $O(\sqrt{VT})$: stated
    from memory, rates and parameters alike.

    **Arguments:**

    - `loss_weight`: V; by default $\sqrt T$, or the point of $[K, T/K]$ nearest to it.
    - `window`: K, used for the default V only.

    >>> import cocoax as cx
    >>> learner = cx.baselines.Liakopoulos(window=5)
    >>> str(learner.facts.regret), str(learner.facts.violation)  # of T
    ('1/2', '3/4')
    """

    facts = Facts(
        cost="one projection",
        guarantee="in general K T / V + T^(1/2) and (V T)^(1/2), from memory",
        cites=("liakopoulos2019",),
        regret=Fraction(1, 2),
        violation=Fraction(3, 4),
    )

    primal: OGD
    loss_weight: Float[Array, ""] | None
    window: Int[Array, ""]

    def __init__(self, *, loss_weight: Any = None, window: Any = 1):
        self.primal = OGD()
        self.loss_weight = None if loss_weight is None else positive_parameter(loss_weight, "loss_weight")
        window = window if tree.is_traced(window) else check.whole(window, "window", LearnerError, low=1)
        self.window = jnp.asarray(window, jnp.int32)

    def tuning(self, horizon):
        weight = self.loss_weight
        if weight is None:
            window = self.window.astype(horizon.dtype)
            weight = jnp.maximum(jnp.minimum(horizon**0.5, horizon / window), window)
        return weight, jnp.maximum(horizon, weight * horizon**0.5)


class YuNeely(AbstractPrimalDual):
    r"""The low-complexity method (Yu, Neely, JMLR 2020), for one constraint function that is the same in all rounds.

    $x_{t+1} = \Pi_X\left(x_t - \frac{1}{2\alpha}(\nabla f_t + \gamma[Q_t+\gamma g(x_t)]\nabla g)\right),\qquad
    Q_{t+1} = \max\{-\gamma g(x_{t+1}),\ Q_t+\gamma g(x_{t+1})\}$

    with $\gamma = T^{1/4}$, $\alpha = \frac12(b^2+1)\sqrt T$ and b the Lipschitz constant of g as one map, here
    $b^2=mD^2$ (form confirmed in published code). Under Slater's condition regret $O(\sqrt T)$ and violation $O(1)$.

    In print g is known beforehand and $Q_1=\max\{0,-\gamma g(x_1)\}$. Here the queue begins when the first round is
    seen, which makes no difference: no decision but the first is taken before. For constraints that vary,
    `dual.FlooredQueue` says what happens, and nothing is proven.

    >>> import cocoax as cx
    >>> learner = cx.baselines.YuNeely()  # plays a Problem(regularity=cx.Regularity(lipschitz=...))
    >>> str(learner.facts.regret), str(learner.facts.violation)  # of T
    ('1/2', '0')
    """

    facts = Facts(
        cost="one projection",
        guarantee="one fixed constraint, Slater, in print",
        cites=("yu2020",),
        regret=Fraction(1, 2),
        violation=Fraction(0),
    )

    primal: OGD

    def __init__(self):
        self.primal = OGD()

    def rule(self, problem, horizon):
        return FlooredQueue(horizon.astype(float) ** 0.25)

    def bounds(self, problem):
        square = max(problem.constraints, 1) * lipschitz(problem, "YuNeely") ** 2
        return with_steps(problem, lambda T: 1 / ((square + 1) * T**0.5))


class _Mirror(OGD):
    """OGD's step in the geometry of the domain: entropic, with a little mixing, on a probability simplex."""

    def step(self, domain, state, revealed, next_bounds, *, key):
        if not isinstance(domain, ProbabilitySimplex):
            return super().step(domain, state, revealed, next_bounds, key=key)
        gradient, kind = revealed.gradient(revealed.played), tree.dtype(state.point)
        horizon = next_bounds.horizon.astype(kind)
        rate = step_size(domain, next_bounds, 0.5).astype(kind)
        total = domain.total.astype(kind)
        mixed = (1 - 1 / horizon) * state.point + total / (horizon * domain.n)
        logits = jnp.log(mixed) - rate * gradient
        shares = jnp.exp(logits - logits.max())
        state = self.init(domain, next_bounds, start=total * shares / shares.sum(), key=key)
        return state, cost(gradient_calls=1, finite=tree.all_finite(gradient))


class DPPMirror(AbstractPrimalDual):
    r"""Drift plus penalty by mirror descent (Wei, Yu, Neely, POMACS 2020), without constants of the problem.

    $x_{t+1} = \arg\min_{x\in X} \langle\sqrt T\,\nabla f_t + Q_t\nabla g_t,\ x\rangle + T\,B(x, y_t)$ with the queue of
    `learners.DPP`. On a `ProbabilitySimplex` B is the relative entropy and $y_t = (1-\frac1T)x_t+\frac1T u$ with u
    uniform, so that $x_{t+1}\propto y_t\exp(-(\sqrt T\,\nabla f_t+Q_t\nabla g_t)/T)$; on other domains
    $B=\frac12\|x-y_t\|^2$ and $y_t=x_t$, by projection.

    For i.i.d. constraints that have a Lagrange multiplier, Slater's condition or not, expected regret and violation
    $O(\sqrt T)$, with a factor log d on the simplex (confirmed in print; the mixing weight is from memory).

    >>> import cocoax as cx
    >>> learner = cx.baselines.DPPMirror()
    >>> str(learner.facts.regret), str(learner.facts.violation)  # of T
    ('1/2', '1/2')
    """

    facts = Facts(
        cost="one projection, none on a simplex",
        guarantee="i.i.d. constraints, in print",
        cites=("wei2020",),
        regret=Fraction(1, 2),
        violation=Fraction(1, 2),
    )

    primal: _Mirror

    def __init__(self):
        self.primal = _Mirror()

    def rule(self, problem, horizon):
        return VirtualQueue(horizon.astype(float) ** 0.5)

    def bounds(self, problem):
        return with_steps(problem, lambda T: 1 / T)
