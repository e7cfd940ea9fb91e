"""Online Newton step (Hazan, Agarwal, Kale, 2007), for losses like logarithms, without their constants."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..core import check, tree
from ..core.facts import Facts
from ..core.parameters import positive_parameter
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from ..errors import LearnerError
from .base import AbstractPrimal, cost

_LARGEST = 2000  # dimension
_ACCURACY = 0.01  # what all projections together may add to the bound, as a multiple of sum 1/t^2


class _State(eqx.Module):
    point: Point  # x_t
    metric: Float[Array, "d d"]  # A_t
    rate: Float[Array, ""]  # gamma_t; infinite before the first round
    rounds: Float[Array, ""]
    errors: Float[Array, ""]  # sum of gamma_t delta_t


class OnlineNewton(AbstractPrimal):
    r"""One gradient and one projection in a metric per round, exp-concave losses, no bound on gradients and no horizon.

    $x_{t+1}=\Pi_X^{A_t}\left(x_t-\frac1{\gamma_t}A_t^{-1}\nabla_t\right),\qquad
    A_t=\varepsilon I+\sum_{s\le t}\nabla_s\nabla_s^\top$.

    $\gamma_t=\frac12\min\left(\alpha,\frac1{M_t}\right)$, where $M_t$ is the largest
    $|\langle\nabla_s,x_s-z\rangle|$ of rounds $s\le t$ and points z of X, which two LMOs tell, and
    $\varepsilon=\rho(\gamma_1R)^{-2}$: neither a bound on gradients nor a horizon is needed. Gradients
    are freed of what does not matter (`domain.tangent`).

    **Arguments:**

    - `alpha`: the losses are $\alpha$-exp-concave: $e^{-\alpha f}$ is concave. It is 1 for
      $-\log\langle r,x\rangle$, and $\frac1{2B^2}$ for squared errors
      $(\langle a,x\rangle-b)^2$ where $|\langle a,x\rangle-b|\le B$.
    - `damping`: $\rho$. A larger one makes the first steps shorter.
    - `most`: how many steps a projection may take.

    The projection in the metric $A_t$ is made by accelerated steps, each with `domain.project` and an LMO, until its
    duality gap $\delta_t$ is below $\frac{0.01}{\gamma_tt^2}$; so X needs `project` and at most 2,000 dimensions.

    Proven, for $\alpha$-exp-concave losses, after every round: Regret $\le\frac\rho{2\gamma_1}+
    \frac1{2\gamma_t}\ln\frac{\det A_t}{\varepsilon^d}+\sum_s\gamma_s\delta_s=O\left((\frac1\alpha+M)\,d\ln t\right)$
    (`theory.regret.online_newton`). With constraints, whose multipliers change, nothing is proven.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, growth: -jnp.log(jnp.vdot(growth, x)))
    >>> learner = cx.learners.PrimalDual(cx.primal.OnlineNewton(), cx.dual.RobustPI())
    >>> growth = jnp.tile(jnp.array([1.5, 1.0, 0.7]), (100, 1))
    >>> bool(cx.play(problem, learner, growth, key=jax.random.key(0)).decision[0] > 0.9)
    True
    """

    deterministic: ClassVar[bool] = True
    facts = Facts(
        cost="3 LMOs, and 1 with a projection for each inner step; d^3",
        guarantee="d log T for exp-concave losses, after every round, proven",
        cites=("hazan2007",),
    )

    alpha_concave: Float[Array, ""]
    damping: Float[Array, ""]
    most: int = eqx.field(static=True)

    def __init__(self, alpha: Any = 1.0, *, damping: Any = 1.0, most: Any = 500):
        self.alpha_concave = positive_parameter(alpha, "alpha")
        self.damping = positive_parameter(damping, "damping")
        self.most = check.whole(most, "most", LearnerError, low=1)

    def init(self, domain, bounds, *, start, key, warm=None):
        d = tree.size(start)
        if d > _LARGEST:
            raise LearnerError(f"OnlineNewton keeps a d x d matrix; d must be at most {_LARGEST}, got {d}")
        dtype = tree.dtype(start)
        zero = jnp.zeros((), dtype)
        return _State(start, jnp.zeros((d, d), dtype), jnp.full((), jnp.inf, dtype), zero, zero)

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        raw = domain.tangent(revealed.gradient(revealed.played))
        gradient, _ = ravel_pytree(raw)
        played, unravel = ravel_pytree(revealed.played)
        first = state.rounds == 0
        rate = jnp.minimum(state.rate, 0.5 * self._rate_limit(domain, raw, revealed.played))
        width = jnp.asarray(domain.diameter(2), rate.dtype)
        epsilon = self.damping.astype(rate.dtype) / (rate * jnp.where(width > 0, width, 1)) ** 2
        begun = epsilon * jnp.eye(gradient.size, dtype=rate.dtype)
        metric = jnp.where(first, begun, state.metric) + jnp.outer(gradient, gradient)
        away = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(metric), gradient) / rate
        rounds = state.rounds + 1
        accuracy = _ACCURACY / (rate * rounds**2)
        point, gap, lmos = _metric_projection(domain, metric, played - away, played, unravel, accuracy, self.most)
        finite = jnp.isfinite(gradient).all()
        spent = cost(lmo_calls=2 + lmos, gradient_calls=1, finite=finite)
        return _State(unravel(point), metric, rate, rounds, state.errors + rate * gap), spent

    def _rate_limit(self, domain, gradient, played):
        r"""$\min(\alpha, 1/\max_z|\langle\nabla,x-z\rangle|)$ over z in X: twice the largest $\gamma$ that this round
        allows.
        """
        lowest, highest = (domain.lmo(direction).dense() for direction in (gradient, tree.scale(-1.0, gradient)))
        far = jnp.stack([jnp.abs(tree.dot(gradient, tree.sub(played, end))) for end in (lowest, highest)]).max()
        return jnp.minimum(
            self.alpha_concave.astype(far.dtype), jnp.where(far > 0, ratio(jnp.ones_like(far), far), jnp.inf)
        )


def _metric_projection(domain: AbstractDomain, metric, goal, start, unravel, accuracy, most):
    """(nearest point of X to `goal` in the metric A, its gap, LMO calls), by accelerated projected gradient steps.

    The gap is the largest <A(x - goal), x - z> over X. Steps end when it is at most `accuracy`, or after `most`. The
    momentum restarts where a step turns back.
    """
    size = jnp.abs(metric).sum(1).max()  # at least the largest eigenvalue

    def gap_at(x):
        slope = metric @ (x - goal)
        vertex, _ = ravel_pytree(domain.lmo(unravel(slope)).dense())
        return jnp.maximum(slope @ (x - vertex), 0)

    def onwards(carry):
        _, _, _, gap, count = carry
        return (gap > accuracy) & (count < most)

    def step(carry):
        """One accelerated step: (x, extrapolated point, momentum, gap, count)."""
        x, ahead, momentum, _, count = carry
        new, _ = ravel_pytree(domain.project(unravel(ahead - metric @ (ahead - goal) / size)))
        turned = (ahead - new) @ (new - x) > 0
        momentum = jnp.where(turned, 1, momentum)
        following = (1 + jnp.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + jnp.where(turned, 0, (momentum - 1) / following) * (new - x)
        return new, ahead, jnp.where(turned, 1, following), gap_at(new), count + 1

    one = jnp.ones((), metric.dtype)
    first, _ = ravel_pytree(domain.project(unravel(start)))
    begun = first, first, one, gap_at(first), jnp.zeros((), jnp.int32)
    x, _, _, gap, count = jax.lax.while_loop(onwards, step, begun)
    return x, gap, count + 1
