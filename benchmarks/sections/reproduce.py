"""The paper in one command: `cocoax reproduce`, from the start of a new process to its report.

All learners and both problems, 30 instances and all horizons on a GPU; `--quick` on a CPU. Cold has no compilation
cache; warm has what an earlier run left in JAX's.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import row

TINY = ["--instances", "2", "--horizons", "10", "--learners", "play the start"]


def seconds(device, words, cache):
    """Of the whole command, imports, compilation and report included."""
    env = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache)}
    if device == "cpu":
        env["JAX_PLATFORMS"] = "cpu"
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "cocoax.cli", "reproduce", "--quiet", "--out", out, *words]
        began = time.perf_counter()
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        spent = time.perf_counter() - began
        if done.returncode or not (Path(out) / "report.html").exists():
            raise RuntimeError(f"the command failed: {(done.stderr.strip() or 'no report').splitlines()[-1]}")
    return spent


def measure(device, quick):
    whole = device == "gpu" and not quick
    words = [] if whole else TINY if quick else ["--quick"]
    case, repeats = ("reproduce", 2) if whole else ("reproduce, small", 1)
    spent = {"cold": [], "warm cache": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            for each in spent.values():
                each.append(seconds(device, words, cache))
    target = ("<=", 30.0) if whole else None
    return [
        row(case, "cold", spent["cold"], target=target),
        row(case, "warm cache", spent["warm cache"], over="cold", ours=spent["cold"]),
    ]
