"""Learners that keep budgets, and what sessions and fleets ask of them."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array

from ..domains.base import Point
from ..problem.problem import Round
from .base import AbstractLearner, AbstractRecorder, own


class Spending(NamedTuple):
    """Where budgets stand, in float64, one entry for each budget."""

    budget: np.ndarray
    planned: np.ndarray  # what may be spent by the end of the next round
    spent: np.ndarray


class AbstractBudgetedLearner(AbstractLearner):
    """A learner whose state holds budgets, which decisions that wait for their rounds share."""

    @property
    @abc.abstractmethod
    def budgets(self) -> int:
        """How many there are."""

    @abc.abstractmethod
    def reserve(self, state: Any, request: Round, decision: Point) -> Any:
        """The state while this decision waits for its round: what it may spend is set aside."""

    @abc.abstractmethod
    def with_budget(self, state: Any, near: Array, beyond: Array) -> Any:
        """The state with other budgets, near + beyond, from the next decision on."""

    @abc.abstractmethod
    def spending(self, state: Any) -> Spending:
        """Where the budgets of a state stand, or of many along leading axes."""


def budgeted(learner: AbstractLearner) -> AbstractBudgetedLearner | None:
    """The learner that keeps budgets, in any recorders; None without budgets."""
    inner = own(learner)
    return inner if isinstance(inner, AbstractBudgetedLearner) else None


def budget_count(learner: AbstractLearner) -> int:
    """How many budgets a learner keeps; 0 for one that keeps none."""
    inner = budgeted(learner)
    return 0 if inner is None else inner.budgets


def spending(learner: Any, state: Any) -> Spending:
    """Where the budgets stand, of a learner that has some."""
    while isinstance(learner, AbstractRecorder):
        learner, state = learner.learner, state.learner
    return learner.spending(state)


def updated(learner: Any, state: Any, update: Callable[[AbstractBudgetedLearner, Any], Any]) -> Any:
    """The state in which that of the learner with budgets is `update(that learner, its state)`."""
    if not isinstance(learner, AbstractRecorder):
        return update(learner, state)
    return eqx.tree_at(lambda s: s.learner, state, updated(learner.learner, state.learner, update))
