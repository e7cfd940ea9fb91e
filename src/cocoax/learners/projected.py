"""Baselines with projections, which need `domain.project`, and the one that does nothing."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..domains.base import Point
from ..dual.base import Weights
from ..dual.regularized_ascent import RegularizedAscent
from ..dual.virtual_queue import VirtualQueue
from ..primal.base import Scale, cost
from ..primal.ogd import OGD
from .base import AbstractLearner, Horizon, first_decision, outcome, point_played, positive_parameter
from .primal_dual import AbstractPrimalDual


def _lipschitz(problem, who) -> Array:
    return problem.constants(2, ("lipschitz",), who).lipschitz


def _ascent(problem, lipschitz, horizon, factor: Any = 1.0):
    """theta = 6 m R D / sqrt(T)."""
    theta = 6 * problem.domain.diameter(2) * lipschitz / horizon.astype(float) ** 0.5
    return theta * max(problem.constraints, 1) * factor


class PDOGD(AbstractPrimalDual):
    r"""Primal-dual projected gradient (Mahdavi, Jin, Yang, 2012; Jenatton, Huang, Archambeau, 2016, known horizon).

    $x_{t+1} = \Pi_X(x_t - \eta(\nabla f_t + \lambda_t\nabla g_t)),\qquad
    \lambda_{t+1} = [(1-\theta\mu)\lambda_t + \mu g_t(x_t)]_+$

    with $\eta=\frac{R}{D\sqrt T}$, $\theta=\frac{6RD}{\sqrt T}$, $\mu=\frac{1}{\theta(T+2)}$. Proven: regret
    $O(\sqrt T)$, violation $O(T^{3/4})$.
    """

    primal: OGD
    theta_scale: Float[Array, ""]

    def __init__(self, *, theta_scale=1.0):
        self.primal = OGD()
        self.theta_scale = positive_parameter(theta_scale, "theta_scale")

    def rule(self, problem, horizon):
        theta = _ascent(problem, _lipschitz(problem, "PDOGD"), horizon, self.theta_scale)
        return RegularizedAscent(theta, 1 / (theta * (horizon + 2)))

    def scale(self, problem):
        lipschitz = _lipschitz(problem, "PDOGD")
        return lambda weights, horizon, capacity: Scale(lipschitz, jnp.asarray(jnp.inf), horizon, capacity)


class AdaptivePDOGD(AbstractPrimalDual):
    r"""Primal-dual projected gradient for any horizon (Jenatton, Huang, Archambeau, 2016, with beta = 1/2).

    As `PDOGD` with $\eta_t=\frac{R}{D\sqrt t}$, $\theta_t=\frac{6RD}{\sqrt t}$, $\mu_t=\frac{1}{\theta_t(t+1)}$.
    For a fixed constraint, regret $O(\sqrt T)$ and violation $O(T^{3/4})$ (rates confirmed in print).
    """

    primal: OGD

    def __init__(self):
        self.primal = OGD()

    def rule(self, problem, horizon):
        theta = _ascent(problem, _lipschitz(problem, "AdaptivePDOGD"), horizon)
        return RegularizedAscent(theta, 1 / (theta * (horizon + 1)))

    def scale(self, problem):
        lipschitz = _lipschitz(problem, "AdaptivePDOGD")
        return lambda weights, horizon, capacity: Scale(lipschitz, jnp.asarray(jnp.inf), horizon, capacity)

    def init(self, problem, *, key, horizon=None, start=None):
        return super().init(problem, key=key, horizon=Horizon(1), start=start)

    def observe(self, problem, state, round, *, played=None):
        now = eqx.tree_at(lambda s: (s.horizon, s.rule), state, (state.round, self.rule(problem, state.round)))
        return super().observe(problem, now, round, played=played)

    def rounds_left(self, state):
        return None


class DPP(AbstractPrimalDual):
    r"""Drift plus penalty (Yu, Neely, Wei, NeurIPS 2017), without constants of the problem.

    $x_{t+1} = \Pi_X\left(x_t - \frac{1}{2T}(\sqrt T\,\nabla f_t + Q_t\nabla g_t)\right)$, with the virtual queue
    $Q_{t+1} = [Q_t + g_t(x_t) + \langle\nabla g_t(x_t), x_{t+1}-x_t\rangle]_+$.

    Proven under Slater's condition: expected regret and violation $O(\sqrt T)$.
    """

    primal: OGD

    def __init__(self):
        self.primal = OGD()

    def rule(self, problem, horizon):
        return VirtualQueue(horizon.astype(float) ** 0.5)

    def scale(self, problem):
        def scale(weights, horizon, capacity):
            # the bound for which OGD's step is 1 / 2T
            lipschitz = 2 * problem.domain.diameter(2) * horizon.astype(float) ** 0.5
            return Scale(lipschitz, jnp.asarray(jnp.inf), horizon, capacity)

        return scale


class _StayState(eqx.Module):
    point: Point


class Stay(AbstractLearner):
    """Plays its start for ever. A method that does not beat it has learnt nothing."""

    def init(self, problem, *, key, horizon=None, start=None):
        return _StayState(first_decision(problem, start))

    def decision(self, state):
        return state.point

    def observe(self, problem, state, round, *, played=None):
        loss, values = problem.values(point_played(played, state.point), round)
        none = Weights(jnp.ones_like(loss), jnp.zeros_like(values))
        return state, outcome(loss, values, none, cost())
