"""The nuclear-norm ball's LMO against SciPy and LAPACK, on directions that drift as an online learner's do.

python -m benchmarks.spectral_lmo [--repeats 9] [--seed 0]

Errors are (sigma_1 - u^T C v) / sigma_1 in float32, against LAPACK's singular values, the mean over the last rounds.
All ways are timed in turn; on a shared machine the best time says more than the median. `svds` at equal accuracy
has, for each direction, the largest `tol` whose error is not above ours; the ratio to our time is what a user of
`svds(k=1)` would gain. Below stands the best that SciPy could do if it knew: the fastest pair (`tol`, `ncv`) for each
direction, chosen with the answer in sight, from a random vector or from our guess (`v0`). BLAS has one thread unless
OPENBLAS_NUM_THREADS says otherwise: two wait for each other where cores are shared, and XLA's products use one.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import functools
import itertools
import platform

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from scipy.sparse.linalg import ArpackNoConvergence, svds

import cocoax as cx
from benchmarks.timing import timed
from cocoax.domains import NuclearNormBall

ROUNDS, TIMED = 20, 5  # directions followed, and the last ones, on which everybody is timed
WAYS = [("krylov", 2), ("krylov", 3), ("krylov", 4), ("power", 4), ("power", 6), ("power", 8)]
TOLERANCES = [1.0, 0.5, 0.2, 0.1, 0.03, 0.01, 1e-3, 1e-4]
SIZES = [3, 4, 6, 8, 12, 20]  # of ARPACK's Krylov space; 20 is SciPy's default
DEFAULT = "krylov x 4"
COMPARED = ["krylov x 2", "krylov x 3", DEFAULT]
NOISE = 1e-6  # errors below are rounding


def random_walk(share, shape, rng):
    """No gap in the spectrum, and a share of it new in every round."""
    current = rng.standard_normal(shape)
    for _ in range(ROUNDS):
        current = (1 - share**2) ** 0.5 * current + share * rng.standard_normal(shape)
        yield current


def signal_in_noise(shape, rng):
    """A sum of gradients: a rank-one signal that slowly becomes another one, in fresh noise."""
    rows, columns = shape[-2:]
    old, new = rng.standard_normal((2, *shape[:-1], 1)) * rng.standard_normal((2, *shape[:-2], 1, columns))
    for angle in np.linspace(0, 1, ROUNDS):
        noise = rng.standard_normal(shape)
        yield (np.cos(angle) * old + np.sin(angle) * new) * 1.5 / (rows * columns) ** 0.25 + 0.3 * noise


STREAMS = {
    "random walk, 3% new a round": functools.partial(random_walk, 0.03),
    "random walk, 0.3% new a round": functools.partial(random_walk, 0.003),
    "signal in noise": signal_in_noise,
}


def errors_of(left, right, direction, top):
    values = np.einsum("...i,...ij,...j->...", *(np.asarray(each, float) for each in (left, direction, right)))
    return 1 - np.abs(values) / top


def follow(method, iterations, directions, tops):
    """A warm LMO along the directions: the compiled LMO, its guesses and its errors on the timed directions."""
    ball = NuclearNormBall(directions[0].shape[-2:], 1.0, method=method, iterations=iterations)
    lmo = functools.partial(type(ball).lmo, ball)
    if directions[0].ndim > 2:
        lmo = jax.vmap(lmo)
    lmo, guess, guesses, errors = jax.jit(lmo), lmo(directions[0]), [], []
    for direction, top in zip(directions, tops):
        guesses.append(guess)
        guess = lmo(direction, guess)
        errors.append(errors_of(guess.left, guess.right, direction, top))
    return lmo, guesses[-TIMED:], errors[-TIMED:]


def arpack(direction, tol=0.0, **options):
    left, _, right = svds(direction, k=1, tol=tol, **options)
    return left[:, 0], right[0]


def loosest_as_accurate(direction, top, error):
    """The largest `tol` with at most this error."""
    for tol in TOLERANCES:
        if errors_of(*arpack(direction, tol), direction, top) <= max(error, NOISE):
            return {"tol": tol}
    return {}


def fastest_as_accurate(direction, first, top, error):
    """The settings of `svds` that take least time among those with at most this error."""
    best = (np.inf, 0.0, 20)
    for tol, ncv in itertools.product(TOLERANCES, SIZES):
        options = {"tol": tol, "ncv": ncv, "v0": first}
        try:
            found = errors_of(*arpack(direction, **options), direction, top)
        except ArpackNoConvergence:
            continue
        if found <= max(error, NOISE):
            (spent,) = timed({0: lambda o=options: arpack(direction, **o)}, 3).values()
            best = min(best, (np.median(spent), tol, ncv))
    return {"tol": best[1], "ncv": best[2], "v0": first}


def measure_one(directions, tops, repeats):
    """Milliseconds and errors of every way, for one direction after the other."""
    ways = {f"{method} x {its}": follow(method, its, directions, tops) for method, its in WAYS}
    _, guesses, errors = ways[DEFAULT]
    spent, found = {}, {name: errors for name, (_, _, errors) in ways.items()}
    for i, (direction, top) in enumerate(zip(directions[-TIMED:], tops[-TIMED:])):
        calls = {name: lambda lmo=lmo, g=g[i], d=direction: lmo(d, g) for name, (lmo, g, _) in ways.items()}
        dense, guess = np.asarray(direction), np.asarray(guesses[i].right)
        cold = np.random.default_rng(i).standard_normal(guess.size).astype(guess.dtype)
        scipys = {
            **{f"`svds` as accurate as {way}": loosest_as_accurate(dense, top, ways[way][2][i]) for way in COMPARED},
            "`svds` as it comes": {},
            f"`svds`, best `tol` and `ncv` as accurate as {DEFAULT}": fastest_as_accurate(dense, cold, top, errors[i]),
            "the same from our guess": fastest_as_accurate(dense, guess, top, errors[i]),
        }
        for name, options in scipys.items():
            calls[name] = lambda d=dense, o=options: arpack(d, **o)
            found.setdefault(name, []).append(errors_of(*calls[name](), dense, top))
        for name, each in timed(calls, repeats).items():
            spent.setdefault(name, []).extend(each)
    return spent, found


def measure_many(directions, tops, repeats):
    """Milliseconds and errors of every way, for the last batch of directions."""
    ways = {f"{method} x {its}": follow(method, its, directions, tops) for method, its in WAYS}
    calls = {name: lambda lmo=lmo, g=g[-1]: lmo(directions[-1], g) for name, (lmo, g, _) in ways.items()}
    found = {name: errors for name, (_, _, errors) in ways.items()}
    dense, guesses = np.asarray(directions[-1]), np.asarray(ways[DEFAULT][1][-1].right)
    calls["`svds` from our guesses, `tol=0.1`, one by one"] = lambda: [
        arpack(d, 0.1, v0=guess) for d, guess in zip(dense, guesses)
    ]
    calls["LAPACK's SVD, one by one"] = lambda: np.linalg.svd(dense, full_matrices=False)
    left, right = (np.stack(each) for each in zip(*calls["`svds` from our guesses, `tol=0.1`, one by one"]()))
    found["`svds` from our guesses, `tol=0.1`, one by one"] = errors_of(left, right, dense, tops[-1])
    return timed(calls, repeats), found


def print_table(title, spent, found):
    print(f"\n### {title}\n\n| way | ms, best | median | over ours, best | median | relative error |")
    print("|---|---|---|---|---|---|")
    for name, each in spent.items():
        ours = next((spent[way] for way in COMPARED if name.endswith(way) and name != way), spent[DEFAULT])
        best, ratio = np.min(each) / np.min(ours), np.median(np.divide(each, ours))
        label = f"**{name}**, the default" if name == DEFAULT else name
        times = f"{np.min(each):.3g} | {np.median(each):.3g} | {best:.2g} | {ratio:.2g}"
        print(f"| {label} | {times} | {max(np.mean(found.get(name, 0.0)), 0):.1e} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    threads = os.environ["OPENBLAS_NUM_THREADS"]
    print(
        f"cocoax {cx.__version__}, jax {jax.__version__}, scipy {scipy.__version__} (BLAS threads: {threads}), float32,"
    )
    print(f"{platform.machine()} CPU with {os.cpu_count()} cores.")
    for name, stream in STREAMS.items():
        for shape, measure in (((1000, 1000), measure_one), ((960, 50, 50), measure_many)):
            rng = np.random.default_rng(options.seed)
            directions = [jnp.asarray(direction, jnp.float32) for direction in stream(shape, rng)]
            tops = [np.linalg.norm(np.asarray(direction, float), 2, axis=(-2, -1)) for direction in directions]
            print_table(f"{' x '.join(map(str, shape))}, {name}", *measure(directions, tops, options.repeats))


if __name__ == "__main__":
    main()
