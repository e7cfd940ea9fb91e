"""Learners that answer requests: the best answer where constraints have a price, and the price is what they learn."""

import abc
import contextlib
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check, tree
from ..domains.base import Point
from ..dual.base import Weights
from ..errors import LearnerError, ProblemError
from ..primal.base import cost
from ..problem.lagrangian import Answer, best_answer
from ..problem.problem import Problem, Round
from .base import AbstractLearner, first_decision, outcome, point_played, refuse_movement


class PricingState(eqx.Module):
    """The state of a learner of prices."""

    start: Point  # where loss and constraint are differentiated first; its dtype is that of the game
    prices: Any  # what the price is learned from


class AbstractPricing(AbstractLearner):
    r"""$x_t = \arg\min_{x\in X} f_t(x) + \langle\lambda_t, g_t(x)\rangle$, where the request shows $f_t$ and $g_t$.

    `predict` maps a request to the round that is expected, where the request does not show all that the loss and the
    constraint use; prices then follow what really happened. A subclass says what $\lambda_t$ is.
    """

    predict: Callable | None

    @property
    def integral(self):
        return True

    def check(self, problem):
        if not problem.has_requests:
            raise LearnerError(f"{type(self).__name__} decides after a request; give Problem(request=...)")
        refuse_movement(problem, self)

    def init(self, problem, *, key, horizon=None, start=None):
        self.check(problem)
        start = first_decision(problem, start)
        return PricingState(start, self.begin(problem, start, horizon=horizon, key=key))

    def decision(self, state):
        return state.start

    def decide(self, problem, state, request):
        return self.answer(problem, state, self.expected(request)).x

    def answer(self, problem: Problem, state: PricingState, expected: Round) -> Answer:
        """The best answer at the current prices."""
        prices = self.multiplier(state.prices)
        with asking_for_prediction(problem, self.predict):
            return best_answer(problem, expected, prices, start=state.start)

    def expected(self, request: Round) -> Round:
        """The round that is expected."""
        return request if self.predict is None else self.predict(request)

    def observe(self, problem, state, round, *, played=None):
        expected = self.expected(problem.request_of(round))
        if played is None:
            played = self.answer(problem, state, expected).x
        played = point_played(played, state.start)
        loss, values = problem.values(played, round)
        prices = self.multiplier(state.prices)
        learned = self.learn(problem, state, expected, played, loss, values)
        weights = Weights(jnp.ones((), values.dtype), prices)
        return PricingState(state.start, learned), outcome(
            loss, values, weights, cost(lmo_calls=self.lmos, gradient_calls=1), self.rounds_left(state)
        )

    @property
    def lmos(self) -> int:
        """LMO calls a round, on average."""
        return 1

    @abc.abstractmethod
    def begin(self, problem: Problem, start: Point, *, horizon: Any, key: Any) -> Any:
        """What the price is learned from, before the first round."""

    @abc.abstractmethod
    def multiplier(self, prices: Any) -> Float[Array, " m"]:
        """The price of each constraint."""

    @abc.abstractmethod
    def learn(
        self, problem: Problem, state: PricingState, expected: Round, played: Point, loss: Any, values: Any
    ) -> Any:
        """What the next price is learned from, after a round in which the constraints came to `values`."""


@contextlib.contextmanager
def asking_for_prediction(problem: Problem, predict: Callable | None):
    """Says what to give where a request alone does not show enough of the round."""
    try:
        yield
    except (KeyError, ProblemError) as error:
        if isinstance(problem.request, tuple) and predict is None:
            raise LearnerError(
                f"the loss or the constraint needs more than the request shows ({error}); give predict=, a function of "
                "the request that returns the round that is expected"
            ) from None
        raise


def prediction(predict) -> Callable | None:
    """A user's function of the request, as a PyTree."""
    if predict is not None and not callable(predict):
        raise LearnerError(f"predict must be callable as predict(request), got {check.described(predict)}")
    return None if predict is None else tree.as_pytree(predict)
