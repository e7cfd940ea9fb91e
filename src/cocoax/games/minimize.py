"""Stochastic optimisation with expectation constraints: play, average, and measure the average on fresh samples."""

import warnings
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ..comparators.comparator import Comparator
from ..comparators.hindsight import hindsight
from ..core import check
from ..domains.base import Point
from ..errors import InfeasibleError, ProblemError
from ..learners import Auto
from ..learners.base import AbstractLearner
from ..problem.environment import Environment
from ..problem.problem import Problem
from .game import Game
from .play import play


class Interval(NamedTuple):
    """An estimate and its confidence interval; arrays where there are several constraints."""

    estimate: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class Solution(eqx.Module):
    """A decision for min E f(x) subject to E g(x) <= 0, measured on samples that it has not seen."""

    x: Point
    value: Interval  # of E f(x)
    violation: Interval  # of E g(x), one for each constraint
    gap: Interval  # of a bound on E f(x) - min; below 0 only as far as x violates the constraints
    game: Game


def minimize(
    problem: Problem,
    environment: Environment,
    *,
    horizon: int,
    key: PRNGKeyArray,
    learner: AbstractLearner | None = None,
    samples: int = 1000,
    batches: int = 10,
    confidence: float = 0.95,
) -> Solution:
    r"""$\min_{x\in X} E f(x)$ subject to $E g(x)\le 0$, from i.i.d. rounds.

    Plays `learner` (by default `Auto()`, which needs no constants) for `horizon` rounds and returns the average
    decision $\bar x$: its expected gap and violation are at most the learner's expected regret and violation divided by
    the horizon (erratum E29).

    On `batches` fresh batches of `samples` rounds, the gap is estimated as $\frac1n\sum_t f_t(\bar x)$ minus a
    certified lower bound of $\min_{x\in X}\frac1n\sum_t f_t(x)+\langle\lambda,g_t(x)\rangle$, with $\lambda$ from a
    batch of its own (Mak, Morton, Wood, 1999). Its expectation is never below the true gap, for any $\lambda\ge0$.
    Intervals are Student's, over batches.

    >>> import jax
    >>> import cocoax as cx
    >>> instance = cx.problems.simplex(jax.random.key(0), n=4, quadratic=True)
    >>> solution = cx.minimize(
    ...     instance.problem, instance.environment, horizon=200, key=jax.random.key(1), samples=100, batches=5
    ... )
    >>> bool(solution.gap.lower <= solution.gap.estimate <= solution.gap.upper)
    True
    """
    check.instance(problem, Problem, ProblemError, "minimize needs a Problem first")
    check.instance(environment, Environment, ProblemError, "minimize draws its rounds from an Environment")
    if problem.has_requests:
        raise ProblemError("minimize returns one decision for all rounds; leave out Problem(request=...)")
    if problem.has_movement:
        raise ProblemError(
            "minimize returns one decision, which never moves; leave previous out of the loss and the constraint"
        )
    check.random_key(key, "minimize", ProblemError)
    samples, batches = (check.whole(n, name, ProblemError) for n, name in ((samples, "samples"), (batches, "batches")))
    confidence = check.scalar(confidence, "confidence", ProblemError)
    if batches < 2 or samples < 1 or not 0 < confidence < 1:
        raise ProblemError(
            f"minimize needs batches >= 2, samples >= 1 and a confidence between 0 and 1, got {batches}, {samples} and "
            f"{confidence}"
        )
    learner = Auto() if learner is None else learner
    play_key, price_key, *batch_keys = jax.random.split(key, 2 + batches)
    game = play(problem, learner, environment, key=play_key, horizon=horizon)
    x = game.average
    multiplier = _estimated_multiplier(problem, environment.draw(samples, price_key, x))
    lagrangian = Problem(problem.domain, _Lagrangian(problem, jnp.asarray(multiplier)))
    values, violations, gaps = [], [], []
    for batch_key in batch_keys:
        rounds = environment.draw(samples, batch_key, x)
        here = Comparator.fixed(problem, rounds, x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an open gap only makes the bound wider
            bound = hindsight(lagrangian, rounds, tol=1e-4, progress=False).lower_bound
        values.append(here.value / samples)
        violations.append(here.constraint.mean(0))
        gaps.append((here.value - bound) / samples)
    value, violation, gap = (_interval(np.stack(figures), confidence) for figures in (values, violations, gaps))
    return Solution(x, value, violation, gap, game)


def _estimated_multiplier(problem, rounds):
    """The multiplier of the best fixed decision for these rounds; 0 if no decision meets their constraints.

    Every multiplier >= 0 gives a valid bound, so that 0 is allowed.
    """
    if problem.constraints == 0:
        return np.zeros(0)
    try:
        return hindsight(problem, rounds, progress=False).multiplier
    except InfeasibleError:
        return np.zeros(problem.constraints)


class _Lagrangian(eqx.Module):
    """The loss f + <multiplier, g>."""

    problem: Problem
    multiplier: jax.Array

    def __call__(self, x, round):
        loss, values = self.problem.values(x, round)
        return loss + self.multiplier.astype(values.dtype) @ values


def _interval(batches, confidence) -> Interval:
    """Means over the batches (first axis), with Student's confidence interval."""
    from scipy.stats import t  # loaded only where it is used; jax brings it

    mean = batches.mean(0)
    spread = batches.std(0, ddof=1) / len(batches) ** 0.5
    width = t.ppf((1 + confidence) / 2, len(batches) - 1) * spread
    return Interval(mean, mean - width, mean + width)
