"""The journal's rounds, looked back at."""

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from ..errors import SessionError
from ..games.game import Game
from .copies import Players
from .schema import Form
from .step import Observed, figures
from .storage.events import Event


def game_of(events: Iterable[Event], players: Players, form: Form | None, keep_rounds: bool) -> Game:
    """What was observed, as a game; its figures are in float64."""
    constraints, outcomes, data = players.problem.constraints, [], []
    for event in events:
        outcomes.append(event.outcome or b"")
        if keep_rounds and event.round is None:
            raise SessionError("this needs all rounds, but some were forgotten; begin sessions with keep_rounds=True")
        if keep_rounds and form is not None:
            data.append(form.unpack(event.round or b""))
    if keep_rounds and not data:
        raise SessionError("no round was observed yet; observe one first")
    observed = Observed.of(np.frombuffer(b"".join(outcomes)).reshape(-1, figures(constraints)), constraints)
    rounds = jax.tree.map(lambda *leaves: np.stack(leaves), *data) if keep_rounds else None
    none: Any = np.asarray(-1)
    return Game(
        **observed._asdict(),
        decision=players.decisions[0],
        average=None,
        decisions=None,
        rounds=rounds,
        state=players.state(),
        bad_round=none,
        problem=players.problem if keep_rounds else None,
        names=players.problem.names,
    )


def rows_of(columns: dict[str, np.ndarray]) -> np.ndarray:
    """A table as a structured array, which has as many entries as rows."""
    dtypes = [(name, column.dtype) for name, column in columns.items()]
    rows = np.empty(len(next(iter(columns.values()))), dtypes)
    for name, column in columns.items():
        rows[name] = column
    return rows
