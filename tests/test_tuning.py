"""`benchmarks.tuning` finds the best numbers of a grid, against games played one by one."""

import functools
import itertools

import numpy as np
import pytest
from benchmarks.tuning import Family, Tuner

import cocoax as cx
from cocoax import problems
from cocoax.lab.arena.rivals import TunedPDOGD
from cocoax.lab.arena.tuning import TOLERANCE
from cocoax.lab.sources import as_source, learner_key

TUNING_SEEDS, GRID = range(1000, 1003), {"step": [0.01, 0.1, 1.0, 10.0], "dual_step": [0.1, 1.0, 10.0]}
SMALL_SIMPLEX, PDOGD = functools.partial(problems.simplex, n=4), Family(TunedPDOGD, lambda units: GRID)


def small_tuner(**options):
    return Tuner("simplex", SMALL_SIMPLEX, seeds=TUNING_SEEDS, horizon=50, **options)


@pytest.fixture(scope="module")
def scores_by_hand():
    """Of every point of the grid, on three seeds: 36 games."""
    each = [as_source("simplex", SMALL_SIMPLEX).draw(seed, 50) for seed in TUNING_SEEDS]
    against = [one.comparator(50, TOLERANCE) for one in each]
    scores = {}
    for point in itertools.product(*GRID.values()):
        learner, horizon = TunedPDOGD(*point), cx.Horizon(50, 100)
        games = [
            cx.play(one.problem, learner, one.rounds, key=learner_key(seed), horizon=horizon)
            for one, seed in zip(each, TUNING_SEEDS)
        ]
        scores[point] = [float(game.score(best)[-1]) for game, best in zip(games, against)]
    return scores


def test_tuning_finds_the_best_of_its_grid(scores_by_hand):
    found = small_tuner(screened=3, finalists=12).tune(PDOGD)
    best = min(scores_by_hand, key=lambda point: np.mean(scores_by_hand[point]))
    assert tuple(found.numbers.values()) == best
    assert found.score == pytest.approx(np.mean(scores_by_hand[best]), rel=1e-9)
    assert found.at_edge == [x for x, value in zip(GRID, best) if value in (GRID[x][0], GRID[x][-1])]


def test_numbers_with_which_a_game_goes_bad_are_infinitely_bad():
    huge = Family(TunedPDOGD, lambda units: {"step": [1e308, 0.1], "dual_step": [1.0]})
    assert small_tuner(screened=1, finalists=2).tune(huge).numbers["step"] == 0.1


def test_a_grid_is_shifted_to_where_the_best_numbers_are():
    """Far too small steps first: two shifts find what a wide grid finds."""
    small = Family(TunedPDOGD, lambda units: {"step": [1e-5, 1e-4, 1e-3], "dual_step": [1.0]})
    stuck, found = (small_tuner(screened=3, finalists=3, shifts=shifts).tune(small) for shifts in (0, 2))
    assert stuck.numbers["step"] == 1e-3 and stuck.at_edge == ["step"]
    assert found.numbers["step"] > 0.01 and found.score < stuck.score
