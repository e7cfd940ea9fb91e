"""Tunes the rivals of the arena of 2026 on the first 30% of each series: rewrites src/cocoax/lab/arena/tuned_2026.json.

python -m benchmarks.tune_arena_2026 [series ...]

Series that are not named keep their numbers and their hash. Real ones need `cocoax data fetch --all`.
"""

import argparse
import json
import time
from pathlib import Path

import jax

import cocoax as cx
from cocoax.errors import CocoaxError
from cocoax.lab.arena import series
from cocoax.problems.real import RealInstance

from .tuning import FAMILIES, Tuner

FILE = Path(series.__file__).with_name("tuned_2026.json")
TUNED = [name for name in FAMILIES if not name.startswith("Algorithm")]  # those of the paper are far behind
# A projection there sorts all paths once for each demand.
FEW = {"backbone, Abilene": ["Tracked with ascent", "ORGFW with a virtual queue"]}
COARSE = {"thin": 2, "screened": 1, "finalists": 1, "shifts": 1, "tol": 1e-3}


def tune(name):
    """The hash of a series, and by family the best numbers on its first part."""
    found = series.series(name)
    first = RealInstance(found.problem, found.part(0, found.tuning))
    tuner, results = Tuner(name, first, seeds=range(1), horizon=found.tuning, **COARSE), {}
    for family in FEW.get(name, TUNED):
        began = time.perf_counter()
        try:
            best = tuner.tune(FAMILIES[family])
        except (CocoaxError, ValueError, TypeError, RuntimeError) as error:
            print(f"{name}: {family}: {error!s:.100}", flush=True)
            continue
        if best.score < float("inf"):
            results[family] = {"numbers": best.numbers, "score": best.score}
        print(f"{name}: {family}: {best.score:.4g}, {time.perf_counter() - began:.0f} s", flush=True)
    jax.clear_caches()
    return {"hash": found.digest, "families": results}


def main(names):
    for name in names or series.SERIES:
        result = tune(name)
        known = json.loads(FILE.read_text())["series"] if FILE.exists() else {}
        known[name] = result
        made = {
            "command": "python -m benchmarks.tune_arena_2026",
            "cocoax": cx.__version__,
            "jax": jax.__version__,
            "series": {each: known[each] for each in series.SERIES if each in known},
        }
        FILE.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="*")
    main(parser.parse_args().series)
