"""The best fixed decision in hindsight to 1e-4, against CVXPY, which calls Clarabel or, for linear programs, HiGHS.

Sets of 10, 1,000 and 100,000 entries, with 1,000, 1,000 and 50 rounds of dense data (linear and logistic losses,
squares and absolute values of one inner product a round) and up to 5 constraints that bind. Seconds are CPU seconds of
all threads, since the machine is shared. Both begin at the arrays; CVXPY's time has its own compilation in it. JAX's
programs are compiled before; for curved losses at 100,000 entries compilation counts where it makes a call longer than
two seconds: such calls are made once, others five times. CVXPY's accuracy is its own (1e-8); HiGHS and Clarabel both
try the linear programs, and the faster one counts.
"""

import contextlib
import functools
import importlib.util
import json
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from benchmarks.timing import in_turn, row, skipped

SETS = ("box", "simplex", "l1 ball", "l2 ball", "product")
LOSSES = ("linear", "quadratic", "logistic", "absolute")
ROUNDS = {10: 1000, 1000: 1000, 100_000: 50}
COUNTS = {10: (0, 5), 100_000: (0, 5), 1000: (0, 5)}  # of constraints
TOL, MINUTE, SLACK = 1e-4, 60.0, 1e-6
KEPT = Path("out/hindsight.jsonl")
LONG = 2.0  # seconds of a call that is made once
LOWER, UPPER, RADIUS = -0.2, 0.4, 1.5


def domain(name, size):
    """Half of a product is a simplex, half a box."""
    half = size // 2
    made = {
        "box": lambda: cx.domains.Box(jnp.full(size, LOWER), jnp.full(size, UPPER)),
        "simplex": lambda: cx.domains.ProbabilitySimplex(size),
        "l1 ball": lambda: cx.domains.L1Ball(size, RADIUS),
        "l2 ball": lambda: cx.domains.L2Ball(size, RADIUS),
        "product": lambda: cx.domains.Product({"a": domain("simplex", half), "b": domain("box", size - half)}),
    }
    return made[name]()


def flat(x):
    return jnp.concatenate([x["a"], x["b"]]) if isinstance(x, dict) else x


def loss_of(kind):
    return {
        "linear": lambda x, r: jnp.vdot(r["a"], flat(x)),
        "quadratic": lambda x, r: 0.5 * (jnp.vdot(r["a"], flat(x)) - r["b"]) ** 2,
        "logistic": lambda x, r: jax.nn.softplus(-r["y"] * jnp.vdot(r["a"], flat(x))),
        "absolute": lambda x, r: jnp.abs(jnp.vdot(r["a"], flat(x)) - r["b"]),
    }[kind]


@functools.lru_cache(maxsize=1)
def data(size, seed=0):
    """Rounds of a noisy linear model with few entries, and five rows for constraints."""
    rng, count = np.random.default_rng(seed), ROUNDS[size]
    a, w = rng.normal(size=(count, size)), rng.normal(size=size) * (rng.random(size) < max(0.05, 3 / size))
    w /= max(np.abs(w).sum(), 1e-9)
    b = a @ w * RADIUS + 0.1 * rng.normal(size=count)
    use = rng.normal(size=(5, size)) / size**0.5
    use[:, 0] -= 0.5
    return {"a": a, "b": b, "y": np.sign(b)}, use


def constraints(name, size, count):
    """Rows of use x <= limit; every second one holds with equality at the domain's start."""
    use = data(size)[1][:count]
    start = np.asarray(flat(domain(name, size).start()))
    return use, use @ start + 0.02 * (np.arange(count) % 2) * np.abs(use).max(initial=0.0)


def ours(name, kind, size, count):
    rounds, (use, limit) = data(size)[0], constraints(name, size, count)
    extra = {"constraint": lambda x, r: use @ flat(x) - limit, "constraints": count} if count else {}
    problem = cx.Problem(domain(name, size), loss_of(kind), **extra)
    return lambda: cx.hindsight(problem, rounds, tol=TOL, seconds=MINUTE, progress=False)


def theirs(name, kind, size, count, solver):
    """A call that returns the optimum, NaN where there is none after a minute."""
    import cvxpy as cp

    rounds, (use, limit) = data(size)[0], constraints(name, size, count)
    a, b, y, half = rounds["a"], rounds["b"], rounds["y"], size // 2
    options = {"CLARABEL": {"time_limit": MINUTE}, "HIGHS": {"highs_options": {"time_limit": MINUTE}}}[solver]

    def solve():
        x = cp.Variable(size)
        loss = {
            "linear": lambda: a.sum(0) @ x,
            "quadratic": lambda: 0.5 * cp.sum_squares(a @ x - b),
            "logistic": lambda: cp.sum(cp.logistic(-cp.multiply(y, a @ x))),
            "absolute": lambda: cp.norm1(a @ x - b),
        }[kind]()
        within = {
            "box": lambda: [x >= LOWER, x <= UPPER],
            "simplex": lambda: [cp.sum(x) == 1, x >= 0],
            "l1 ball": lambda: [cp.norm1(x) <= RADIUS],
            "l2 ball": lambda: [cp.norm2(x) <= RADIUS],
            "product": lambda: [cp.sum(x[:half]) == 1, x[:half] >= 0, x[half:] >= LOWER, x[half:] <= UPPER],
        }[name]()
        program = cp.Problem(cp.Minimize(loss), within + ([use @ x <= limit] if count else []))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program.solve(solver, **options)
        except cp.error.SolverError:
            return np.nan
        return float(program.value) if program.status in ("optimal", "optimal_inaccurate") else np.nan

    return solve


