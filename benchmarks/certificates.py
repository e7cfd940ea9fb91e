"""The online certificate against the true regret, and the guard around Auto, on the arena.

python -m benchmarks.certificates [--seeds 10] [--rounds 1000] [--workers 1] [--factors 4] [problem ...]
python -m benchmarks.certificates --summary

For each problem and learner: in how many games a bound was below the regret (beyond rounding), and the means over seeds
of regret and bound. `Guarded` plays Auto's decisions if it never switches: how often it did, for each factor.
What is found goes into benchmarks/results/certificates.json, problem by problem; those that are there already are left
out, so a run that was stopped goes on (`--again` plays them again). `--summary` sums up what is there.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax import learners, primal
from cocoax.errors import CocoaxError
from cocoax.lab.arena.problems import ARENA, VERSION_1
from cocoax.lab.sources import as_source

RESULTS = Path(__file__).parent / "results" / "certificates.json"
TOLERANCE = 1e-5  # of the comparators
ROUNDING = 1e-9  # of the sum of all |losses|, in float64
LEARNERS = {
    "Auto": learners.Auto(),
    "Stay": learners.Stay(),
    "TrackedPI": learners.TrackedPI(),
    "Algorithm 1 + OCG": learners.Blocks(primal.OCG()),
    "PDMFW": learners.PDMFW(),
    "PDOFW": learners.PDOFW(),
    "LyapStoch": learners.LyapStoch(),
    "DPP": learners.DPP(),
}


def measure(name, seeds, rounds, factors):
    """A row for each learner, and for each factor how often the guard switched."""
    jax.config.update("jax_enable_x64", True)
    drawn = [as_source("benchmark", ARENA[name]).draw(seed, rounds) for seed in range(seeds)]
    best = [each.comparator(rounds, TOLERANCE) for each in drawn]
    problems = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[each.problem for each in drawn])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[each.rounds for each in drawn])
    rows = {}
    for title, learner in LEARNERS.items():
        try:
            rows[title] = _row(_play(problems, stacked, learner, certify=rounds), best)
        except (CocoaxError, ValueError, TypeError) as error:
            rows[title] = {"refused": str(error)[:100]}
    switched = {f"{factor:g}": _switched(problems, stacked, factor) for factor in factors}
    return {"rounds": rounds, "seeds": seeds, "learners": rows, "switched": switched}


def _play(problems, rounds, learner, **options):
    return jax.vmap(lambda p, r: cx.play(p, learner, r, key=jax.random.key(0), **options))(problems, rounds)


def _row(games, best):
    certificate = games.certificate()
    loss = np.asarray(games.loss, np.float64)
    regret = loss.sum(1) - np.array([each.value for each in best])
    beyond = np.array([each.constraint.sum(0) for each in best])  # the comparator meets them in expectation
    slack = (certificate.multiplier * np.maximum(beyond, 0)).sum(1) + ROUNDING * np.abs(loss).sum(1)
    return {
        "regret": regret.mean(),
        "bound": certificate.regret.mean(),
        "below": int((certificate.regret < regret - slack).sum()),
        "games": len(regret),
    }


def _switched(problems, rounds, factor):
    learner = learners.Guarded(learners.Auto(), learners.Stay(), factor=factor, regret=0.75, violation=0.75)
    state = _play(problems, rounds, learner).state
    return int(np.sum(getattr(state, "learner", state).switched))  # with movement, the state is one level down


def summary(found):
    """The figures that the docs quote."""
    rows = [row for one in found.values() for row in one["learners"].values() if "games" in row]
    games, below = sum(row["games"] for row in rows), sum(row["below"] for row in rows)
    print(f"{len(found)} problems, {games} games; bounds below the regret: {below}.")
    for factor in sorted({factor for one in found.values() for factor in one["switched"]}, key=float):
        there = [(one["switched"][factor], one["seeds"]) for one in found.values() if factor in one["switched"]]
        switched, played = (sum(column) for column in zip(*there))
        print(f"The guard with the factor {factor} switched in {switched} of {played}.")


def main(arguments):
    unknown = [name for name in arguments.problems if name not in ARENA]
    if unknown:
        sys.exit(f"the arena has no {unknown[0]!r}; it has {', '.join(map(repr, ARENA))}")
    found = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    if arguments.summary:
        summary(found)
        return
    wanted = [name for name in arguments.problems or [*VERSION_1, *ARENA] if arguments.again or name not in found]
    os.environ |= {"JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # of the workers
    settings, spawn = (arguments.seeds, arguments.rounds, arguments.factors), multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(arguments.workers, spawn, max_tasks_per_child=1) as workers:
        running = {workers.submit(measure, name, *settings): name for name in dict.fromkeys(wanted)}
        for done in concurrent.futures.as_completed(running):
            name, result = running[done], done.result()
            found = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}  # others may have written
            arguments.out.write_text(json.dumps(found | {name: result}, indent=1) + "\n")
            auto, start = (result["learners"][title] for title in ("Auto", "Stay"))
            print(
                f"{name}: Auto {auto['regret']:.3g}, bound {auto['bound']:.3g}, start {start['regret']:.3g}", flush=True
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--factors", type=lambda text: [float(part) for part in text.split(",")], default=[4.0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--summary", action="store_true")
    main(parser.parse_args())
