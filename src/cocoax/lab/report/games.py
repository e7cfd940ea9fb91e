"""`cocoax.lab.plot`: compares users' games in one figure, for notebooks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core import check
from ...core.sums import running_sum
from ...errors import LabError
from ...games.game import Game
from ..results.statistics import BAND
from .figures import NOTEBOOK, Line, draw_bound, draw_panels, styles


def plot(games: Mapping[str, Game] | Game, comparator: Any = None) -> Any:
    """Regret (total loss without a comparator), violation and multiplier over the rounds; a Matplotlib figure.

    It compares learners. `game.plot()` shows all constraints and metrics of one game.

    **Arguments:**

    - `games`: by the learners' names; each one game, or a batch by `jax.vmap`, drawn as mean and band over the batch.
      Of several constraints, the worst is drawn. For games with `play(certify=k)`, the band between regret and its
      proven bound is hatched.
    - `comparator`: what `Game.regret` takes, for all games.

    >>> import jax, cocoax as cx
    >>> instance = cx.problems.pacing(jax.random.key(0), segments=3)
    >>> rounds = instance.rounds(20, jax.random.key(1))
    >>> game = cx.play(instance.problem, cx.learners.Stay(), rounds, key=jax.random.key(2))
    >>> figure = plot({"stay": game}, instance.comparator(rounds))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['regret', 'violation', 'largest multiplier']
    """
    games = {"game": games} if isinstance(games, Game) else games
    if not isinstance(games, Mapping) or not games or not all(isinstance(game, Game) for game in games.values()):
        raise LabError(f"plot takes a dict of what cocoax.play returned, by name, got {check.described(games)}")
    names = {str(name): game for name, game in games.items()}
    if comparator is None:
        panels = {"loss": {name: _band(running_sum(game.loss, -1)) for name, game in names.items()}}
    else:
        panels = {"regret": {name: _band(game.regret(comparator)) for name, game in names.items()}}
    limited = {name: game for name, game in names.items() if game.constraint.shape[-1]}
    if limited:
        panels["violation"] = {name: _band(np.max(game.violation(), -1)) for name, game in limited.items()}
        panels["multiplier"] = {name: _band(np.max(game.multiplier, -1)) for name, game in limited.items()}
    looks = styles(names)
    figure, axes = draw_panels(panels, "round", looks, NOTEBOOK)
    if comparator is not None:
        for name, game in names.items():
            if game.certified is not None:
                line = panels["regret"][name]
                bound = np.asarray(game.certified, float).reshape(-1, len(line.x)).mean(0)
                draw_bound(axes["regret"], line, bound, looks[name])
    return figure


def _band(values) -> Line:
    """Mean and quantiles over all axes but the last, which is time."""
    values = np.asarray(values, float).reshape(-1, np.shape(values)[-1])
    low, high = np.quantile(values, BAND, axis=0)
    return Line(np.arange(1, values.shape[1] + 1), values.mean(0), low, high)
