"""One round of the completion of a matrix against its dimension.

4% of the entries are observed, as a dense mask; every round has new data. Auto, Algorithm 1 (with OCG) and Algorithm 2
(32 LMOs a round) play compiled rounds whose state is updated in place, as in a game. Their rival makes a gradient step
and projects onto the nuclear-norm ball by a singular value decomposition: XLA's where the learner runs, or LAPACK's
(`gesdd` in NumPy) on the CPU with one thread and with all cores; "SVD" is the fastest of them. CVXPY solves the same
projection anew every round. The memory floor is what a round of Auto must touch (the round's data and the state read
once, what changes of the state written once) at the speed of a copy too large for caches, timed in turn with the rest;
matrices that fit into caches can be faster. On large matrices a round of Auto has to read arrays more than once: sums
over whole matrices (for weights, steps and line searches) stand between its parts, and the LMO's four steps depend on
each other.
"""

import functools
import gc

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from benchmarks.timing import copying, cores, in_turn, ratios, row, skipped, with_blas_threads
from cocoax.domains.vectors.balls import onto_l1_ball

SIZES = {"cpu": (10, 20, 50, 100, 200, 500, 1000, 2000, 4000), "gpu": (50, 200, 1000, 2000, 4000, 8000, 16_000)}
QUICK = (10,)
TARGETS = {"cpu": {1000: (20.0, 4.0)}, "gpu": {8000: (1000.0, 2.0)}}  # SVD / Auto at least, Auto / floor at most
LARGEST = {  # larger ones take too long, or too much memory
    "cpu": {"Algorithm 2": 2000, "XLA": 4000, "LAPACK": 2000, "CVXPY": 20},
    "gpu": {"Algorithm 2": 8000, "XLA": 8000, "LAPACK": 2000, "CVXPY": 20},
}
BUDGET = {"cpu": 2.0, "gpu": 1.0}  # seconds for each way
COPIED = {"cpu": 256 << 20, "gpu": 4 << 30}
DATA = 256 << 20  # bytes of different rounds, where two of them are less
HORIZON, OBSERVED, RADIUS = 1000, 0.04, 5.0
LEARNERS = {
    "Auto": cx.learners.Auto(),
    "Algorithm 1, OCG": cx.learners.Blocks(cx.primal.OCG()),
    "Algorithm 2": cx.learners.PDMFW(),
}


def loss(x, r):
    return 0.5 * jnp.sum(r["mask"] * (x - r["ratings"]) ** 2)


def constraint(x, r):
    return jnp.vdot(r["exposure"], x) - r["budget"]


def completion(size):
    """The paper's problem at another size, with its constants."""
    values = RADIUS * size
    bounds = (
        cx.Regularity(max(RADIUS + 1, float(size)), 1.0, values),
        cx.Regularity(RADIUS + 1, 1.0, values, norm=float("inf")),
    )
    return cx.Problem(cx.domains.NuclearNormBall((size, size), RADIUS), loss, constraint, regularity=bounds)


@functools.partial(jax.jit, static_argnums=1)
def one_round(key, size):
    truth_key, mask_key, exposure_key = jax.random.split(key, 3)
    left, right = jax.random.normal(jax.random.key(0), (2, size, 5))
    truth = left @ right.T
    return {
        "mask": jax.random.bernoulli(mask_key, OBSERVED, (size, size)).astype(jnp.float32),
        "ratings": truth / (jnp.linalg.norm(truth) * 5**0.5) + 1e-6 * jax.random.normal(truth_key, (size, size)),
        "exposure": jax.random.uniform(exposure_key, (size, size), minval=-1.0),
        "budget": jnp.zeros(()),
    }


