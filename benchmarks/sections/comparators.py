"""Comparators that are hard: traffic, ratings, assignments and sparse classification.

* Sioux Falls: 24 origins, each with its own flow over 76 links, whose delays depend on all flows together (Beckmann's
  objective; 4,231,335.287 is the published optimum). A product of 24 `Flow`s, of which only LMOs are known.
* Ratings: 943 x 1682 matrices in a nuclear-norm ball, 100,000 entries seen, to 1e-2. With budgets of exposure: what is
  predicted for each of some groups of columns, on average over those who rate, is at most 2.7; else it would be 3.0.
* Birkhoff(40): 20 rounds, the distance to a matrix or a least-squares fit; and l1 logistic regression with 500 features
  and 2,000 rounds; both to 1e-4, against CVXPY with Clarabel.

Seconds are CPU seconds of all threads, since the machine is shared. JAX's programs are compiled before. Gaps are
relative, and proven.
"""

import importlib.util
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from benchmarks.timing import in_turn, row


def traffic():
    """One day, all routes, no limit on emissions."""
    instance = cx.problems.real.traffic(days=1, budget=None, routes=None, varies=0.0)
    return instance.problem, instance.recorded


GROUPS, EXPOSURE = 5, 2.7  # of columns; the most that may be predicted for a group


def ratings(rows=943, columns=1682, count=100_000, budgets=0):
    """From 1 to 5, of a noisy matrix of rank 8, where few rows and columns are seen often; and limits for groups."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(rows, 8)), rng.normal(size=(columns, 8))
    often = rng.pareto(1.2, rows) + 0.3, rng.pareto(1.0, columns) + 0.2
    picks = [rng.choice(len(weights), size=3 * count, p=weights / weights.sum()) for weights in often]
    places = rng.permutation(np.unique(picks[0] * columns + picks[1]))[:count]
    i, j = places // columns, places % columns
    noise = 0.3 * rng.normal(size=len(i))
    rating = np.clip(np.round(3.5 + 0.75 * (left[i] * right[j]).sum(1) / 8**0.5 + noise), 1, 5)
    ball = cx.domains.NuclearNormBall((rows, columns), 5000.0 * (rows / 943))
    groups = (np.arange(columns) % GROUPS == np.arange(budgets)[:, None]) * (GROUPS / columns)

    def exposure(x, r):
        return jnp.asarray(groups, x.dtype) @ x[r["i"]] - EXPOSURE

    extra = {"constraint": exposure, "constraints": budgets} if budgets else {}
    problem = cx.Problem(ball, lambda x, r: 0.5 * (x[r["i"], r["j"]] - r["rating"]) ** 2, **extra)
    return problem, {"i": i, "j": j, "rating": rating}


def assignment(size, is_fit):
    rng = np.random.default_rng(0)
    rounds = {
        "target": rng.uniform(size=(20, size, size)),
        "row": rng.normal(size=(20, size, size)),
        "answer": rng.normal(size=20),
    }

    def loss(x, r):
        near = 0.5 * jnp.sum((x - r["target"]) ** 2)
        return 0.5 * (jnp.vdot(r["row"], x) - r["answer"]) ** 2 + 0.01 * near if is_fit else near

    def solve():
        import cvxpy as cp

        x, target = cp.Variable((size, size)), rounds["target"]
        total = 0.5 * (20 * cp.sum_squares(x) - 2 * cp.sum(cp.multiply(target.sum(0), x)) + (target**2).sum())
        if is_fit:
            fit = rounds["row"].reshape(20, -1) @ cp.vec(x, order="C") - rounds["answer"]
            total = 0.01 * total + 0.5 * cp.sum_squares(fit)
        return cp.Problem(cp.Minimize(total), [x >= 0, cp.sum(x, 0) == 1, cp.sum(x, 1) == 1]).solve("CLARABEL")

    return cx.Problem(cx.domains.Birkhoff(size), loss), rounds, solve


def classification(features, count):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(count, features))
    label = np.sign(rows[:, :10].sum(1) + rng.normal(size=count))
    problem = cx.Problem(
        cx.domains.L1Ball(features, 5.0), lambda x, r: jax.nn.softplus(-r["label"] * jnp.vdot(r["row"], x))
    )

    def solve():
        import cvxpy as cp

        x = cp.Variable(features)
        total = cp.sum(cp.logistic(-cp.multiply(label, rows @ x)))
        return cp.Problem(cp.Minimize(total), [cp.norm1(x) <= 5]).solve("CLARABEL")

    return problem, {"row": rows, "label": label}, solve


def call(problem, rounds, tol):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cx.hindsight(problem, rounds, tol=tol, progress=False)


def to(case, problem, rounds, tol, limit):
    """The second call, with all the time that it needs."""
    call(problem, rounds, tol)
    began = time.process_time()
    best = call(problem, rounds, tol)
    took = time.process_time() - began
    value = float(best.value)
    note = f"gap {(value - float(best.lower_bound)) / abs(value):.1e}, value {value:,.3f}"
    return [row(case, f"to {tol:.0e}", [took], target=("<=", limit), note=note)]


def compared(case, problem, rounds, solve):
    if importlib.util.find_spec("cvxpy") is None:
        return []
    calls = {"cocoax": lambda: call(problem, rounds, 1e-4).value, "CVXPY": solve}
    spent = in_turn(calls, 5, long=10.0, compiled=True, clock=time.process_time)
    ratio = float(np.median(spent["cocoax"]) / np.median(spent["CVXPY"]))
    ours = row(case, "cocoax", spent["cocoax"], over="CVXPY", ours=spent["CVXPY"])
    share = row(case, "cocoax / CVXPY", [ratio], unit="x", target=("<=", 2.0))
    return [ours, row(case, "CVXPY", spent["CVXPY"]), share]


def measure(device, quick):
    size, features = (5, 20) if quick else (40, 500)
    small = {
        "Birkhoff, distance": assignment(size, False),
        "Birkhoff, fit": assignment(size, True),
        "l1 logistic": classification(features, 4 * features),
    }
    rows = []
    for case, (problem, rounds, solve) in small.items():
        rows += to(case, problem, rounds, 1e-4, 60.0) + compared(case, problem, rounds, solve)
    if quick:
        return rows
    for kind in ("float32", "float64"):
        with jax.enable_x64(kind == "float64"):
            problem, rounds = traffic()
            for tol, limit in ((1e-4, 30.0), (1e-5, 120.0)):
                rows += to(f"Sioux Falls, {kind}", problem, rounds, tol, limit)
    for case, budgets in (("ratings, 943 x 1682", 0), ("ratings, 1 budget", 1), ("ratings, 5 budgets", 5)):
        rows += to(case, *ratings(budgets=budgets), 1e-2, 120.0)
    return rows
