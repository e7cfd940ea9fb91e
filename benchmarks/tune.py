"""Tunes the rivals of an arena on what is never reported, and rewrites their numbers in src/cocoax/lab/arena.

python -m benchmarks.tune arena|arena-2026|requests [--workers N] [name ...]

`arena-2026` tunes on the first 30% of each series (its real ones need `cocoax data fetch --all`), the others on other
seeds. Problems that are not named keep their numbers, so that the work can be done in parts. Each worker is a process,
which tunes all families on one problem.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
from pathlib import Path
from typing import Any

import jax

import cocoax as cx
from cocoax.errors import CocoaxError
from cocoax.lab.arena import requests, series, tuning
from cocoax.lab.arena.problems import ARENA, tuned_horizon
from cocoax.problems.real import RealInstance

from .tuning import FAMILIES, Family, Tuner, Units, times

FOLDER = Path(tuning.__file__).parent
SHIFTS = 2  # of a grid at whose end the best numbers lie
# A projection takes 0.5 to 20 ms there.
COARSE: dict[str, dict[str, Any]] = {
    name: {"thin": 2, "screened": 1, "finalists": 4, "seeds": tuning.SEEDS[:3], "shifts": 1}
    for name in ("completion", "completion, binding", "completion, rank 5")
} | {
    "completion, 200 x 200": {"thin": 3, "screened": 1, "finalists": 2, "seeds": tuning.SEEDS[:2], "shifts": 0},
    "100,000 experts": {"thin": 2, "screened": 1, "finalists": 3, "seeds": tuning.SEEDS[:2], "shifts": 1},
}
OF_SERIES = [name for name in FAMILIES if not name.startswith("Algorithm")]  # those of the paper are far behind
# A projection there sorts all paths once for each demand.
FEW = {"backbone, Abilene": ["Tracked with ascent", "ORGFW with a virtual queue"]}


def _steps(units: Units) -> dict[str, list[float]]:
    return {"step": times(units.dual_step, -4, 1)}


def _gains(units: Units) -> dict[str, list[float]]:
    price = units.width * (units.dual_step / units.step) ** 0.5  # |grad f| / |grad g|
    return {"first": times(price, -1, 1), "proportional": [0.0, 0.1, 0.5], "integral": [0.003, 0.01, 0.03, 0.1]}


GRIDS = dict.fromkeys(requests.FAMILIES, _steps) | {"PID pacing": _gains}


def best_numbers(problem: str, tuner: Tuner, families: dict[str, Family]) -> dict[str, dict]:
    """By family; families that cannot play the problem, or go bad with all numbers, are left out."""
    found = {}
    for name, family in families.items():
        try:
            best = tuner.tune(family)
        except (CocoaxError, ValueError, TypeError, RuntimeError) as error:
            print(f"{problem}: {name}: {error!s:.200}", flush=True)
            continue
        if best.score < float("inf"):
            found[name] = {"numbers": best.numbers, "score": best.score}
    jax.clear_caches()
    return found


def tune_problem(name: str) -> dict[str, dict]:
    options = {"horizon": tuned_horizon(name), "shifts": SHIFTS} | COARSE.get(name, {})
    return best_numbers(name, Tuner(name, ARENA[name], **options), FAMILIES)


def tune_series(name: str) -> dict[str, Any]:
    """Its hash, and the numbers by family."""
    found, coarse = series.series(name), {"thin": 2, "screened": 1, "finalists": 1, "shifts": 1, "tol": 1e-3}
    first = RealInstance(found.problem, found.part(0, found.tuning))
    tuner = Tuner(name, first, seeds=range(1), horizon=found.tuning, **coarse)
    families = {family: FAMILIES[family] for family in FEW.get(name, OF_SERIES)}
    return {"hash": found.digest, "families": best_numbers(name, tuner, families)}


def tune_requests(name: str) -> dict[str, dict]:
    tuner = Tuner(name, requests.REQUESTS[name], horizon=requests.HORIZON, finalists=4)
    families = {family: Family(make, GRIDS[family]) for family, make in requests.FAMILIES.items()}
    return best_numbers(name, tuner, families)


ARENAS = {  # what tunes one problem, all problems, and the file with its key
    "arena": (tune_problem, ARENA, "tuned.json", "problems"),
    "arena-2026": (tune_series, series.SERIES, "tuned_2026.json", "series"),
    "requests": (tune_requests, requests.REQUESTS, "tuned_requests.json", "problems"),
}


def keep(arena, found, folder=FOLDER):
    """Write them down, beside those of the other problems."""
    _, known, file, key = ARENAS[arena]
    there = folder / file if (folder / file).exists() else FOLDER / file
    kept = json.loads(there.read_text())[key] | found
    made = {"command": f"python -m benchmarks.tune {arena}", "cocoax": cx.__version__, "jax": jax.__version__}
    made[key] = {name: kept[name] for name in known if name in kept}
    (folder / file).write_text(json.dumps(made, indent=1) + "\n")


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arena", choices=ARENAS)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args(given)
    tune, known, *_ = ARENAS[options.arena]
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"there is no {unknown[0]!r}; there are {', '.join(map(repr, known))}")
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.workers, spawn, max_tasks_per_child=1) as workers:
        running = {workers.submit(tune, name): name for name in options.names or known}
        for done in concurrent.futures.as_completed(running):
            keep(options.arena, {running[done]: done.result()})
            print(f"{running[done]}: {done.result()}", flush=True)


if __name__ == "__main__":
    main()
