"""Tuning by hand, done by a machine: the best numbers of each rival for each problem, on seeds that are never reported.

Used by `tune`.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cocoax.core import tree
from cocoax.games.game import Game
from cocoax.lab.arena import rivals
from cocoax.lab.arena.tuning import SEEDS, TOLERANCE
from cocoax.lab.run import batch
from cocoax.lab.sources import Drawn, as_source, learner_key
from cocoax.learners import AbstractLearner

SCREENED, FINALISTS = 2, 8  # seeds on which all numbers are tried, and how many of those reach the other seeds


class Units(NamedTuple):
    """The units of a problem, from its gradients at the start."""

    step: float  # R / |grad f|
    dual_step: float  # |grad f| / (R |grad g|^2)
    width: float = 1.0  # R


class Family(NamedTuple):
    """A method to tune: how to make a learner from numbers, and which numbers to try."""

    make: Callable[..., AbstractLearner]
    grid: Callable[[Units], dict[str, list[float]]]


def times(unit: float, low: int, high: int) -> list[float]:
    """Two values a decade, from one power of ten to another."""
    return [float(unit * 10 ** (i / 2)) for i in range(2 * low, 2 * high + 1)]


def _both(units):
    return {"step": times(units.step, -2, 3), "dual_step": times(units.dual_step, -2, 3)}


GRIDS = dict.fromkeys(rivals.FAMILIES, _both) | {
    "AdaGrad by coordinate (projected)": lambda units: _both(units) | {"step": times(units.width, -4, 1)},
    "Algorithm 1 + OCG": lambda units: {"theta_scale": times(1.0, -8, 2)},
    "Algorithm 2 (ball)": lambda units: {"theta_scale": times(1.0, -8, 2)},
    "ORGFW with a virtual queue": lambda units: {"loss_weight": times(1 / units.dual_step, -3, 4)},
}
FAMILIES = {name: Family(make, GRIDS[name]) for name, make in rivals.FAMILIES.items()}


class Tuned(NamedTuple):
    """What tuning came to, and at which end of the grid, if at one."""

    numbers: dict[str, float]
    score: float  # mean over the seeds
    at_edge: list[str]


class Tuner:
    """One problem on the tuning seeds, for all families."""

    def __init__(
        self,
        name: str,
        make,
        *,
        horizon: int,
        seeds: Sequence[int] = SEEDS,
        thin=1,
        screened=SCREENED,
        finalists=FINALISTS,
        shifts=0,
        tol=TOLERANCE,
    ):
        self.horizon, self.thin, self.screened, self.finalists = horizon, thin, screened, finalists
        self.shifts = shifts
        drawn = [as_source(name, make).draw(seed, horizon) for seed in seeds]
        self.comparators = [game.comparator(horizon, tol) for game in drawn]
        self.games = [(game.problem, game.rounds, learner_key(seed)) for game, seed in zip(drawn, seeds)]
        self.units, self.constraints = _units(drawn[0]), drawn[0].problem.constraints

    def tune(self, family: Family) -> Tuned:
        """The numbers with the least mean score; the first seeds decide which reach the others.

        If the best ones lie at the end of a grid, the grid is shifted to that side, `shifts` times at most.
        """
        grid = {name: values[:: self.thin] for name, values in family.grid(self.units).items()}
        if not self.constraints and "dual_step" in grid:
            grid["dual_step"] = [1.0]
        points, first = [], np.zeros(0)
        for shift in range(1 + self.shifts):
            if shift:
                at_edge = points[int(np.argmin(first))]
                shifted = {name: _shifted(values, at_edge[name]) for name, values in grid.items()}
                if shifted == grid:
                    break
                grid = shifted
            new = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
            points, first = points + new, np.append(first, self._scores(family, new, slice(self.screened)))
        order = np.argsort(first)[: self.finalists]
        points = [points[i] for i in order]
        means = self._scores(family, points, slice(None))
        best = points[int(np.argmin(means))]
        edge = [name for name, values in grid.items() if len(values) > 1 and best[name] in (values[0], values[-1])]
        return Tuned(best, float(means.min()), edge)

    def _scores(self, family, points, seeds):
        """Mean over the seeds, for every point; what went bad is infinite."""
        made = [family.make(**point) for point in points]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *made)
        games = jax.tree.map(lambda *leaves: jnp.stack(leaves), *self.games[seeds])
        horizons, capacity = jnp.asarray([self.horizon], jnp.int32), batch.capacity_of(self.horizon)
        played = _play_all(stacked, *games, horizons, capacity=capacity)
        outcomes = jax.tree.map(lambda leaf: np.asarray(leaf)[:, :, 0, : self.horizon], played)
        game = Game.of(outcomes, self.games[0][0].names)  # (points, seeds, rounds)
        comparators = jax.tree.map(lambda *leaves: np.stack(leaves), *self.comparators[seeds])
        return np.where((game.bad_round < 0).all(1), game.score(comparators)[..., -1].mean(1), np.inf)


def _shifted(values, best):
    """The grid on the other side of `best`, if that is one of its ends."""
    if len(values) < 2 or best not in (values[0], values[-1]):
        return values
    factor = (values[-1] / values[0]) ** (1 if best == values[-1] else -1)
    return [value * factor for value in values]


@functools.partial(jax.jit, static_argnames="capacity")
def _play_all(learners, *games, capacity):
    return jax.vmap(lambda learner: batch.play_all(games[0], learner, *games[1:], capacity)[0])(learners)


def _units(drawn: Drawn) -> Units:
    domain = drawn.problem.domain
    start = domain.start()

    @jax.jit
    def root_mean_squares(rounds):
        of_loss, of_constraints = jax.vmap(lambda r: drawn.problem.gradients(start, r))(rounds)
        loss, constraint = (
            jax.tree.map(lambda leaf: leaf.reshape(len(leaf), -1), x) for x in (of_loss, of_constraints)
        )
        return tree.norm(loss) / number**0.5, tree.norm(constraint) / (number * max(count, 1)) ** 0.5

    number, count = len(jax.tree.leaves(drawn.rounds)[0]), drawn.problem.constraints
    loss, constraint = (float(size) for size in root_mean_squares(drawn.rounds))
    width = float(domain.diameter(2))
    return Units(width / loss, loss / (width * constraint**2) if constraint > 0 else 1.0, width)
