"""What the lab's engine costs a batch.

python -m benchmarks.cluster [--batches 10000] [--workers 2]

Many batches of learners that do nothing are played, with ten horizons each. A batch is one stored file, here of
one game. All share one compiled program, so that the rest is the engine's. The memory of the coordinator, which writes
the batches, is printed as it goes: it must not grow with them.
"""

import argparse
import functools
import os
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import psutil
from jaxtyping import Array

import cocoax as cx
from cocoax.lab import Study
from cocoax.lab.results.store import Store
from cocoax.lab.run import cluster

_HORIZONS = 10  # of each learner


class Nothing(cx.learners.Stay):
    """Does nothing; the number makes it another learner."""

    number: Array


class Counted(Store):
    """Prints the memory of this process as batches are stored."""

    stored = 0

    def append(self, kind, batch):
        super().append(kind, batch)
        Counted.stored += 1
        if Counted.stored in (500, 1000) or Counted.stored % 2000 == 0:
            memory = psutil.Process().memory_info().rss / 2**20
            print(f"{Counted.stored:,} batches: {memory:.0f} MiB in the coordinator", flush=True)


def processor_seconds(processes) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def engine(batches: int, workers: int):
    """Print what the engine costs a batch."""
    Counted.stored = 0
    problems = {"simplex": functools.partial(cx.problems.simplex, n=2)}
    learners = {f"nothing {i}": Nothing(jnp.asarray(float(i))) for i in range(-(-batches // _HORIZONS))}
    with tempfile.TemporaryDirectory() as folder, cluster.started(workers, None) as started:
        client = started()
        study = Study(problems, learners, range(1, _HORIZONS + 1), seeds=[0], out=folder)
        study.store = Counted(Path(folder) / "store")
        here, there = [psutil.Process()], [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        before, began = (processor_seconds(here), processor_seconds(there)), time.perf_counter()
        study.run(quiet=True, client=client)
        seconds = time.perf_counter() - began
        own, others = processor_seconds(here) - before[0], processor_seconds(there) - before[1]
    wall, own, others = (1e3 * value / Counted.stored for value in (seconds, own, others))
    print(f"load {os.getloadavg()[0]:.1f}, {workers} workers: {wall:.1f} ms a batch; processor time a batch: ", end="")
    print(f"{own:.1f} ms in the coordinator, {others:.1f} ms in the workers")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    engine(**vars(parser.parse_args()))
