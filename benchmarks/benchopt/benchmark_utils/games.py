"""A learner of cocoax as a solver of benchopt."""

import jax

import cocoax as cx


class PlaysGame:
    """`player` plays the rounds; a subclass chooses it in `set_objective`."""

    sampling_strategy = "run_once"  # a game is one run, of all rounds

    def run(self, _):
        game = cx.play(self.problem, self.player, self.rounds, key=jax.random.key(0))
        self.game = jax.block_until_ready(game)

    def warm_up(self):
        self.run(None)  # compiles

    def get_result(self):
        return {"game": self.game}
