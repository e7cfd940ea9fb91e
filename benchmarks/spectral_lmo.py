"""The nuclear-norm ball's LMO against SciPy and LAPACK, on directions that drift as an online learner's do.

python -m benchmarks.spectral_lmo [--repeats 9] [--seed 0]      (set OPENBLAS_NUM_THREADS to fix SciPy's threads)

Errors are (sigma_1 - u^T C v) / sigma_1 in float32, against LAPACK's singular values. Times are medians, all ways
measured in turn within one run. `svds at equal accuracy` gets the same guess as ours (`v0`), and the fastest of
its settings (`tol`, `ncv`) whose error on that direction does not exceed ours.
"""

import argparse
import itertools
import os
import platform
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from scipy.sparse.linalg import ArpackNoConvergence, svds

import cocoax as cx
from cocoax.domains import NuclearNormBall

ROUNDS, TIMED = 20, 5  # directions followed, and the last ones, on which everybody is timed
WAYS = [("krylov", 2), ("krylov", 3), ("krylov", 4), ("power", 4), ("power", 6), ("power", 8)]
TOLERANCES = [1.0, 0.5, 0.2, 0.1, 0.03, 0.01, 1e-3, 1e-4]
SIZES = [3, 4, 6, 8, 12, 20]  # of ARPACK's Krylov space; 20 is SciPy's default
NOISE = 1e-6  # errors below are rounding


def random_walk(shape, rng):
    """No gap in the spectrum, 3% new in every round: the hardest case."""
    current = rng.standard_normal(shape)
    for _ in range(ROUNDS):
        current = (1 - 0.03**2) ** 0.5 * current + 0.03 * rng.standard_normal(shape)
        yield current


def signal_in_noise(shape, rng):
    """A sum of gradients: a rank-one signal that slowly becomes another one, in fresh noise."""
    rows, columns = shape[-2:]
    old, new = rng.standard_normal((2, *shape[:-1], 1)) * rng.standard_normal((2, *shape[:-2], 1, columns))
    for angle in np.linspace(0, 1, ROUNDS):
        noise = rng.standard_normal(shape)
        yield (np.cos(angle) * old + np.sin(angle) * new) * 1.5 / (rows * columns) ** 0.25 + 0.3 * noise


STREAMS = {"random walk": random_walk, "signal in noise": signal_in_noise}


def errors_of(left, right, direction, top):
    values = np.einsum("...i,...ij,...j->...", *(np.asarray(each, float) for each in (left, direction, right)))
    return 1 - np.abs(values) / top


def follow(method, iterations, directions, tops):
    """A warm LMO along the directions: the compiled LMO, its guesses and its errors on the timed directions."""
    ball = NuclearNormBall(directions[0].shape[-2:], 1.0, method=method, iterations=iterations)
    lmo, guess = (lambda direction, guess: ball.lmo(direction, guess)), ball.vertex()
    for size in directions[0].shape[:-2]:
        lmo = jax.vmap(lmo)
        guess = jax.tree.map(lambda leaf, size=size: jnp.broadcast_to(leaf, (size, *leaf.shape)), guess)
    lmo, guesses, errors = jax.jit(lmo), [], []
    for direction, top in zip(directions, tops):
        guesses.append(guess)
        guess = lmo(direction, guess)
        errors.append(errors_of(guess.left, guess.right, direction, top))
    return lmo, guesses[-TIMED:], errors[-TIMED:]


def timed(calls, repeats):
    """Median milliseconds of each call, with the calls in turn."""
    spent = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            began = time.perf_counter()
            jax.block_until_ready(call())
            spent[name].append(time.perf_counter() - began)
    return {name: 1e3 * float(np.median(times)) for name, times in spent.items()}


def arpack(direction, tol=0.0, **options):
    left, _, right = svds(direction, k=1, tol=tol, **options)
    return left[:, 0], right[0]


def fastest_as_accurate(direction, guess, top, error):
    """The settings of `svds` that take least time among those with at most this error."""
    best = (np.inf, None)
    for tol, ncv in itertools.product(TOLERANCES, SIZES):
        options = {"tol": tol, "ncv": ncv, "v0": np.asarray(guess)}
        try:
            found = errors_of(*arpack(direction, **options), direction, top)
        except ArpackNoConvergence:
            continue
        if found <= max(error, NOISE):
            best = min(best, (timed({0: lambda o=options: arpack(direction, **o)}, 3)[0], (tol, ncv)))
    tol, ncv = best[1] or (0.0, 20)
    return {"tol": tol, "ncv": ncv, "v0": np.asarray(guess)}


