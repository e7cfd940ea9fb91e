"""The paper in one command: `cocoax reproduce`, from the start of a new process to its report.

All learners and both problems, 30 instances and all horizons on a GPU; `--quick` on a CPU. Cold has no compilation
cache; warm has what an earlier run left in JAX's. The packages were imported once before, so that their files are in
memory.
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
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    env.pop("JAX_COMPILATION_CACHE_DIR", None)
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
    case, target = ("reproduce", ("<=", 30.0)) if whole else ("reproduce, small", None)
    loaded = "import cocoax.lab.report, jax, matplotlib.pyplot; jax.devices()"
    subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True)
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = ([seconds(device, words, cache)] for _ in range(2))
    return [row(case, "cold", cold, target=target), row(case, "warm cache", warm, over="cold", ours=cold)]
