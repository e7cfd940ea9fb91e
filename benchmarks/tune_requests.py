"""Tunes the rivals of `cocoax race requests` on seeds that are never reported; rewrites tuned_requests.json.

python -m benchmarks.tune_requests [problem ...]
"""

import json
import sys
from pathlib import Path

import cocoax as cx
from cocoax.lab.arena import requests, tuning

FILE = Path(requests.__file__).with_name("tuned_requests.json")


def tune(name):
    """By family, the best numbers and their mean score."""
    tuner = tuning.Tuner(name, requests.REQUESTS[name], horizon=requests.HORIZON, finalists=4)
    found = {family: tuner.tune(method) for family, method in requests.FAMILIES.items()}
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
