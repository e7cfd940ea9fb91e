"""Baselines with projections, which need `domain.project`, and the one that does nothing."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..domains.base import Point
from ..dual.base import Weights
from ..dual.regularized_ascent import RegularizedAscent
from ..dual.virtual_queue import VirtualQueue
from ..primal.base import Scale, cost
from ..primal.ogd import OGD
from .base import AbstractLearner, Horizon, first_decision, outcome, planned, point_played, positive_parameter
from .primal_dual import begin_rounds, observe_round


class PDOGD(AbstractLearner):
    r"""Primal-dual projected gradient (Mahdavi, Jin, Yang, 2012; Jenatton, Huang, Archambeau, 2016, known horizon).

    $x_{t+1} = \Pi_X(x_t - \eta(\nabla f_t + \lambda_t\nabla g_t)),\qquad
    \lambda_{t+1} = [(1-\theta\mu)\lambda_t + \mu g_t(x_t)]_+$

    with $\eta=\frac{R}{D\sqrt T}$, $\theta=\frac{6RD}{\sqrt T}$, $\mu=\frac{1}{\theta(T+2)}$. Proven: regret
    $O(\sqrt T)$, violation $O(T^{3/4})$.
    """

    theta_scale: Float[Array, ""]

    def __init__(self, *, theta_scale=1.0):
        self.theta_scale = positive_parameter(theta_scale, "theta_scale")

    def _lipschitz(self, problem) -> Array:
        return problem.constants(2, ("lipschitz",), "PDOGD").lipschitz

    def _scale_for(self, problem):
        lipschitz = self._lipschitz(problem)
        return lambda weights, horizon, capacity: Scale(lipschitz, jnp.asarray(jnp.inf), horizon, capacity)

    def init(self, problem, *, key, horizon=None, start=None):
        horizon = planned(horizon, "PDOGD")
        theta = 6 * problem.domain.diameter(2) * self._lipschitz(problem) / horizon.rounds.astype(float) ** 0.5
        theta = theta * max(problem.constraints, 1) * self.theta_scale
        rule = RegularizedAscent(theta, 1 / (theta * (horizon.rounds + 2)))
        return begin_rounds(problem, OGD(), rule, self._scale_for(problem), horizon, start, key)

    def decision(self, state):
        return OGD().decision(state.primal)

    def observe(self, problem, state, round, *, played=None):
        return observe_round(problem, OGD(), self._scale_for(problem), state, round, played)

    def rounds_left(self, state):
        return state.rounds_left()


class AdaptivePDOGD(AbstractLearner):
    r"""Primal-dual projected gradient for any horizon (Jenatton, Huang, Archambeau, 2016, with beta = 1/2).

    As `PDOGD` with $\eta_t=\frac{R}{D\sqrt t}$, $\theta_t=\frac{6RD}{\sqrt t}$, $\mu_t=\frac{1}{\theta_t(t+1)}$.
    For a fixed constraint, regret $O(\sqrt T)$ and violation $O(T^{3/4})$ (rates confirmed in print).
    """

    def _lipschitz(self, problem) -> Array:
        return problem.constants(2, ("lipschitz",), "AdaptivePDOGD").lipschitz

    def _rule(self, problem, t):
        theta = 6 * problem.domain.diameter(2) * self._lipschitz(problem) / t.astype(float) ** 0.5
        theta = theta * max(problem.constraints, 1)
        return RegularizedAscent(theta, 1 / (theta * (t + 1)))

    def _scale_for(self, problem, t):
        lipschitz = self._lipschitz(problem)
        return lambda weights, horizon, capacity: Scale(lipschitz, jnp.asarray(jnp.inf), t, capacity)

    def init(self, problem, *, key, horizon=None, start=None):
        plan = Horizon(1)  # of no consequence: t stands in for the horizon
        rule, scale_for = self._rule(problem, plan.rounds), self._scale_for(problem, plan.rounds)
        return begin_rounds(problem, OGD(), rule, scale_for, plan, start, key)

    def decision(self, state):
        return OGD().decision(state.primal)

    def observe(self, problem, state, round, *, played=None):
        t = state.round
        state = eqx.tree_at(lambda state: state.rule, state, self._rule(problem, t))
        return observe_round(problem, OGD(), self._scale_for(problem, t), state, round, played)


class DPP(AbstractLearner):
    r"""Drift plus penalty (Yu, Neely, Wei, NeurIPS 2017), without constants of the problem.

    $x_{t+1} = \Pi_X\left(x_t - \frac{1}{2T}(\sqrt T\,\nabla f_t + Q_t\nabla g_t)\right)$, with the virtual queue
    $Q_{t+1} = [Q_t + g_t(x_t) + \langle\nabla g_t(x_t), x_{t+1}-x_t\rangle]_+$.

    Proven under Slater's condition: expected regret and violation $O(\sqrt T)$.
    """

    def _scale_for(self, problem):
        def scale_for(weights, horizon, capacity):
            # the bound for which OGD's step is 1 / 2T
            lipschitz = 2 * problem.domain.diameter(2) * horizon.astype(float) ** 0.5
            return Scale(lipschitz, jnp.asarray(jnp.inf), horizon, capacity)

        return scale_for

    def init(self, problem, *, key, horizon=None, start=None):
        horizon = planned(horizon, "DPP")
        rule = VirtualQueue(horizon.rounds.astype(float) ** 0.5)
        return begin_rounds(problem, OGD(), rule, self._scale_for(problem), horizon, start, key)

    def decision(self, state):
        return OGD().decision(state.primal)

    def observe(self, problem, state, round, *, played=None):
        return observe_round(problem, OGD(), self._scale_for(problem), state, round, played)

    def rounds_left(self, state):
        return state.rounds_left()


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
