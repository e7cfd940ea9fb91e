"""The problems of a study. Rounds depend on the seed only, so that all learners meet the same rounds."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..comparators.comparator import Comparator, float64
from ..comparators.hindsight import hindsight
from ..comparators.price import gradient_squares, prices
from ..errors import ProblemError
from ..problem.environment import Environment, drawn_for
from ..problem.problem import Problem
from ..problem.rounds import as_rounds
from ..problems import Instance


def _on_cpu(function):
    """Decorator: computes on the CPU (if JAX has one), which is faster for many small steps."""

    @functools.wraps(function)
    def on_cpu(*arguments):
        """Calls `function` with the CPU as JAX's default device."""
        try:
            device = jax.local_devices(backend="cpu")[0]
        except RuntimeError:
            return function(*arguments)
        with jax.default_device(device):
            return function(*arguments)

    return on_cpu


class Source(eqx.Module):
    """One problem of a study: a function of a key that draws an instance, one instance, or a problem with its rounds.

    A seed's key is split into three: for the instance, for its rounds, and for the learner's randomness. Instance and
    rounds are drawn on the CPU, whatever device plays them.
    """

    make: Callable | None = None
    instance: Instance | None = None
    problem: Problem | None = None
    rounds: Any = None

    @_on_cpu
    def sample(self, seed: int) -> Problem:
        """The problem of a seed, without its rounds.

        If the user's function can be traced, its arrays have shapes only, which is faster.
        """
        if self.problem is not None:
            return self.problem
        key = _keys(seed)[0]
        try:
            return eqx.filter_eval_shape(self._instance, key).problem
        except Exception:  # a user's function can raise anything, as code on the host does of tracers
            return self._instance(key).problem

    @_on_cpu
    def draw(self, seed: int, horizon: int) -> "Drawn":
        """The problem of a seed, with its rounds."""
        return self.drawn(jax.random.key(seed), horizon)

    def drawn(self, key: Any, horizon: int) -> "Drawn":
        """As `draw`, from the key of a seed, on any device."""
        instance_key, rounds_key, _ = jax.random.split(key, 3)
        if self.problem is not None:
            if isinstance(self.rounds, Environment):
                rounds = drawn_for(self.problem, self.rounds, horizon, rounds_key)
            else:
                rounds = self.rounds
            return Drawn(self.problem, rounds, None)
        instance = self._instance(instance_key)
        return Drawn(instance.problem, instance.rounds(horizon, rounds_key), instance)

    def _instance(self, key) -> Instance:
        """The instance for this key; raises `ProblemError` if the user's function returns anything else."""
        instance = self.instance if self.make is None else self.make(key)
        if not isinstance(instance, Instance):
            raise ProblemError(f"a problem's function must return a cocoax.problems.Instance, got {type(instance)}")
        return instance


class Drawn(eqx.Module):
    """One problem, with its rounds."""

    problem: Problem
    rounds: Any
    instance: Instance | None

    @_on_cpu
    def comparator(self, horizon: int, tol: float) -> Comparator:
        """The best fixed decision for the first `horizon` rounds; with requests, the best policy.

        A gap above `tol` is no error: the comparator reports it.
        """
        if self.instance is not None and self.instance.optimum is not None:
            return _optimum_on_first_rounds(*self._optimum, horizon)
        rounds = jax.tree.map(lambda leaf: leaf[:horizon], self.rounds)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="hindsight stopped")
            if self.instance is None:
                return hindsight(self.problem, rounds, policy=self.problem.has_policies, tol=tol, progress=False)
            return self.instance.comparator(rounds, tol=tol, progress=False)

    @functools.cached_property
    def _optimum(self):
        """(exact optimum, squared gradients of each round there), for an instance that knows its optimum."""
        assert self.instance is not None
        best = self.instance.comparator(self.rounds)
        with jax.enable_x64(True):
            return best, gradient_squares(*(float64(part) for part in (self.problem, self.rounds, best.x)))


def as_source(name: str, problem) -> Source:
    """The `Source` for whatever a user gave as a problem."""
    match problem:
        case Source():
            return problem
        case Instance():
            return Source(instance=problem)
        case (Problem(), rounds):
            return Source(problem=problem[0], rounds=rounds if isinstance(rounds, Environment) else as_rounds(rounds))
        case Problem():
            raise ProblemError(f"the problem {name!r} has no rounds; give (problem, rounds), or a function of a key")
        case _ if callable(problem):
            return Source(make=problem)
    raise ProblemError(
        f"the problem {name!r} must be a function key -> Instance, an Instance, or (problem, rounds), "
        f"got {problem!r:.80}"
    )


@_on_cpu
def learner_key(seed: int):
    """The key of the learner's randomness."""
    return _keys(seed)[2]


def _keys(seed):
    return jax.random.split(jax.random.key(seed), 3)


def _optimum_on_first_rounds(best: Comparator, squares, horizon) -> Comparator:
    """The comparator of the first `horizon` rounds, from an exact optimum and its squared gradients."""
    value = np.asarray(best.loss[:horizon].sum())
    charged = prices(best.multiplier, [part[:horizon] for part in squares])
    loss, constraint = best.loss[:horizon], best.constraint[:horizon]
    return Comparator(best.x, loss, constraint, value, value, best.multiplier, charged, best.names)
