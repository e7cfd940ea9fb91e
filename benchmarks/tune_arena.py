"""Tunes the arena's rivals on seeds that are never reported: rewrites src/cocoax/lab/tuned.json.

OPENBLAS_NUM_THREADS=1 python -m benchmarks.tune_arena [problem ...]

Problems that are not named keep their numbers, so that the work can be done in parts. Takes about an hour and a half
of one core, most of it for projections of matrices.
"""

import json
import sys
import time
from pathlib import Path

import jax

import cocoax as cx
from cocoax.errors import CocoaxError
from cocoax.lab.arena import tuning
from cocoax.lab.arena.rivals import FAMILIES
from cocoax.lab.arena.suite import ARENA

FILE = Path(tuning.__file__).with_name("tuned.json")
# A projection takes 10 ms there.
COARSE = {"completion, 200 x 200": {"thin": 2, "screened": 1, "finalists": 3, "seeds": tuning.SEEDS[:3]}}


def main(names):
    unknown = [name for name in names if name not in ARENA]
    if unknown:
        sys.exit(f"the arena has no {unknown[0]!r}; it has {', '.join(map(repr, ARENA))}")
    for name in names or ARENA:
        keep(name, tune(name))
        jax.clear_caches()


def tune(name):
    """By family, the best numbers; families that cannot play the problem are left out."""
    tuner, found = tuning.Tuner(name, ARENA[name], **COARSE.get(name, {})), {}
    for family, each in FAMILIES.items():
        began = time.perf_counter()
        try:
            best = tuner.tune(each)
        except CocoaxError as error:
            print(f"{name}: {family}: {error}", flush=True)
            continue
        found[family] = {"numbers": best.numbers, "score": best.score}
        edge = f", at the edge of {' and '.join(best.at_edge)}" if best.at_edge else ""
        seconds = time.perf_counter() - began
        print(f"{name}: {family}: {best.score:.4g} with {best.numbers}{edge} ({seconds:.0f} s)", flush=True)
    return found


def keep(name, found):
    """Write them down, beside those of the other problems."""
    known = json.loads(FILE.read_text())["problems"] if FILE.exists() else {}
    known[name] = found
    made = {
        "command": "OPENBLAS_NUM_THREADS=1 python -m benchmarks.tune_arena",
        "cocoax": cx.__version__,
        "jax": jax.__version__,
        "horizon": tuning.HORIZON,
        "seeds": list(tuning.SEEDS),
        "problems": {problem: known[problem] for problem in ARENA if problem in known},
    }
    FILE.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
