"""Records `play(metrics=...)` in each round, and names these metrics for tables."""

from typing import Any

import jax
import numpy as np

from ..errors import ProblemError
from ..problem.functions import as_array, call
from ..problem.names import table_columns


def measure(problem, metrics, decision, round) -> Any:
    """The values of `metrics` in a round. They must be numbers, under names that `Game.table()` does not use."""
    if metrics is None:
        return None
    answer = call(metrics, "metrics", problem.domain.view(decision), round)
    expected = "metrics must return a number, or a dict of numbers"
    values = jax.tree.map(lambda leaf: as_array(leaf, expected), answer)
    names = [*table_columns(problem.names), *metric_names(values)]
    for name, leaf in zip(metric_names(values), jax.tree.leaves(values)):
        if leaf.shape != ():
            raise ProblemError(f"{expected}, got shape {leaf.shape} for {name!r}; reduce it, for example by jnp.sum")
        if names.count(name) > 1:
            raise ProblemError(f"metrics has the name {name!r}, which Game.table() has already; choose another")
    return values


def metric_columns(metrics: Any) -> dict[str, np.ndarray]:
    """The recorded metrics, by name, as NumPy arrays."""
    return dict(zip(metric_names(metrics), map(np.asarray, jax.tree.leaves(metrics))))


def metric_names(metrics: Any) -> list[str]:
    """The keys of a dict of metrics, joined where dicts are nested; `metric` for a single number."""
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(metrics)]
    return ["_".join(jax.tree_util.keystr((key,), simple=True) for key in path) or "metric" for path in paths]
