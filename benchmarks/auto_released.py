"""A round of `Auto` as users play it, now and in the last commit in which it was version 1: CPU time of `cx.play`.

python -m benchmarks.auto_released [--repeats 3] [--games 8] [--old COMMIT]

Processes of both run in turn. A round is a whole call of `play` that goes on from a state, over its number of rounds,
the least of all calls and processes. Each version is compiled as its own `play` does it.
"""

import argparse
import tempfile

import jax
import jax.numpy as jnp

import cocoax as cx
from benchmarks.auto_first import ROOT, VERSION_1, extracted, fresh

PLACES = {  # and with how many rounds a round there is timed
    "simplex of 10": (lambda: cx.domains.ProbabilitySimplex(10), 2000),
    "box of 10": (lambda: cx.domains.Box(jnp.zeros(10), jnp.ones(10)), 2000),
    "simplex of 1,000": (lambda: cx.domains.ProbabilitySimplex(1000), 1000),
    "box of 1,000": (lambda: cx.domains.Box(jnp.zeros(1000), jnp.ones(1000)), 1000),
    "nuclear ball, 50 x 50": (lambda: cx.domains.NuclearNormBall((50, 50), 10.0), 200),
    "nuclear ball, 1000 x 1000": (lambda: cx.domains.NuclearNormBall((1000, 1000), 10.0), 256),
}
GAMES = """
import json, time
import jax
import cocoax as cx
from benchmarks.auto_released import drawn

spent = {}
for place in CHOSEN:
    problem, rounds = drawn(place)
    state, least = None, float("inf")
    for _ in range(2 + COUNT):  # the first two compile
        begin = time.process_time()
        game = jax.block_until_ready(cx.play(problem, cx.learners.Auto(), rounds, key=jax.random.key(1), state=state))
        least = min(least, time.process_time() - begin)
        state = game.state if state is None else state
    spent[place] = least / len(rounds)
print(json.dumps(spent))
"""


def drawn(place):
    """A problem, and its rounds; in old versions, too."""
    make, count = PLACES[place]
    domain = make()
    problem = cx.Problem(domain, lambda x, r: 0.5 * jnp.sum((x - r) ** 2), lambda x, r: x.ravel()[0] - 0.2)
    return problem, jax.random.uniform(jax.random.key(0), (count, *domain.shape))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--games", type=int, default=8)
    parser.add_argument("--old", default=VERSION_1, metavar="COMMIT")
    options = parser.parse_args()
    code = GAMES.replace("COUNT", str(options.games)).replace("CHOSEN", repr(list(PLACES)))
    with tempfile.TemporaryDirectory() as folder:
        sources = extracted(options.old, folder), ROOT / "src"
        runs = [[fresh(source, code) for source in sources] for _ in range(options.repeats)]
    print(f"| a round, in microseconds | {options.old} | present | ratio |\n|---|---|---|---|")
    for place in runs[0][0]:
        old, new = (1e6 * min(pair[i][place] for pair in runs) for i in (0, 1))
        print(f"| {place} | {old:.3g} | {new:.3g} | {new / old:.2f} |")


if __name__ == "__main__":
    main()
