"""The online certificate against the true regret, and the guard around Auto, on the arena.

python -m benchmarks.certificates [--workers N] [--seeds N] [--out FILE] [problem ...]

For each problem and learner: in how many games the bound was below the regret (beyond rounding), and at the horizon of
1000 rounds the means over seeds of regret, bound, and the regret of staying at the start. `Guarded` plays Auto's
decisions if it never switches: how often it did, for several factors.
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
from cocoax.lab.arena.problems import ARENA
from cocoax.lab.sources import as_source

HORIZON = 1000
FACTORS = (0.5, 1.0, 2.0, 4.0)
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


def measure(name, seeds):
    """A row for each learner, and for each factor whether the guard switched."""
    jax.config.update("jax_enable_x64", True)
    drawn = [as_source("benchmark", ARENA[name]).draw(seed, HORIZON) for seed in range(seeds)]
    best = [each.comparator(HORIZON, 1e-5) for each in drawn]
    problems, rounds = (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        for each in ([d.problem for d in drawn], [d.rounds for d in drawn])
    )
    rows = {}
    for title, learner in LEARNERS.items():
        try:
            games = _play(problems, learner, rounds)
        except (CocoaxError, ValueError, TypeError) as error:
            print(f"{name}: {title}: {str(error)[:100]}", flush=True)
            continue
        certificate = games.certificate()
        bound = certificate.regret
        loss = np.asarray(games.loss, np.float64)
        regret = loss.sum(1) - np.array([each.value for each in best])
        beyond = np.array([each.constraint.sum(0) for each in best])  # the comparator meets them in expectation
        slack = (certificate.multiplier * np.maximum(beyond, 0)).sum(1) + 1e-9 * np.abs(loss).sum(1)
        below = bound < regret - slack
        rows[title] = {"regret": regret.mean(), "bound": bound.mean(), "below": int(below.sum()), "games": len(bound)}
    switched = np.asarray(_guarded(problems, jnp.array(FACTORS), rounds))
    return name, {"rows": rows, "switched": {str(c): int(s) for c, s in zip(FACTORS, switched.sum(0))}}


def _play(problems, learner, rounds):
    return jax.vmap(lambda p, r: cx.play(p, learner, r, key=jax.random.key(0), certify=True))(problems, rounds)


def _guarded(problems, factors, rounds):
    def switched(problem, factor, rounds):
        learner = learners.Guarded(learners.Auto(), learners.Stay(), factor=factor, regret=0.75, violation=0.75)
        state = cx.play(problem, learner, rounds, key=jax.random.key(0)).state
        return getattr(state, "learner", state).switched  # with movement, the state is one level down

    return jax.vmap(lambda p, r: jax.vmap(lambda c: switched(p, c, r))(factors))(problems, rounds)


def main(arguments):
    unknown = [name for name in arguments.problems if name not in ARENA]
    if unknown:
        sys.exit(f"the arena has no {unknown[0]!r}; it has {', '.join(map(repr, ARENA))}")
    os.environ |= {"JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # of the workers
    spawn, found = multiprocessing.get_context("spawn"), {}
    with concurrent.futures.ProcessPoolExecutor(arguments.workers, spawn) as workers:
        running = [workers.submit(measure, name, arguments.seeds) for name in arguments.problems or ARENA]
        for done in concurrent.futures.as_completed(running):
            name, result = done.result()
            found[name] = result
            auto, stay = result["rows"]["Auto"], result["rows"]["Stay"]
            below = sum(row["below"] for row in result["rows"].values())
            games = sum(row["games"] for row in result["rows"].values())
            print(
                f"{name}: Auto {auto['regret']:.3g}, bound {auto['bound']:.3g}, start {stay['regret']:.3g}; "
                f"below the regret {below} of {games}; switched {result['switched']}",
                flush=True,
            )
            if arguments.out:
                arguments.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path)
    main(parser.parse_args())
