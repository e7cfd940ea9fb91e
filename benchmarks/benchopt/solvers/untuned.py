"""Learners of cocoax with nothing tuned, by name; `-s "untuned[learner=[Auto,AdaptivePDOGD]]"` chooses some."""

from benchmark_utils.games import PlaysGame
from benchopt import BaseSolver

import cocoax as cx


class Solver(PlaysGame, BaseSolver):
    name = "untuned"
    parameters = {"learner": ["Auto", "Stay"]}

    def set_objective(self, series, problem, rounds):
        self.problem, self.rounds = problem, rounds
        self.player = getattr(cx.learners, self.learner)()