def rows_of_one(directions, tops, repeats):
    """Each way's median time and mean error, then what `svds` needs for the error of the default way."""
    ways = {(method, its): follow(method, its, directions, tops) for method, its in WAYS}
    _, guesses, errors = ways["krylov", 4]
    dense = [np.asarray(direction) for direction in directions[-TIMED:]]
    equal = [fastest_as_accurate(d, g.right, t, e) for d, g, t, e in zip(dense, guesses, tops[-TIMED:], errors)]
    plain = [{"tol": options["tol"], "v0": options["v0"]} for options in equal]
    times = {}
    for i, direction in enumerate(dense):
        calls = {
            f"{method} x {its}": lambda lmo=lmo, i=i, g=g: lmo(directions[-TIMED + i], g[i])
            for (method, its), (lmo, g, _) in ways.items()
        }
        calls["`svds` at equal accuracy, best `tol` and `ncv`"] = lambda d=direction, o=equal[i]: arpack(d, **o)
        calls["`svds` with that `tol`"] = lambda d=direction, o=plain[i]: arpack(d, **o)
        calls["`svds` as it comes"] = lambda d=direction: arpack(d)
        for name, spent in timed(calls, repeats).items():
            times.setdefault(name, []).append(spent)
    found = {f"{method} x {its}": np.mean(way[2]) for (method, its), way in ways.items()}
    for name, options in zip([*times][-3:], (equal, plain, [{}] * TIMED)):
        each = [errors_of(*arpack(d, **o), d, t) for d, o, t in zip(dense, options, tops[-TIMED:])]
        found[name] = np.mean(each)
    return {name: (np.median(spent), found[name]) for name, spent in times.items()}


def rows_of_many(directions, tops, repeats):
    ways = {(method, its): follow(method, its, directions, tops) for method, its in WAYS}
    last = np.asarray(directions[-1])
    calls = {
        f"{method} x {its}": lambda lmo=lmo, g=g: lmo(directions[-1], g[-1])
        for (method, its), (lmo, g, _) in ways.items()
    }
    guesses = ways["krylov", 4][1][-1]
    calls["LAPACK's SVD, one by one"] = lambda: np.linalg.svd(last, full_matrices=False)
    calls["`svds` from the same guesses, `tol=0.1`"] = lambda: [
        arpack(d, 0.1, v0=np.asarray(g)) for d, g in zip(last, guesses.right)
    ]
    times = timed(calls, repeats)
    found = {f"{method} x {its}": np.mean(way[2]) for (method, its), way in ways.items()}
    left, right = (np.stack(each) for each in zip(*calls["`svds` from the same guesses, `tol=0.1`"]()))
    found["`svds` from the same guesses, `tol=0.1`"] = np.mean(errors_of(left, right, last, tops[-1]))
    return {name: (spent, found.get(name, 0.0)) for name, spent in times.items()}


def print_table(title, rows):
    ours = rows["krylov x 4"][0]
    print(f"\n### {title}\n\n| way | ms | of the default's time | relative error |\n|---|---|---|---|")
    for name, (spent, error) in rows.items():
        name = f"**{name}** (the default)" if name == "krylov x 4" else name
        print(f"| {name} | {spent:.3g} | {spent / ours:.2g} | {max(error, 0):.1e} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    print(
        f"cocoax {cx.__version__}, jax {jax.__version__}, scipy {scipy.__version__} ({threads} BLAS threads), float32,"
    )
    print(f"{platform.machine()} CPU with {os.cpu_count()} cores.")
    for name, stream in STREAMS.items():
        for shape, measure in (((1000, 1000), rows_of_one), ((960, 50, 50), rows_of_many)):
            rng = np.random.default_rng(options.seed)
            directions = [jnp.asarray(direction, jnp.float32) for direction in stream(shape, rng)]
            tops = [np.linalg.norm(np.asarray(direction, float), 2, axis=(-2, -1)) for direction in directions]
            print_table(f"{' x '.join(map(str, shape))}, {name}", measure(directions, tops, options.repeats))


if __name__ == "__main__":
    main()