def some_rounds(size):
    count = int(np.clip(DATA // (12 * size * size), 2, 16))
    return [one_round(key, size) for key in jax.random.split(jax.random.key(size), count)]


@jax.jit
def begin(learner, problem):
    return learner.init(problem, key=jax.random.key(0), horizon=cx.Horizon(HORIZON))


@functools.partial(jax.jit, donate_argnums=2)
def observe(learner, problem, state, r):
    return learner.observe(problem, state, r)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def step(structures, constants, state, r):
    """The same of leaves, as in a game's loop: to take modules apart in Python would be a part of each round's time."""
    learner, problem = jax.tree.unflatten(structures[0], constants)
    state, outcome = learner.observe(problem, jax.tree.unflatten(structures[1], state), r)
    return jax.tree.leaves(state), outcome


class Game:
    """A game that goes on by one round a call."""

    def __init__(self, problem, learner, rounds, warm=3):
        self.rounds, self.count = rounds, 0
        self.constants, of_constants = jax.tree.flatten((learner, problem))
        state, of_state = jax.tree.flatten(begin(learner, problem))
        self.leaves, self.structures = [leaf.copy() for leaf in state], (of_constants, of_state)  # no buffer twice
        for _ in range(warm):
            jax.block_until_ready(self())

    @property
    def state(self):
        return jax.tree.unflatten(self.structures[1], self.leaves)

    def __call__(self):
        r = self.rounds[self.count % len(self.rounds)]
        self.leaves, outcome = step(self.structures, self.constants, self.leaves, r)
        self.count += 1
        return self.leaves, outcome

    def touched(self):
        """Bytes that a round reads or writes at least."""
        before = [leaf.copy() for leaf in _arrays(self.leaves)]
        data = sum(leaf.nbytes for leaf in jax.tree.leaves(self.rounds[0]))
        after = _arrays(self()[0])
        written = sum(new.nbytes for old, new in zip(before, after) if not jnp.array_equal(old, new))
        return data + sum(leaf.nbytes for leaf in before) + written


def _arrays(state):
    return [leaf for leaf in jax.tree.leaves(state) if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]


@jax.jit
def stepped(problem, x, r):
    _, _, pull = problem.linearize(x, r)
    one = jnp.ones((), x.dtype)
    return x - 0.2 * pull(one, 0.1 * one[None])


@jax.jit
def projected(problem, x, r):
    return problem.domain.project(stepped(problem, x, r))


@jax.jit
def shrunk(values):
    return onto_l1_ball(values, RADIUS)


def projected_by_lapack(problem, x, r):
    left, values, right = np.linalg.svd(np.asarray(stepped(problem, x, r)), full_matrices=False)
    return (left * np.asarray(shrunk(values))) @ right


def by_cvxpy(problem, x, r):
    """The projection of the gradient step as a conic program, with all that can be kept between rounds kept."""
    import cvxpy

    goal, decision = cvxpy.Parameter(x.shape), cvxpy.Variable(x.shape)
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(decision - goal)), [cvxpy.normNuc(decision) <= RADIUS])

    def call():
        goal.value = np.asarray(stepped(problem, x, r), float)
        program.solve(solver="CLARABEL")
        return decision.value

    return call


def by_xla(problem, x, r):
    return functools.partial(projected.lower(problem, x, r).compile(), problem, x, r)


def by_lapack(problem, x, r):
    shrunk(jnp.ones(len(x)))  # compiled
    return functools.partial(projected_by_lapack, problem, x, r)


def by_lapack_on_all_cores(problem, x, r):
    return with_blas_threads(cores(), by_lapack(problem, x, r))


RIVALS = {
    "projection, XLA": by_xla,
    "projection, LAPACK": by_lapack,
    "projection, LAPACK, all cores": by_lapack_on_all_cores,
    "CVXPY": by_cvxpy,
}


def rivals(device, problem, x, r):
    """By name, the ways to project, or the reason why one cannot be measured."""
    for name, make in RIVALS.items():
        limit = next(most for way, most in LARGEST[device].items() if way in name)
        if len(x) > limit:
            yield name, f"measured to {limit} x {limit}"
            continue
        try:
            yield name, make(problem, x, r) or "OpenBLAS does not let its threads be set"
        except ImportError as error:
            yield name, f"{error.name} is not installed"


def measure_size(size, device, repeats):
    problem, rounds, case = completion(size), some_rounds(size), f"{size} x {size}"
    games, rows = {}, []
    for name, learner in LEARNERS.items():
        if size > LARGEST[device].get(name, size):
            rows.append(
                skipped(case, name, f"{HORIZON**0.5:.0f} totals, points and perturbations need too much memory")
            )
        else:
            games[name] = Game(problem, learner, rounds)
    calls, touched = dict(games), games["Auto"].touched()
    for name, call in rivals(device, problem, games["Auto"].state.tracker.point.copy(), rounds[0]):
        if isinstance(call, str):
            rows.append(skipped(case, name, call))
        else:
            calls[name] = call
    calls["copy"], moved = copying(COPIED[device])
    spent = in_turn(calls, repeats, BUDGET[device], compiled=True)
    floor = [touched * each / moved for each in spent.pop("copy")]
    rows += [row(case, name, each, over="Auto", ours=spent["Auto"], size=size) for name, each in spent.items()]
    note = f"{touched / 2**20:.3g} MiB at {touched / np.median(floor) / 1e9:.3g} GB/s"
    rows.append(row(case, "memory floor", floor, over="Auto", ours=spent["Auto"], size=size, note=note))
    least, most = TARGETS[device].get(size, (None, None))
    projections = [each for name, each in spent.items() if name.startswith("projection")]
    if projections:
        svd = ratios(min(projections, key=np.median), spent["Auto"])
        rows.append(row(case, "SVD / Auto", svd, unit="x", size=size, target=least and (">=", least)))
    above = ratios(spent["Auto"], floor)
    rows.append(row(case, "Auto / floor", above, unit="x", size=size, target=most and ("<=", most)))
    return rows


def measure(device, quick):
    rows = []
    for size in QUICK if quick else SIZES[device]:
        rows += measure_size(size, device, 3 if quick else 15)
        jax.clear_caches()
        gc.collect()
    return rows
