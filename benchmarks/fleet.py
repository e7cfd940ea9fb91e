"""A fleet of many campaigns on disk: opening, memory, and durable rounds a second, in batches.

python -m benchmarks.fleet [--campaigns 100000] [--batch 1000] [--batches 200] [--requests [--sample 64]] [--pending 4]

With --requests, DualMirrorDescent decides after each request, and the requests are on disk before the decisions come;
with --sample, AutoPrice, which remembers so many requests. With --pending, each campaign has so many tickets that wait,
and one copy of the learner; tickets are on disk before their decisions come, and the oldest one is observed.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

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


def main(campaigns, batch, batches, requests=False, sample=0, pending=0):
    it, learner = problem(requests), cx.learners.DualMirrorDescent(0.1) if requests else cx.learners.Auto()
    if sample:
        learner = cx.learners.AutoPrice(sample=sample)
    late: Any = {"pending": pending, "copies": 1} if pending else {}
    draw = np.random.default_rng(0)
    names = np.array([f"campaign {i}" for i in range(campaigns)])
    rounds = {name: draw.random((batch, SEGMENTS), dtype=np.float32) for name in ("value", "cost")}
    rounds["budget"] = np.full(batch, 1.5, np.float32)
    with tempfile.TemporaryDirectory() as folder:
        before, path = handles(), Path(folder) / "fleet"
        fleet = cx.Fleet(it, learner, path, key=jax.random.key(0), **late)

        def turn(chosen):
            fleet.decide(chosen, rounds if requests else None)
            tickets = fleet.rounds(chosen).astype(str).tolist() if pending else None  # the oldest: all come in order
            fleet.observe(chosen, None if requests else rounds, tickets=tickets)

        for start in range(0, campaigns, batch):
            fleet.begin(names[start : start + batch].tolist())
        for _ in range(pending - 1):
            for start in range(0, campaigns, batch):
                fleet.decide(names[start : start + batch].tolist(), rounds if requests else None)
        for _ in range(1 + 2 * pending):  # compiles
            turn(draw.choice(names, batch, replace=False).tolist())
        began = time.perf_counter()
        for _ in range(batches):
            turn(draw.choice(names, batch, replace=False).tolist())
        rate = batch * batches / (time.perf_counter() - began)
        opened = handles() - before
        fleet.close()
        began = time.perf_counter()
        with cx.Fleet(it, learner, path, **late):
            seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{campaigns:,} campaigns of {learner.known_as} with {SEGMENTS} segments, load {os.getloadavg()[0]:.1f}:")
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
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--pending", type=int, default=0)
    main(**vars(parser.parse_args()))
