"""What a stored game is recognised by, beside its settings: the numbers and code of its problem and learner.

The library's own code is known by its sources. What users bring is known by the programs that JAX traces of it. Where
rounds are drawn by code on the host, those of seed 0 stand for all; what a callback does is not seen.
"""

import contextlib
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..core.fingerprint import Parts, of_parts, of_program
from ..games.loop import play_round
from ..games.movement import as_played
from ..games.state import begin
from ..learners.base import AbstractLearner, Horizon
from .run.batch import capacity_of
from .sources import Drawn, Source


class Recognised:
    """One problem of a study. Hashes of programs are kept, since plans must be fast."""

    def __init__(self, source: Source, longest: int):
        self._source, self._longest, self._parts = source, longest, of_parts(source)
        self._problems: dict[int, Parts] = {}
        self._games: dict[tuple[int, int], str] = {}

    def problem(self, horizon: int) -> Parts:
        """Of the problem and so many of its rounds, and whether its domain is one of the library's."""
        if horizon not in self._problems:
            self._problems[horizon] = self._parts if self._parts.known else self._program(horizon)
        return self._problems[horizon]

    def game(self, learner: AbstractLearner, horizon: int) -> tuple[str, ...]:
        """Of the problem, and a learner on it."""
        problem, parts, place = self.problem(horizon), of_parts(learner), (id(learner), capacity_of(horizon))
        if parts.known and problem.known:
            return problem.digest, parts.digest
        if place not in self._games:
            self._games[place] = self._program_of(learner, place[1])
        return problem.digest, parts.digest, self._games[place]

    @functools.cached_property
    def _drawn(self) -> Drawn:
        return self._source.draw(0, self._longest)

    def _program(self, horizon: int) -> Parts:
        seen = []

        def shown(drawn):
            problem, rounds = drawn.problem, drawn.rounds
            seen.append(Parts(of_parts(drawn).digest, of_parts(problem.domain).known))
            x, round = problem.domain.start(), _first(rounds)
            loss, values, pull = problem.linearize(x, round)
            expected = getattr(drawn.instance, "expected_constraint", None)
            of_x = problem.domain.lmo(x), problem.values(x, round, x), None if expected is None else expected(x)
            return eqx.filter((drawn, pull(jnp.ones_like(loss), jnp.ones_like(values)), of_x), eqx.is_array)

        with contextlib.suppress(Exception):  # of any kind: users write these functions
            program = of_program(lambda key: shown(self._source.drawn(key, horizon)), jax.random.key(0))
            return Parts(of_parts(program, seen[-1]).digest, seen[-1].known)
        with contextlib.suppress(Exception):
            rounds = jax.tree.map(lambda leaf: leaf[:horizon], self._drawn.rounds)
            program = of_program(lambda: shown(Drawn(self._drawn.problem, rounds, self._drawn.instance)))
            return Parts(of_parts(program, seen[-1]).digest, seen[-1].known)
        return Parts("unknown", True)  # why, is said when it is played

    def _program_of(self, learner: AbstractLearner, capacity: int) -> str:
        try:
            drawn = eqx.filter_eval_shape(self._source.drawn, jax.random.key(0), self._longest)
        except Exception:
            drawn = self._drawn
        with contextlib.suppress(Exception):
            round = jax.eval_shape(_first, drawn.rounds)
            game = functools.partial(_game, learner, capacity)
            return of_program(game, drawn.problem, round, jax.random.key(0), jnp.asarray(1, jnp.int32))
        return "unknown"


def _first(rounds: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[0], rounds)


def _game(learner, capacity, problem, round, key, horizon):
    learner = as_played(problem, learner)
    return play_round(problem, learner, begin(problem, learner, None, key, Horizon(horizon, capacity), None), round)
