"""A fleet of many campaigns on disk: opening, memory, and durable rounds a second, in batches.

python -m benchmarks.fleet [--campaigns 100000] [--batch 1000] [--batches 200] [--requests]

With --requests, DualMirrorDescent decides after each request, and the requests are on disk before the decisions come.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx

SEGMENTS = 10


def problem(request=False):
    def loss(x, r):
        return -jnp.vdot(r["value"], x)

    def constraint(x, r):
        return jnp.vdot(r["cost"], x) - r["budget"]

    return cx.Problem(cx.domains.Box(jnp.zeros(SEGMENTS), jnp.ones(SEGMENTS)), loss, constraint, request=request)


def main(campaigns, batch, batches, requests=False):
    it, called = problem(requests), "DualMirrorDescent" if requests else "Auto"
    learner = cx.learners.DualMirrorDescent(0.1) if requests else cx.learners.Auto()
    draw = np.random.default_rng(0)
    names = np.array([f"campaign {i}" for i in range(campaigns)])
    rounds = {name: draw.random((batch, SEGMENTS), dtype=np.float32) for name in ("value", "cost")}
    rounds["budget"] = np.full(batch, 1.5, np.float32)
    with tempfile.TemporaryDirectory() as folder:
        before, path = handles(), Path(folder) / "fleet"
        fleet = cx.Fleet(it, learner, path, key=jax.random.key(0))

        def turn(chosen):
            fleet.decide(chosen, rounds if requests else None)
            fleet.observe(chosen, None if requests else rounds)

        for start in range(0, campaigns, batch):
            some = names[start : start + batch].tolist()
            fleet.decide(some, {name: column[: len(some)] for name, column in rounds.items()} if requests else None)
            if requests:
                fleet.skip(some)
        turn(names[:batch].tolist())  # compiles
        began = time.perf_counter()
        for _ in range(batches):
            turn(draw.choice(names, batch, replace=False).tolist())
        rate = batch * batches / (time.perf_counter() - began)
        opened = handles() - before
        fleet.close()
        began = time.perf_counter()
        with cx.Fleet(it, learner, path):
            seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{campaigns:,} campaigns of {called} with {SEGMENTS} segments, load {os.getloadavg()[0]:.1f}:")
    print(f"{rate:,.0f} durable decisions and rounds a second in batches of {batch:,}; opens in {seconds:.2f} s; ")
    print(f"{memory:,.0f} MiB at most in the process; {opened} file handles")


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--requests", action="store_true")
    main(**vars(parser.parse_args()))
