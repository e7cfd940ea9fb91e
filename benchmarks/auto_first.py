"""How long a new process takes to its first result: Auto on the paper's 50 x 50 problem, 100 rounds, without caches.

python -m benchmarks.auto_first [--repeats 5] [--old COMMIT]

Processes of this code and of an older commit run in turn: by default the last one in which `Auto` was version 1. They
run what a user writes, with nothing of cocoax's inner parts. CPU time, which is what is told on a busy machine, counts
from the start of the interpreter; so does the time by the clock, from when the process was asked for.
"""

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSION_1 = "582b676^"
GAME = """
import json, sys, time
began, spent, last = float(sys.argv[1]), {}, (0.0, 0.0)
def lap(step):
    global last
    now = time.process_time(), time.time() - began
    spent[step], last = [a - b for a, b in zip(now, last)], now
import jax
import cocoax as cx
cx.problems.matrix_completion, cx.learners.Auto, cx.play
lap("start and import")
instance = cx.problems.matrix_completion(jax.random.key(0))
lap("problem")
rounds = jax.block_until_ready(instance.rounds(100, jax.random.key(1)))
lap("rounds")
game = cx.play(instance.problem, cx.learners.Auto(), rounds, key=jax.random.key(2))
float(game.loss.sum())
lap("game")
spent["in all"] = last
print(json.dumps(spent))
"""


def fresh(source: Path, code: str = GAME) -> dict[str, list[float]]:
    """What a new process prints, which reads cocoax from `source`: by default CPU and clock seconds of each step."""
    without = {"JAX_ENABLE_COMPILATION_CACHE": "false", "COCOAX_CACHE": "0", "JAX_PLATFORMS": "cpu"}
    env = {**os.environ, **without, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", code, repr(time.time())]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"a new process failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def extracted(commit: str, folder: str) -> Path:
    """The sources of an older commit."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, filter="data")
    return Path(folder) / "src"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--old", default=VERSION_1, metavar="COMMIT")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = {options.old: extracted(options.old, folder), "present": ROOT / "src"}
        for source in sources.values():
            fresh(source)  # reads the files from disk, and writes bytecode
        runs = {name: [] for name in sources}
        for _ in range(options.repeats):
            for name, source in sources.items():
                runs[name].append(fresh(source))
    titles = [f"{name}, {clock}" for name in sources for clock in ("CPU", "clock")]
    print("| seconds, least (median) | " + " | ".join(titles) + " |")
    print("|---|" + "---|" * len(titles))
    for step in runs["present"][0]:
        samples = [[run[step][clock] for run in runs[name]] for name in sources for clock in (0, 1)]
        cells = [f"{min(each):.2f} ({statistics.median(each):.2f})" for each in samples]
        print(f"| {step} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
