"""Methods whose steps were tuned on the first 30% of a series."""

from benchmark_utils.games import PlaysGame
from benchopt import BaseSolver

from cocoax.lab.arena.rivals import FAMILIES
from cocoax.lab.arena.series import tuned


class Solver(PlaysGame, BaseSolver):
    name = "tuned"
    parameters = {"family": list(FAMILIES)}

    def skip(self, series, problem, rounds):
        known = self.family in tuned()[series]["families"]
        return not known, None if known else f"{self.family} cannot play it"

    def set_objective(self, series, problem, rounds):
        self.problem, self.rounds = problem, rounds
        self.player = FAMILIES[self.family](**tuned()[series]["families"][self.family]["numbers"])
