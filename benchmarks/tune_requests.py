"""Tunes the rivals of `cocoax race requests` on seeds that are never reported; rewrites tuned_requests.json.

python -m benchmarks.tune_requests [problem ...]
"""

import json
import sys
from pathlib import Path

import cocoax as cx
from cocoax.lab.arena import requests

from .tuning import Family, Tuner, Units, times

FILE = Path(requests.__file__).with_name("tuned_requests.json")


def _steps(units: Units) -> dict[str, list[float]]:
    return {"step": times(units.dual_step, -4, 1)}


def _gains(units: Units) -> dict[str, list[float]]:
    price = units.width * (units.dual_step / units.step) ** 0.5  # |grad f| / |grad g|
    return {"first": times(price, -1, 1), "proportional": [0.0, 0.1, 0.5], "integral": [0.003, 0.01, 0.03, 0.1]}


GRIDS = dict.fromkeys(requests.FAMILIES, _steps) | {"PID pacing": _gains}


def tune(name):
    """By family, the best numbers and their mean score."""
    tuner = Tuner(name, requests.REQUESTS[name], horizon=requests.HORIZON, finalists=4)
    families = {family: Family(make, GRIDS[family]) for family, make in requests.FAMILIES.items()}
    found = {family: tuner.tune(method) for family, method in families.items()}
    return {
        family: {"numbers": one.numbers, "score": one.score, "at_edge": one.at_edge} for family, one in found.items()
    }


def main(names):
    for name in names or requests.REQUESTS:
        kept = json.loads(FILE.read_text())["problems"] if FILE.exists() else {}
        kept[name] = tune(name)
        print(name, kept[name], flush=True)
        ordered = {one: kept[one] for one in requests.REQUESTS if one in kept}
        FILE.write_text(json.dumps({"cocoax": cx.__version__, "problems": ordered}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
