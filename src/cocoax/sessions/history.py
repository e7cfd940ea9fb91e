"""The past rounds of a session, as a game and as a table."""

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from ..comparators.hindsight import hindsight
from ..domains.base import Point
from ..errors import SessionError
from ..games.game import Game
from ..problem.problem import Problem
from .copies import LearnerCopies
from .outcomes import unpacked, width
from .schema import RoundSchema
from .storage.events import Event


def game_of(events: Iterable[Event], copies: LearnerCopies, schema: RoundSchema | None, keep_rounds: bool) -> Game:
    """The observed rounds as a game, with its numbers in float64."""
    outcomes, data = [], []
    for event in events:
        outcomes.append(np.frombuffer(event.outcome or b""))
        if keep_rounds and event.round is None:
            raise SessionError("this needs all rounds, but some were forgotten; start sessions with keep_rounds=True")
        if keep_rounds and schema is not None:
            data.append(schema.unpack(event.round or b""))
    return stacked_game(copies.problem, outcomes, data if keep_rounds else None, copies.decisions[0], copies.state())


def stacked_game(problem: Problem, outcomes: list, rounds: list | None, decision: Point, state: Any = None) -> Game:
    """The game of these rounds, from their packed outcomes; `rounds` are their data, if they are kept."""
    if rounds is not None and not rounds:
        raise SessionError("no round was observed yet; observe one first")
    numbers = np.array(outcomes).reshape(-1, width(problem.constraints))
    return Game.of(
        unpacked(numbers, problem.constraints),
        problem.names,
        decision=None if problem.has_requests else decision,
        rounds=None if rounds is None else jax.tree.map(lambda *leaves: np.stack(leaves), *rounds),
        state=state,
        problem=None if rounds is None else problem,
    )


def regret_of(game: Game, problem: Problem, comparator: Any) -> Any:
    """Running regret of a game with its rounds; by default against the best fixed decision (with requests: policy)."""
    if comparator is None:
        comparator = hindsight(problem, game.rounds, policy=problem.has_policies)
    return game.regret(comparator)


def rows_of(columns: dict[str, np.ndarray]) -> np.ndarray:
    """A table as a structured array, one entry a row."""
    dtypes = [(name, column.dtype) for name, column in columns.items()]
    rows = np.empty(len(next(iter(columns.values()))), dtypes)
    for name, column in columns.items():
        rows[name] = column
    return rows
