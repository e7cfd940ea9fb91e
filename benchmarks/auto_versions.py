"""A round of Auto beside one of its first version, in turn in one process: the best of many games each.

python -m benchmarks.auto_versions [--repeats 40] [--device cpu|gpu]

On CPUs it is CPU time, on GPUs time by the clock.

Programs are compiled as `play` compiles them. Games go on from round 64: before it, Auto takes more slopes on matrices.
"""

import argparse
import time

import jax

import cocoax as cx
from benchmarks.auto_released import PLACES, drawn
from cocoax.core.compiling import SHORT, options

LEARNERS = {"version 1": cx.learners.TrackedPI(), "Auto": cx.learners.Auto()}


def compiled(problem, learner, rounds):
    """(a game that goes on from a state, that state, after the first 64 rounds, how long compiling took)."""
    begun = cx.play(problem, learner, jax.tree.map(lambda leaf: leaf[:64], rounds), key=jax.random.key(1)).state

    def play(state, rounds):
        return cx.play(problem, learner, rounds, key=jax.random.key(1), state=state).loss.sum()

    lowered, begin = jax.jit(play).lower(begun, rounds), time.process_time()
    game = lowered.compile(compiler_options=options(short_sums=problem.domain.dimension <= SHORT))
    return game, begun, time.process_time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    options = parser.parse_args()
    jax.config.update("jax_platforms", {"cpu": "cpu", "gpu": "cuda"}[options.device])
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    print("| a round, in microseconds (compiling, in seconds) | " + " | ".join(LEARNERS) + " | ratio |")
    print("|---|---|---|---|")
    for place, (_, count) in PLACES.items():
        problem, rounds = drawn(place)
        games = [compiled(problem, learner, rounds) for learner in LEARNERS.values()]
        best = [float("inf")] * len(games)
        for _ in range(options.repeats):
            for i, (game, state, _) in enumerate(games):
                begin = clock()
                game(state, rounds).block_until_ready()
                best[i] = min(best[i], (clock() - begin) / count)
        cells = [f"{1e6 * spent:.3g} ({seconds:.1f})" for spent, (_, _, seconds) in zip(best, games)]
        print(f"| {place} | " + " | ".join(cells) + f" | {best[1] / best[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
