"""What a first call visits of cocoax: modules, functions and calls of Python."""

import collections
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp

import cocoax as cx

ROUNDS = 20
HERE = str(Path(cx.__file__).parent)


def visits(function) -> collections.Counter:
    """How often each function of cocoax is called, by file and name, while `function` runs."""
    counts = collections.Counter()

    def count(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HERE):
            counts[code.co_filename, code.co_qualname] += 1

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return counts


def main(names: list[str]):
    """Print a line for each call, on a simplex of 3; each in a process of its own, so that it is a first one."""
    domain = cx.domains.ProbabilitySimplex(3)
    problem = cx.Problem(domain, loss=lambda x, r: jnp.vdot(r, x), constraint=lambda x, r: x[2] - 0.25)
    rounds = jax.random.uniform(jax.random.key(1), (ROUNDS, 3))
    calls = {
        "play(Auto())": lambda: cx.play(problem, cx.learners.Auto(), rounds, key=jax.random.key(0)),
        "hindsight": lambda: cx.hindsight(problem, rounds),
    }
    if not names:
        for name in calls:
            subprocess.run([sys.executable, "-m", "benchmarks.visits", name], check=True)
    for name in names:
        counts = visits(calls[name])
        modules = {file for file, _ in counts}
        print(f"{name:14} {len(modules):4} modules {len(counts):5} functions {counts.total():7,} calls")


if __name__ == "__main__":
    main(sys.argv[1:])
