"""Linear minimisation for many directions at once.

The nuclear-norm ball's directions drift by 3% a round, and a batch begins at the answers of the round before, or (cold)
at nothing. LAPACK decomposes each matrix whole; `svds(k=1)` runs as it comes, one matrix after the other, which is also
what copt's `TraceBall` calls. For simplex and l1 ball NumPy answers with the indices of the vertices, for the batch at
once and one by one. Errors are (best - found) / best, the mean over the batch.
"""

import functools
import importlib.util

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import in_turn, row, skipped
from cocoax.domains import L1Ball, NuclearNormBall, ProbabilitySimplex

SHARE = 0.03  # of a direction is new
OURS = "cocoax, one batch"


def drifting(shape):
    """Two matrices without a gap in their spectra, of which the second is the first, a little later."""
    rng = np.random.default_rng(0)
    old, new = rng.standard_normal((2, *shape))
    return [jnp.asarray(each, jnp.float32) for each in (old, (1 - SHARE**2) ** 0.5 * old + SHARE * new)]


def nuclear_calls(before, now):
    ball = NuclearNormBall(now.shape[1:], 1.0)

    def lmo(direction, guess=None):
        return ball.lmo(direction, guess)

    cold = jax.jit(jax.vmap(lmo))
    warm, one = (jax.jit(each) for each in (jax.vmap(lmo), lmo))
    guess, dense = cold(before), np.asarray(now)
    single = [(direction, jax.tree.map(lambda leaf, i=i: leaf[i], guess)) for i, direction in enumerate(now)]
    calls = {
        OURS: lambda: warm(now, guess),
        "cocoax, one batch, cold": lambda: cold(now),
        "cocoax, one by one": lambda: [one(*each) for each in single],
        "LAPACK, one by one": lambda: [np.linalg.svd(each, full_matrices=False) for each in dense],
    }
    best = np.linalg.norm(dense.astype(float), 2, axis=(1, 2))
    errors = {
        name: float(np.mean(1 + np.asarray(jax.vmap(lambda v, d: v.dot(d))(calls[name](), now)) / best))
        for name in list(calls)[:2]
    }
    return calls, errors


def nuclear(shape, repeats):
    case = f"nuclear-norm ball, {shape[0]} of {shape[1]} x {shape[2]}"
    before, now = drifting(shape)
    (calls, errors), rows, dense = nuclear_calls(before, now), [], np.asarray(now)
    try:
        from scipy.sparse.linalg import svds

        calls["`svds`, one by one"] = lambda: [svds(each, k=1) for each in dense]
    except ImportError:
        rows.append(skipped(case, "`svds`, one by one", "SciPy is not installed"))
    if importlib.util.find_spec("copt") is None:
        rows.append(skipped(case, "copt", "not installed; its `TraceBall.lmo` is `svds(k=1)` and an outer product"))
    spent = in_turn(calls, repeats)
    for name, each in spent.items():
        note = f"error {max(errors[name], 0):.1e}" if name in errors else ""
        rows.append(row(case, name, each, over=OURS, ours=spent[OURS], note=note))
    return rows


def vectors(name, domain, best, shape, repeats):
    """A domain whose vertices are found by looking for the best entry; `best` does so in NumPy."""
    case = f"{name}, {shape[0]} of {shape[1]}"
    directions = jax.random.normal(jax.random.key(0), shape)
    batch, one = jax.jit(jax.vmap(lambda direction: domain.lmo(direction))), jax.jit(lambda each: domain.lmo(each))
    dense, single = np.asarray(directions), list(directions)
    calls = {
        OURS: lambda: batch(directions),
        "cocoax, one by one": lambda: [one(each) for each in single],
        "NumPy, one batch": functools.partial(best, dense),
        "NumPy, one by one": lambda: [best(each) for each in dense],
    }
    found = np.argmax(np.abs(np.asarray(jax.vmap(lambda vertex: vertex.dense())(batch(directions)))), -1)
    if not np.array_equal(found, best(dense)):
        raise RuntimeError(f"{name}: cocoax and NumPy found different vertices")
    spent = in_turn(calls, repeats)
    return [row(case, way, each, over=OURS, ours=spent[OURS]) for way, each in spent.items()]


def measure(device, quick):
    repeats, count, size = (3, 4, 50) if quick else (9, 30, 1000)
    rows = nuclear((count, 50, 50), repeats)
    if not quick:
        rows += nuclear((960, 50, 50), repeats)
    rows += vectors("simplex", ProbabilitySimplex(size), lambda c: np.argmin(c, -1), (size, size), repeats)
    rows += vectors("l1 ball", L1Ball(size, 1.0), lambda c: np.argmax(np.abs(c), -1), (size, size), repeats)
    return rows
