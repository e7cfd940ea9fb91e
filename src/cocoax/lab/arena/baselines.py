"""Baselines of one screen, as somebody would write them by hand: entropic steps, and steps for each coordinate."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...core import tree
from ...domains import ProbabilitySimplex
from ...domains.base import Point
from ...dual.base import Weights
from ...errors import LearnerError
from ...learners.base import AbstractLearner, first_decision, outcome, planned, point_played, positive_parameter
from ...primal.base import cost
from ...primal.hedge import Hedge


class _State(eqx.Module):
    point: Point
    memory: Any
    multiplier: Float[Array, " m"]
    horizon: Int[Array, ""]
    round: Int[Array, ""]


class _Baseline(AbstractLearner):
    r"""A primal step along $\nabla f_t + \lambda_t\nabla g_t$, and $\lambda_{t+1} = [\lambda_t + \mu g_t(x_t)]_+$.

    $\mu=$ `dual_step`$/\sqrt T$.
    """

    step: Float[Array, ""]
    dual_step: Float[Array, ""]

    def __init__(self, step, dual_step):
        self.step = positive_parameter(step, "step")
        self.dual_step = positive_parameter(dual_step, "dual_step")

    @abc.abstractmethod
    def first(self, start: Point) -> Any:
        """What is remembered before the first round."""

    @abc.abstractmethod
    def move(self, domain, point: Point, memory: Any, gradient: Point, rounds: Array) -> tuple[Point, Any]:
        """The next decision, in a game of so many rounds."""

    def init(self, problem, *, key, horizon=None, start=None):
        self.check(problem)
        plan, point = planned(horizon, type(self).__name__), first_decision(problem, start)
        multiplier = jnp.zeros(problem.constraints, tree.dtype(point))
        return _State(point, self.first(point), multiplier, plan.rounds, jnp.ones((), jnp.int32))

    def decision(self, state):
        return state.point

    def observe(self, problem, state, round, *, played=None):
        at = point_played(played, state.point)
        loss, values, pull = problem.linearize(at, round)
        gradient = pull(jnp.ones_like(loss), state.multiplier)
        rounds = state.horizon.astype(loss.dtype)
        point, memory = self.move(problem.domain, at, state.memory, gradient, rounds)
        rise = self.dual_step.astype(loss.dtype) / rounds**0.5
        multiplier = jnp.maximum(state.multiplier + rise * values, 0)
        weights, spent = Weights(jnp.ones_like(loss), state.multiplier), cost(0, 1, tree.all_finite(gradient))
        came_to = outcome(loss, values, weights, spent, self.rounds_left(state))
        return _State(point, memory, multiplier, state.horizon, state.round + 1), came_to

    def rounds_left(self, state):
        return state.horizon - state.round + 1


class TunedEG(_Baseline):
    r"""Exponentiated gradient on a simplex: $x_{t+1}\propto x_t\exp(-\eta\nabla)$ with $\eta=$ `step`$/\sqrt T$."""

    def check(self, problem):
        if not isinstance(problem.domain, ProbabilitySimplex):
            raise LearnerError("TunedEG plays on a ProbabilitySimplex only")

    def first(self, start):
        return Hedge.begin(start / start.sum())

    def move(self, domain, point, memory, gradient, rounds):
        hedge = memory.stepped(gradient, self.step.astype(rounds.dtype) / rounds**0.5)
        return domain.total.astype(rounds.dtype) * hedge.shares, hedge


class TunedAdaGrad(_Baseline):
    r"""Projected AdaGrad: $x_{t+1} = \Pi_X(x_t - \eta\nabla_t/\sqrt{\sum_{s\le t}\nabla_s^2})$, by coordinate.

    $\eta=$ `step`, the same for every horizon.
    """

    def first(self, start):
        return tree.zeros_like(start)

    def move(self, domain, point, memory, gradient, rounds):
        squares = jax.tree.map(lambda total, entry: total + entry**2, memory, gradient)
        step = self.step.astype(rounds.dtype)

        def moved(x, entry, total):
            return x - step * entry / jnp.sqrt(jnp.where(total > 0, total, 1))  # where the sum is 0, the entry is too

        return domain.project(jax.tree.map(moved, point, gradient, squares)), squares
