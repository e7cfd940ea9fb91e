"""What rivals were tuned on, by `benchmarks.tune`: seeds that are never reported."""

import functools
import importlib.resources
import json
from collections.abc import Sequence

from ...errors import LabError

SEEDS = range(1000, 1005)
HORIZON = 1000
TOLERANCE = 1e-5  # of the comparators


@functools.cache
def tuned(file: str = "tuned.json", what: str = "problems") -> dict[str, dict[str, dict]]:
    """What tuning came to, by problem and family; the file says which program made it."""
    text = importlib.resources.files("cocoax.lab.arena").joinpath(file).read_text("utf-8")
    return json.loads(text)[what]


def unseen(seeds: Sequence[int]) -> Sequence[int]:
    """The seeds; raises `LabError` if rivals were tuned on one of them."""
    used = sorted(set(seeds) & set(SEEDS))
    if used:
        raise LabError(f"rivals were tuned on the seed {used[0]}; give seeds other than {SEEDS}")
    return seeds
