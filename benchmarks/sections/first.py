"""Time to the first result, in new processes.

`import cocoax` against `import jax, equinox`, which it needs. It loads names when they are first asked for; so also
with those that a first problem asks for (a set, `Problem`, `Auto`, `play`). Then the steps to the first game (Auto on
the paper's problem, T = 100): tracing, lowering and compiling it as `play` does, and playing it. A warm cache is JAX's
persistent compilation cache, in which an earlier process left its programs.
"""

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.timing import ratios, row

IMPORT = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"
NEEDED = "import jax, equinox"
IMPORTS = {
    "import cocoax": "import cocoax",
    "import cocoax, a first problem's names": (
        f"{NEEDED}; import cocoax; cocoax.Problem; cocoax.play; cocoax.domains.Box; cocoax.learners.Auto"
    ),
    NEEDED: NEEDED,
}
GAME = """
import json, time
began = time.perf_counter()
def lap():
    global began
    now = time.perf_counter(); spent, began = now - began, now
    return spent
import cocoax as cx
import jax
from cocoax.core.compiling import SHORT, options
spent = {"import": lap()}
instance = cx.problems.matrix_completion(jax.random.key(0))
rounds = jax.block_until_ready(instance.rounds(100, jax.random.key(1)))
spent["problem and rounds"] = lap()
play = lambda problem, rounds, key: cx.play(problem, cx.learners.Auto(), rounds, key=key).loss
traced = jax.jit(play).trace(instance.problem, rounds, jax.random.key(2))
spent["trace"] = lap()
lowered = traced.lower()
spent["lower"] = lap()
compiled = lowered.compile(compiler_options=options(short_sums=instance.problem.domain.dimension <= SHORT))
spent["compile"] = lap()
jax.block_until_ready(compiled(instance.problem, rounds, jax.random.key(2)))
spent["play"] = lap()
print(json.dumps(spent))
"""


def fresh(code, device, **environment):
    """What a new process prints last."""
    env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **environment}
    if device == "cpu":
        env["JAX_PLATFORMS"] = "cpu"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"a new process failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def imports(device, repeats):
    spent = {name: [] for name in IMPORTS}
    for turn in range(repeats + 1):
        for name, statements in IMPORTS.items():
            seconds = fresh(IMPORT.format(statements), device)
            if turn:  # the first reads the files from disk
                spent[name].append(seconds)
    rows = [row("import", name, each, over=NEEDED, ours=spent[NEEDED]) for name, each in spent.items()]
    target = ("<=", 1.2) if repeats > 1 else None
    ratio = ratios(spent["import cocoax"], spent[NEEDED])
    return [*rows, row("import", "cocoax / jax, equinox", ratio, unit="x", target=target)]


def first_game(device, repeats):
    with tempfile.TemporaryDirectory() as folder:
        found = {"no cache": [], "warm cache": []}
        cached = {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        fresh(GAME, device, **cached)
        for _ in range(repeats):
            found["no cache"].append(fresh(GAME, device, JAX_ENABLE_COMPILATION_CACHE="false"))
            found["warm cache"].append(fresh(GAME, device, **cached))
    for each in (*found["no cache"], *found["warm cache"]):
        each["in all"] = sum(each.values())
    rows = []
    for step in found["no cache"][0]:
        samples = {case: [each[step] for each in runs] for case, runs in found.items()}
        for case, each in samples.items():
            rows.append(row(step, case, each, over="no cache", ours=samples["no cache"]))
    return rows


def measure(device, quick):
    return imports(device, 1 if quick else 9) + first_game(device, 1 if quick else 3)
