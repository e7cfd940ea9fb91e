"""The past rounds of a session, as a game and as a table."""

from collections.abc import Iterable

import jax
import numpy as np

from ..errors import SessionError
from ..games.game import Game
from .copies import LearnerCopies
from .schema import RoundSchema
from .step import figures, outcome_of
from .storage.events import Event


def game_of(events: Iterable[Event], copies: LearnerCopies, schema: RoundSchema | None, keep_rounds: bool) -> Game:
    """The observed rounds as a game, with its numbers in float64."""
    constraints, outcomes, data = copies.constraints, [], []
    for event in events:
        outcomes.append(event.outcome or b"")
        if keep_rounds and event.round is None:
            raise SessionError("this needs all rounds, but some were forgotten; start sessions with keep_rounds=True")
        if keep_rounds and schema is not None:
            data.append(schema.unpack(event.round or b""))
    if keep_rounds and not data:
        raise SessionError("no round was observed yet; observe one first")
    return Game.of(
        outcome_of(np.frombuffer(b"".join(outcomes)).reshape(-1, figures(constraints)), constraints),
        copies.problem.names,
        decision=None if copies.problem.has_requests else copies.decisions[0],
        rounds=jax.tree.map(lambda *leaves: np.stack(leaves), *data) if keep_rounds else None,
        state=copies.state(),
        problem=copies.problem if keep_rounds else None,
    )


def rows_of(columns: dict[str, np.ndarray]) -> np.ndarray:
    """A table as a structured array, one entry a row."""
    dtypes = [(name, column.dtype) for name, column in columns.items()]
    rows = np.empty(len(next(iter(columns.values()))), dtypes)
    for name, column in columns.items():
        rows[name] = column
    return rows
