"""A round of Auto beside one of its first version, in turn in one process: the best of many games each, in CPU time.

python -m benchmarks.auto_versions [--repeats 40]

Programs are compiled as `play` compiles them.
"""

import argparse
import time

import jax
import jax.numpy as jnp

import cocoax as cx
from cocoax import domains
from cocoax.core.compiling import game_options, own_program

LEARNERS = {"version 1": cx.learners.TrackedPI(), "Auto": cx.learners.Auto()}
PLACES = {  # the domain, and how many rounds
    "simplex of 10": (domains.ProbabilitySimplex(10), 2000),
    "box of 10": (domains.Box(jnp.zeros(10), jnp.ones(10)), 2000),
    "simplex of 1,000": (domains.ProbabilitySimplex(1000), 1000),
    "box of 1,000": (domains.Box(jnp.zeros(1000), jnp.ones(1000)), 1000),
    "nuclear ball, 50 x 50": (domains.NuclearNormBall((50, 50), 10.0), 200),
    "nuclear ball, 1000 x 1000": (domains.NuclearNormBall((1000, 1000), 10.0), 128),  # the first 64 moves cost more
}


def compiled(problem, learner, rounds):
    """The compiled game, and how long compiling took."""
    game = jax.jit(lambda rounds: cx.play(problem, learner, rounds, key=jax.random.key(1)).loss.sum())
    with own_program():
        traced = game.trace(rounds)
    lowered, options = traced.lower(), game_options(traced)
    begin = time.process_time()
    return lowered.compile(compiler_options=options), time.process_time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    repeats = parser.parse_args().repeats
    print("| a round, in microseconds (compiling, in seconds) | " + " | ".join(LEARNERS) + " | ratio |")
    print("|---|---|---|---|")
    for place, (domain, count) in PLACES.items():
        problem = cx.Problem(domain, lambda x, r: 0.5 * jnp.sum((x - r) ** 2), lambda x, r: x.ravel()[0] - 0.2)
        rounds = jax.random.uniform(jax.random.key(0), (count, *domain.shape))
        games = [compiled(problem, learner, rounds) for learner in LEARNERS.values()]
        best = [float("inf")] * len(games)
        for _ in range(repeats):
            for i, (game, _) in enumerate(games):
                begin = time.process_time()
                game(rounds).block_until_ready()
                best[i] = min(best[i], (time.process_time() - begin) / count)
        cells = [f"{1e6 * spent:.3g} ({seconds:.1f})" for spent, (_, seconds) in zip(best, games)]
        print(f"| {place} | " + " | ".join(cells) + f" | {best[1] / best[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
