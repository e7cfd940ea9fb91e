"""What the sections share: calls timed in turn, their spread, ratios, and rows of a table."""

import ctypes
import math
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

SHORTEST = {"cpu": 50e-3, "gpu": 10e-3}  # seconds of one sample: short calls are made several times in it
QUICK = 0.1  # seconds


def timed(calls, repeats):
    """Milliseconds of each call, with the calls in turn."""
    spent = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            spent[name].append(1e3 * _seconds(call))
    return spent


def _seconds(call, number=1, clock=time.perf_counter):
    """Seconds a call, of `number` calls. A GPU is waited for at the end only: it takes one call after the other."""
    wait = jax.default_backend() == "cpu"
    began = clock()
    for _ in range(number):
        answer = call()
        if wait:
            jax.block_until_ready(answer)
    jax.block_until_ready(answer)
    return (clock() - began) / number


def in_turn(calls, repeats, budget=3.0, *, long=4.0, compiled=False, clock=time.perf_counter):
    """Seconds of each call, with the calls in turn, after a warm-up.

    A quick call is made twice before it is timed, as rounds of a game follow each other. A call rests when it has had
    its budget of seconds, and one that takes longer than `long` is made once. Where all come `compiled`, that one call
    is its warm-up too.
    """
    spent, numbers = {}, {}
    shortest = SHORTEST.get(jax.default_backend(), SHORTEST["gpu"])
    for name, call in calls.items():
        if not compiled:
            jax.block_until_ready(call())
        first = _seconds(call, clock=clock)
        if first > long:
            spent[name], numbers[name] = [first], 0
        else:
            spent[name], numbers[name] = [], math.ceil(min(shortest / max(first, 1e-7), 1000))
    for _ in range(repeats):
        for name, call in calls.items():
            if numbers[name] and sum(spent[name]) * numbers[name] <= budget:
                if len(calls) > 1 and spent[name][-1:] < [QUICK]:  # the one before has emptied the caches
                    _seconds(call, 2)
                spent[name].append(_seconds(call, numbers[name], clock))
    return spent


def spread(samples, best=min):
    """Median, quartiles and best of some samples."""
    low, median, high = np.quantile(samples, (0.25, 0.5, 0.75))
    return {
        "median": float(median),
        "low": float(low),
        "high": float(high),
        "best": float(best(samples)),
        "repeats": len(samples),
    }


def ratios(those, ours):
    """Theirs over ours, turn by turn; where one was made too seldom for that, over the median of the other."""
    turns = min(len(those), len(ours))
    if turns >= 3:
        return list(np.divide(those[:turns], ours[:turns]))
    if len(those) <= len(ours):
        return list(np.divide(those, np.median(ours)))
    return list(np.median(those) / np.asarray(ours))


def row(case, way, samples, *, unit="s", over=None, ours=None, target=None, note="", **facts):
    """One line of a table. `ours` are the samples that it is compared with, called `over`.

    `target` is `(">=", 20.0)` or `("<=", 4.0)`, of the median.
    """
    line = {
        "case": case,
        "way": way,
        "unit": unit,
        **spread(samples, max if unit == "1/s" else min),
        "note": note,
        **facts,
    }
    if ours is not None:
        line["over"], line["ratio"] = over, spread(ratios(samples, ours))
    if target is not None:
        relation, bound = target
        met = line["median"] >= bound if relation == ">=" else line["median"] <= bound
        line["target"] = {"relation": relation, "bound": bound, "met": bool(met)}
    return line


def skipped(case, way, reason):
    """A line that says why something was not measured."""
    return {"case": case, "way": way, "skipped": reason}


def copying(nbytes):
    """A call that copies an array of `nbytes` into another that is there already, and how many bytes it moves."""
    if jax.default_backend() == "cpu":
        source, goal = np.ones((2, nbytes // 4), np.float32)
        return lambda: np.copyto(goal, source), 2 * goal.nbytes
    array, negated = jnp.ones(nbytes // 4, jnp.float32), jax.jit(jnp.negative)
    return lambda: negated(array), 2 * array.nbytes


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def with_blas_threads(count, call):
    """The call with so many threads for NumPy's OpenBLAS; None where that cannot be set."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    for library in sorted({line.split()[-1] for line in lines if "openblas64" in line}):
        blas = ctypes.CDLL(library)
        if hasattr(blas, "scipy_openblas_set_num_threads64_"):
            before = blas.scipy_openblas_get_num_threads64_()

            def threaded(blas=blas, before=before):
                blas.scipy_openblas_set_num_threads64_(count)
                try:
                    return call()
                finally:
                    blas.scipy_openblas_set_num_threads64_(before)

            return threaded
    return None
