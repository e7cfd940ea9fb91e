"""The past rounds of a session, as a game and as a table."""

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np

from ..comparators.hindsight import hindsight
from ..domains.base import Point
from ..errors import SessionError
from ..games.game import Game
from ..problem.problem import Problem
from . import packing
from .copies import LearnerCopies
from .outcomes import Remarks, split, unpacked, width
from .schema import RoundSchema
from .storage.events import Event


def game_of(events: Iterable[Event], copies: LearnerCopies, schema: RoundSchema | None, keep_rounds: bool) -> Game:
    """The observed rounds as a game, with its numbers in float64."""
    outcomes, data = [], []
    for event in events:
        outcomes.append(_split(event)[0])
        if keep_rounds and event.round is None:
            raise SessionError("this needs all rounds, but some were forgotten; start sessions with keep_rounds=True")
        if keep_rounds and schema is not None:
            data.append(schema.unpack(event.round or b""))
    return stacked_game(copies.problem, outcomes, data if keep_rounds else None, copies.decisions[0], copies.state())


def table_of(events: Iterable[Event], copies: LearnerCopies, names: Sequence[str] | None) -> dict[str, np.ndarray]:
    """One row a round of a session."""
    split = [_split(event) for event in events]
    numbers, remarks = [one for one, _ in split], [one for _, one in split]
    return remarked_table(copies.problem, numbers, remarks, copies.decisions[0], names)


def remarked_table(
    problem: Problem, numbers: list, remarks: list[Remarks], decision: Point, names: Sequence[str] | None
) -> dict[str, np.ndarray]:
    """One row a round: its label, if any round has one; what it came to; and the decisions, where they were kept."""
    columns = stacked_game(problem, numbers, None, decision).table()
    if any(one.label is not None for one in remarks):
        labels = np.array([one.label or "" for one in remarks])
        columns = {"round": columns.pop("round"), "label": labels, **columns}
    points = [(one.decision, one.played or one.decision) for one in remarks]
    if any(kept is not None for kept, _ in points):
        entries = entry_names(decision, names)
        for which, kind in enumerate(("decision", "played")):
            rows = [_entries(decision, point[which]) for point in points]
            added = {f"{kind}_{name}": column for name, column in zip(entries, np.array(rows).T)}
            if taken := added.keys() & columns.keys():
                raise SessionError(f"two columns of history are called {min(taken)!r}; give other names=")
            columns |= added
    elif names is not None:
        raise SessionError("names= are those of a decision's entries; start the session with keep_decisions=True")
    return columns


def entry_names(decision: Point, names: Sequence[str] | None = None) -> list[str]:
    """Names of the entries of a decision: given ones, or their indices."""
    shapes = [(path, np.shape(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(decision)]
    indices = [
        "_".join([*(jax.tree_util.keystr((key,), simple=True) for key in path), *map(str, index)])
        for path, shape in shapes
        for index in np.ndindex(shape)
    ]
    if names is None:
        return indices
    given = [names] if isinstance(names, str) else list(names)
    if len(set(given)) != len(indices) or not all(isinstance(name, str) for name in given):
        raise SessionError(f"names must be {len(indices)} different texts, one for each entry of a decision")
    return given


def _entries(like: Point, point: bytes | None) -> np.ndarray:
    """All entries of a point as floats; NaN if it was not kept."""
    if point is None:
        return np.full(sum(np.size(leaf) for leaf in jax.tree.leaves(like)), np.nan)
    leaves = jax.tree.leaves(packing.unpack_like(jax.tree.map(np.asarray, like), point))
    return np.concatenate([np.ravel(leaf).astype(float) for leaf in leaves])


def _split(event: Event) -> tuple[np.ndarray, Remarks]:
    try:
        return split(event.outcome or b"")
    except ValueError:
        raise SessionError(
            "the outcome of a round is damaged; replay what is before it with cx.Session.replay"
        ) from None


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
