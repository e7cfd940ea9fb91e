"""Real problems: recorded rounds in their order, and baselines that people in the field use."""

from collections.abc import Callable
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ...comparators.comparator import Comparator
from ...core import check
from ...errors import ProblemError
from ...problem.environment import Environment
from ...problem.problem import Problem, Round
from ..base import Instance


class Recording(Environment):
    """Emits recorded rounds in their order, and starts again after the last."""

    table: Any  # all rounds, with a leading axis

    @property
    def length(self) -> int:
        """How many rounds were recorded."""
        return len(jax.tree.leaves(self.table)[0])

    def init(self, key) -> Any:
        return jnp.zeros((), jnp.int32)

    def emit(self, state, decision, key) -> tuple[Any, Any]:
        return state + 1, jax.tree.map(lambda column: column[state % self.length], self.table)


class RealInstance(Instance):
    """An instance with recorded rounds, and with the baselines of its field.

    A baseline is a function of the problem and its rounds; it returns one decision, or one per round.
    """

    baselines: tuple[tuple[str, Callable], ...] = eqx.field(static=True)

    def __init__(self, problem: Problem, table: Round, **baselines: Callable):
        table = jax.tree.map(_on_device, table)
        super().__init__(problem, Recording(table), None, None)
        self.baselines = tuple(baselines.items())

    @property
    def length(self) -> int:
        """How many rounds were recorded."""
        return self._recording.length

    @property
    def recorded(self) -> Round:
        """All rounds."""
        return self._recording.table

    @property
    def _recording(self) -> Recording:
        return cast(Recording, self.environment)

    def rounds(self, horizon: int, key: Any = None) -> Round:
        """The first `horizon` rounds; the key is not used."""
        horizon = check.whole(horizon, "horizon", ProblemError, low=1)
        if horizon > self.length:
            raise ProblemError(f"{self.length} rounds were recorded; horizon must not be more, got {horizon}")
        return jax.tree.map(lambda column: column[:horizon], self.recorded)

    def baseline(self, name: str, rounds: Round | None = None) -> Comparator:
        """What a baseline reaches on these rounds (all by default), with values counted as in a game."""
        known = dict(self.baselines)
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "this problem has none to play by name"
            raise ProblemError(f"there is no baseline {name!r}; {there}")
        rounds = self.recorded if rounds is None else rounds
        decisions = known[name](self.problem, rounds)
        one, like = jax.tree.leaves(decisions)[0], jax.tree.leaves(self.problem.domain.start())[0]
        is_path = np.ndim(one) > np.ndim(like)
        return (Comparator.path if is_path else Comparator.fixed)(self.problem, rounds, decisions)


def always(decision: Any) -> Callable:
    """A baseline that always plays this decision."""
    return lambda problem, rounds: decision


def generator(key: PRNGKeyArray | None) -> np.random.Generator:
    """NumPy's generator seeded by a key; without a key, always the same."""
    return np.random.default_rng(0 if key is None else int(jax.random.randint(key, (), 0, 2**31 - 1)))


def _on_device(column):
    column = np.asarray(column)
    return jnp.asarray(column, float) if column.dtype.kind == "f" else jnp.asarray(column)
