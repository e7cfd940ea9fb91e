"""Tunes the arena's rivals on seeds that are never reported: rewrites src/cocoax/lab/arena/tuned.json.

python -m benchmarks.tune_arena [--workers N | --cluster tcp://head:8786] [--out FILE] [problem ...]

Problems that are not named keep their numbers, so that the work can be done in parts. A task tunes some families on one
problem; tasks run as a study's do (docs/cluster.md): in this process, in N processes, or on the workers of a cluster.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import jax

import cocoax as cx
from cocoax.errors import CocoaxError
from cocoax.lab.arena import tuning
from cocoax.lab.arena.problems import ARENA, tuned_horizon
from cocoax.lab.run import cluster as clusters
from cocoax.lab.run.pools import completed, pool_of

from .tuning import FAMILIES, Tuner

FILE = Path(tuning.__file__).with_name("tuned.json")
SHIFTS = 2  # of a grid at whose end the best numbers lie
# A projection takes 0.5 to 20 ms there.
COARSE = {
    name: {"thin": 2, "screened": 1, "finalists": 4, "seeds": tuning.SEEDS[:3], "shifts": 1}
    for name in ("completion", "completion, binding", "completion, rank 5")
} | {
    "completion, 200 x 200": {"thin": 3, "screened": 1, "finalists": 2, "seeds": tuning.SEEDS[:2], "shifts": 0},
    "100,000 experts": {"thin": 2, "screened": 1, "finalists": 3, "seeds": tuning.SEEDS[:2], "shifts": 1},
}


def main(arguments):
    unknown = [name for name in arguments.problems if name not in ARENA]
    if unknown:
        sys.exit(f"the arena has no {unknown[0]!r}; it has {', '.join(map(repr, ARENA))}")
    names = arguments.problems or list(ARENA)
    dear = [(name, (family,)) for name in reversed(COARSE) if name in names for family in FAMILIES]  # dearest first
    tasks = dear + [(name, tuple(FAMILIES)) for name in names if name not in COARSE]
    found = {}
    with clusters.started(arguments.workers, arguments.cluster) as client:
        pool, waiting = pool_of(dask := client()), iter(tasks)
        if dask is not None:
            import cloudpickle

            cloudpickle.register_pickle_by_value(sys.modules["benchmarks"])  # workers elsewhere have cocoax alone
        for (name, _), future in completed(pool, lambda: next(waiting, None), lambda task: pool.call(tune, *task)):
            results, report = future.result()
            print("\n".join(report), flush=True)
            found[name] = found.get(name, {}) | results
            keep(found, arguments.out)  # what is done stays, should the rest be killed


def tune(name, families):
    """By family, the best numbers, and what to print; families that cannot play the problem are left out."""
    began = time.perf_counter()
    options: dict[str, Any] = {"horizon": tuned_horizon(name), "shifts": SHIFTS} | COARSE.get(name, {})
    tuner, found = Tuner(name, ARENA[name], **options), {}
    report = [f"{name}: comparators ({time.perf_counter() - began:.0f} s)"]
    for family in families:
        began = time.perf_counter()
        try:
            best = tuner.tune(FAMILIES[family])
        except (CocoaxError, ValueError, TypeError, RuntimeError) as error:
            report.append(f"{name}: {family}: {error}")
            continue
        if best.score == float("inf"):
            report.append(f"{name}: {family}: goes bad with all numbers")
            continue
        found[family] = {"numbers": best.numbers, "score": best.score}
        edge = f", at the edge of {' and '.join(best.at_edge)}" if best.at_edge else ""
        seconds = time.perf_counter() - began
        report.append(f"{name}: {family}: {best.score:.4g} with {best.numbers}{edge} ({seconds:.0f} s)")
    jax.clear_caches()
    return found, report


def keep(found, file):
    """Write them down, beside those of the other problems."""
    known = json.loads(FILE.read_text())["problems"] if FILE.exists() else {}
    known |= {name: {family: each[family] for family in FAMILIES if family in each} for name, each in found.items()}
    made = {
        "command": "python -m benchmarks.tune_arena",
        "cocoax": cx.__version__,
        "jax": jax.__version__,
        "horizon": tuning.HORIZON,
        "seeds": list(tuning.SEEDS),
        "problems": {problem: known[problem] for problem in ARENA if problem in known},
    }
    file.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", metavar="problem")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--cluster")
    parser.add_argument("--out", type=Path, default=FILE)
    main(parser.parse_args())
