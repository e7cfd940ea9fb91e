"""A matrix that is never written down: `NuclearNormBall(..., factored=True)` with Auto, in processes of their own.

Every round reveals all observed entries, with a constraint on the mean of the whole matrix. A game is `cx.play` of
three rounds; a round is timed with the state updated in place. Memory is the process's at its peak (on a GPU, the
device's), Python, JAX and the data of all rounds included. What the dense learner would need is what XLA plans for it
at 2000 x 1000, in matrices, times the size of one.
"""

import json
import resource
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from benchmarks.sections.first import fresh
from benchmarks.sections.memory import planned
from benchmarks.sections.rounds import begin, observe
from benchmarks.timing import row

ROOT = Path(__file__).parent.parent.parent
SIZES = {"rows": 100_000, "columns": 50_000, "entries": 10_000_000, "rank": 32}
QUICK = {"rows": 1000, "columns": 500, "entries": 5000, "rank": 8}
ROUNDS, MOST, GIB = 3, 8.0, 2.0**30
CODE = "import sys; sys.path.insert(0, {root!r}); from benchmarks.sections import factored; factored.{way}(**{sizes})"


def loss(x, r):
    return 0.5 * jnp.mean((x.entries() - r["ratings"]) ** 2)


def constraint(x, r):
    return x.inner(*(jnp.full(size, 1 / size) for size in x.shape)) - r["budget"]


def instance(rows, columns, entries, rank):
    drawn = np.random.default_rng(0)
    places = drawn.integers(0, rows * columns, int(1.02 * entries))
    places = np.sort(drawn.permutation(np.unique(places))[:entries])
    places = tuple(part.astype(np.int32) for part in np.divmod(places, columns))
    ball = cx.domains.NuclearNormBall(
        (rows, columns), radius=(rows * columns) ** 0.5, factored=True, entries=places, rank=rank
    )
    ratings = np.zeros(entries, np.float32)
    for _ in range(3):
        left, right = (drawn.standard_normal(size, dtype=np.float32) for size in (rows, columns))
        ratings += left[places[0]] * right[places[1]]
    noise = 0.1 * drawn.standard_normal((ROUNDS, entries), dtype=np.float32)
    return cx.Problem(ball, loss, constraint), {"ratings": ratings + noise, "budget": np.zeros(ROUNDS, np.float32)}


def report(seconds):
    used = jax.devices()[0].memory_stats()
    peak = used["peak_bytes_in_use"] if used else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "peak": peak}))


def game(**sizes):
    problem, rounds = instance(**sizes)
    began = time.perf_counter()
    jax.block_until_ready(cx.play(problem, cx.learners.Auto(), rounds, key=jax.random.key(0)))
    report([time.perf_counter() - began])


def single_rounds(**sizes):
    problem, rounds = instance(**sizes)
    learner, seconds = cx.learners.Auto(), []
    state = jax.tree.map(jnp.copy, begin(learner, problem))  # one array that is two parts cannot be given away twice
    for t in (0, *range(ROUNDS)):
        data = jax.tree.map(lambda leaf, t=t: jnp.asarray(leaf[t]), rounds)
        began = time.perf_counter()
        state, _ = jax.block_until_ready(observe(learner, problem, state, data))
        seconds.append(time.perf_counter() - began)
    report(seconds[1:])


def dense_bytes(rows, columns):
    """What the dense learner would need."""
    m, n = 2000, 1000
    learner = cx.learners.Auto()
    problem = cx.Problem(
        cx.domains.NuclearNormBall((m, n), 1.0),
        lambda x, r: 0.5 * jnp.mean((x - r["ratings"]) ** 2),
        lambda x, r: jnp.mean(x) - r["budget"],
    )
    data = {"ratings": jax.ShapeDtypeStruct((m, n), jnp.float32), "budget": jax.ShapeDtypeStruct((), jnp.float32)}
    return (
        planned(observe, learner, problem, jax.eval_shape(begin, learner, problem), data)
        * 2**20
        / (m * n)
        * rows
        * columns
    )


def measure(device, quick):
    sizes = QUICK if quick else SIZES
    rows, columns, entries, rank = sizes.values()
    case = f"{rows:,} x {columns:,}, {entries:,} entries, rank {rank}"
    found = {way: fresh(CODE.format(root=str(ROOT), way=way, sizes=sizes), device) for way in ("single_rounds", "game")}
    needed = dense_bytes(rows, columns) / GIB
    target = None if quick else ("<=", MOST)
    peaks = {way: [each["peak"] / GIB] for way, each in found.items()}
    return [
        row(case, "a round of Auto", found["single_rounds"]["seconds"]),
        row(case, f"a game of {ROUNDS} rounds, compiled first", found["game"]["seconds"]),
        row(case, "memory, rounds", peaks["single_rounds"], unit="GiB", target=target),
        row(case, "memory, a game", peaks["game"], unit="GiB", target=target),
        row(case, "memory, dense learner", [needed], unit="GiB", over="memory, a game", ours=peaks["game"]),
    ]
