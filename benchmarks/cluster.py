"""What the lab's engine costs, and how long the paper's experiment takes with so many workers of this machine.

python -m benchmarks.cluster [--batches 10000] [--workers 2]
python -m benchmarks.cluster --reproduce [--workers 1 2 4 8] [--instances 30] [--larger 10] [-- OPTION ...]

The first plays many batches of learners that do nothing, with ten horizons each. A batch is one stored file, here of
one game. All share one compiled program, so that the rest is the engine's. The memory of the coordinator, which writes
the batches, is printed as it goes: it must not grow with them.

The second is `cocoax reproduce` without anything in a cache, once for each number of workers, and again with so many
times the instances. What follows `--` are further options of that command. It ends if two tables differ by a bit.
"""

import argparse
import functools
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import polars as pl
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


def reproduce(workers: list[int], sizes: list[int], options: list[str]):
    """Print a table of how long `cocoax reproduce` takes, by the number of instances and of workers."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; minutes, and processor seconds of all processes\n")
    print(
        "\n".join(
            f"| {' | '.join(cells)} |" for cells in (["instances", *map(str, workers)], ["---"] * (1 + len(workers)))
        )
    )
    for instances in sizes:
        runs = [_reproduced(count, instances, options) for count in workers]
        if not all(table.equals(runs[0][2]) for _, _, table in runs):
            sys.exit(f"the tables of {instances} instances differ")
        cells = [f"{seconds // 60:.0f}:{seconds % 60:02.0f} ({spent:.0f} s)" for seconds, spent, _ in runs]
        print(f"| {' | '.join([str(instances), *cells])} |", flush=True)


def _reproduced(workers, instances, options) -> tuple[float, float, pl.DataFrame]:
    """Seconds, processor seconds, and the table."""
    with tempfile.TemporaryDirectory() as folder:
        env = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
        given = {"instances": instances, "workers": workers, "out": f"{folder}/out"}
        words = [f"--{name}={value}" for name, value in given.items()]
        command = [sys.executable, "-m", "cocoax.cli", "reproduce", "--quiet", *words, *options]
        before, began = _children(), time.perf_counter()
        subprocess.run(command, env=env | {"XDG_CACHE_HOME": folder}, check=True, stdout=subprocess.DEVNULL)
        seconds, spent = time.perf_counter() - began, _children() - before
        return seconds, spent, pl.read_parquet(f"{folder}/out/table.parquet")


def _children() -> float:
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--reproduce", action="store_true")
    parser.add_argument("--workers", type=int, nargs="+")
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument("--larger", type=int)
    parser.add_argument("options", nargs="*")
    asked = parser.parse_args()
    if asked.reproduce:
        sizes = [asked.instances] + ([asked.larger * asked.instances] if asked.larger else [])
        reproduce(asked.workers or [1, 2, 4, 8], sizes, asked.options)
    else:
        for workers in asked.workers or [2]:
            engine(asked.batches, workers)
