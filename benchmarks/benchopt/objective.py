"""Score of a game: regret + <price, [violation]+>, against the best fixed decision of the same rounds."""

import jax
import numpy as np
from benchopt import BaseObjective

import cocoax as cx


class Objective(BaseObjective):
    name = "Constrained online convex optimization"
    min_benchopt_version = "1.10"
    requirements = ("pip::cocoax[lab]",)
    parameters = {"tol": [1e-4]}  # of the comparator's certificate

    def set_data(self, series, problem, rounds):
        self.series, self.problem, self.rounds = series, problem, rounds
        self.best = cx.hindsight(problem, rounds, tol=self.tol, progress=False)

    def get_objective(self):
        return {"series": self.series, "problem": self.problem, "rounds": self.rounds}

    def evaluate_result(self, game):
        violation = np.asarray(game.violation()[-1])
        return {
            "value": float(game.score(self.best)[-1]),
            "regret": float(game.regret(self.best)[-1]),
            "violation": float(violation.max(initial=0)),
            "gap": float(self.best.gap),
        }

    def get_one_result(self):
        return {"game": cx.play(self.problem, cx.learners.Stay(), self.rounds, key=jax.random.key(0))}
