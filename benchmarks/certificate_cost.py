"""What a certificate adds to a round of Auto on matrix completion, in CPU time.

Short games are played in turn; of each kind it shows the time that a tenth of the games was faster than.

python -m benchmarks.certificate_cost [--repeats 100]

`certify=True` keeps the sums that `game.certificate()` needs; `certify=32` also bounds the regret after every 32nd
round. Programs are compiled as `play` compiles them.
"""

import argparse
import time

import jax
import numpy as np

import cocoax as cx
from cocoax.core.compiling import SHORT, options

SIZES = {50: 320, 300: 32}  # of the matrices, and how many rounds
WAYS = {"no certificate": False, "its sums": True, "a check every 32 rounds": 32}


def game_of(problem, rounds, certify):
    """The compiled game."""

    def play(problem, rounds):
        game = cx.play(problem, cx.learners.Auto(), rounds, key=jax.random.key(2), certify=certify)
        return game.loss, game.minorants, game.certified  # what is not asked for, XLA leaves out

    return (
        jax.jit(play)
        .lower(problem, rounds)
        .compile(compiler_options=options(short_sums=problem.domain.dimension <= SHORT))
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=100)
    repeats = parser.parse_args().repeats
    print(f"| a round, in microseconds | {' | '.join(WAYS)} | last over first |\n|---|---|---|---|---|")
    for size, count in SIZES.items():
        instance = cx.problems.matrix_completion(
            jax.random.key(0), rows=size, cols=size, rank=5, observed=size**2 // 25
        )
        rounds = instance.rounds(count, jax.random.key(1))
        games = [game_of(instance.problem, rounds, certify) for certify in WAYS.values()]
        spent = np.empty((repeats, len(games)))
        for row in spent:
            for i, game in enumerate(games):
                begin = time.process_time()
                jax.block_until_ready(game(instance.problem, rounds))
                row[i] = (time.process_time() - begin) / count
        usual = np.quantile(spent, 0.1, axis=0)  # the very fastest is luck, where others use the machine
        cells = " | ".join(f"{1e6 * seconds:.3g}" for seconds in usual)
        print(f"| completion, {size} x {size} | {cells} | {usual[-1] / usual[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