def solvers(name, kind, size):
    """Those that are tried: of what takes them very long, only some lines with the box."""
    if importlib.util.find_spec("cvxpy") is None:
        return ()
    is_long = (size >= 1000 and kind == "absolute") or (size > 1000 and kind != "linear")
    if is_long and (name != "box" or (size > 1000 and kind != "quadratic")):
        return ()
    is_linear = kind in ("linear", "absolute") and name != "l2 ball"
    return ("CLARABEL", "HIGHS") if is_linear and not is_long else ("CLARABEL",)


def case_of(name, kind, size, count):
    return f"{name}, {kind}, {count} constraint{'s' if count != 1 else ''}"


def compare(name, kind, size, count, repeats):
    """Rows for one line, the ratio of times, and by how much our lower bound is above their optimum, relatively."""
    case, number = case_of(name, kind, size, count), f"{size:,}"
    ways, found = (f"{number}: cocoax", f"{number}: CVXPY"), {}

    def keep(way, call):
        return lambda: found.update({way: call()})

    mine = ours(name, kind, size, count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if size < 100_000 or kind == "linear":
            mine()  # compiles
        calls = {"cocoax": keep("cocoax", mine)}
        for solver in solvers(name, kind, size):
            calls[solver] = keep(solver, theirs(name, kind, size, count, solver))
        spent = in_turn(calls, repeats, long=LONG, compiled=True, clock=time.process_time)
    best = found.pop("cocoax")
    gap = float(best.gap) / max(1.0, abs(float(best.value)))
    rows = [row(case, ways[0], spent["cocoax"], note="" if gap <= TOL else f"gap {gap:.0e}", gap=gap)]
    solved = {way: value for way, value in found.items() if np.isfinite(value)}
    if not solved:
        why = "longer than a minute" if found else "not tried, to save time"
        return [*rows, skipped(case, ways[1], why)], None, None
    fastest = min(solved, key=lambda way: np.median(spent[way]))
    optimum = min(solved.values())
    rows.append(row(case, ways[1], spent[fastest]))
    above = (float(best.lower_bound) - optimum) / max(1.0, abs(optimum))
    return rows, float(np.median(spent["cocoax"]) / np.median(spent[fastest])), above


def lines(quick):
    for size, counts in COUNTS.items() if not quick else [(10, (0, 1))]:
        for name in SETS[:2] if quick else SETS:
            for kind in LOSSES[:2] if quick else LOSSES:
                for count in counts:
                    yield name, kind, size, count


def measure(device, quick):
    """Every line is kept in a file as soon as it is measured: Ctrl-C ends with those, and the next run goes on."""
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    kept = KEPT.read_text().splitlines() if KEPT.exists() and not quick else []
    known = {tuple(one["line"]): one for one in map(json.loads, kept)}
    missing = [line for line in lines(quick) if line not in known]
    with contextlib.suppress(KeyboardInterrupt):
        for line in missing:
            rows, ratio, above = compare(*line, 5)
            known[line] = {"line": line, "rows": rows, "ratio": ratio, "above": above}
            print(f"  {line}: {rows[0]['median']:.2g} s, ratio {ratio}", flush=True)
            if not quick:
                with KEPT.open("a") as out:
                    out.write(json.dumps(known[line]) + "\n")
    found = sorted(known.values(), key=lambda one: one["line"][2])
    rest = [line for line in missing if line not in known]
    left = [skipped(case_of(*line), f"{line[2]:,}: cocoax", "the run ended before") for line in rest]
    return [*summary(found), *(row for one in found for row in one["rows"]), *left]


def summary(found):
    rows = []
    for size in sorted({one["line"][2] for one in found}):
        those, case = [one for one in found if one["line"][2] == size], f"{size:,} entries"
        compared = [one for one in those if one["ratio"] is not None]
        if compared:
            above = max(one["above"] for one in compared)
            if above > SLACK:
                raise RuntimeError(f"{case}: a lower bound is {above:.1e} above CVXPY's optimum")
            note = f"{len(compared)} lines; lower bounds are at most {max(above, 0.0):.0e} of CVXPY's optimum above it"
            ratio = max(one["ratio"] for one in compared)
            rows.append(row(case, "cocoax / CVXPY, slowest line", [ratio], unit="x", target=("<=", 2.0), note=note))
        if size == 100_000:
            slowest = max(one["rows"][0]["median"] for one in those)
            rows.append(row(case, "cocoax, slowest line", [slowest], target=("<=", 30.0)))
    return rows
