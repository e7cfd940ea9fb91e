"""A round of Auto on the nuclear-norm ball against the same round with exact projection by SVD.

python -m benchmarks.auto_round [--size 1000] [--dtype float32] [--repeats 9] [--device]

The problem is the paper's completion of matrices, with 4% of the entries observed as a dense mask. A round of Auto is
one compiled `observe`, late enough in a game that its vertices and guesses are warm. A round with projection is one
gradient step and the projection of the result, by XLA's SVD (`domain.project`, compiled) and by LAPACK's (`gesdd`, from
NumPy); the faster of the two is the rival. All are timed in turn; on a shared machine the best time says more than the
median. Below stand the pieces of Auto's round, each compiled by itself. BLAS, which both SVDs use, has one thread
unless OPENBLAS_NUM_THREADS says otherwise. `--device` plays where JAX would by itself, instead of on the CPU.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import platform

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from benchmarks.timing import timed
from cocoax.core import tree
from cocoax.domains.vectors.balls import onto_l1_ball

WARM, OBSERVED, RADIUS = 30, 0.04, 5.0


def loss(x, r):
    return 0.5 * jnp.sum(r["mask"] * (x - r["ratings"]) ** 2)


def constraint(x, r):
    return jnp.vdot(r["exposure"], x) - r["budget"]


def some_rounds(size, dtype, count):
    """Rounds of the paper's experiment, and of a rank that is small beside the size."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, size, 5))
    truth = left @ right.T
    truth /= np.linalg.norm(truth) * 5**0.5
    for _ in range(count):
        mask = rng.random((size, size)) < OBSERVED
        exposure = rng.uniform(-1, 1, (size, size))
        one = {"mask": mask, "ratings": truth, "exposure": exposure, "budget": 0.0}
        yield {name: jnp.asarray(value, dtype) for name, value in one.items()}


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


@jax.jit
def observe(learner, problem, state, r):
    return learner.observe(problem, state, r)[0]


def pieces(problem, state, r):
    """Auto's round in parts, by name."""
    x, y, domain = state.tracker.point, state.tracker.target, problem.domain
    one = jnp.ones((), x.dtype)

    @jax.jit
    def gradients(problem, x, r):
        return problem.values(x, r), problem.gradients(x, r)

    @jax.jit
    def products(problem, x, y, r):
        hessian = problem.curvature(x, r, one, 0.1 * one[None])
        shifted = hessian(tree.sub(y, x))
        return shifted, hessian(shifted)

    @jax.jit
    def lmo(domain, direction, guess):
        return domain.lmo(direction, guess)

    @jax.jit
    def follow(domain, tracker, update):
        return tracker.follow(domain, update, slack=0.1)

    @jax.jit
    def copied(x):
        return x + 1

    away, update = tree.sub(x, y), tree.scale(0.01, problem.gradients(x, r)[0])
    parts = {
        "values and gradients": lambda: gradients(problem, x, r),
        "two products with a Hessian": lambda: products(problem, x, y, r),
        "LMO": lambda: lmo(domain, away, state.tracker.vertex),
        "following, with its LMO": lambda: follow(domain, state.tracker, update),
        "for scale: one matrix read and written": lambda: copied(x),
    }
    for part in parts.values():
        jax.block_until_ready(part())
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--device", action="store_true")
    options = parser.parse_args()
    if not options.device:
        jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", options.dtype == "float64")

    domain = cx.domains.NuclearNormBall((options.size, options.size), RADIUS)
    problem, learner = cx.Problem(domain, loss, constraint), cx.learners.Auto()
    rounds = list(some_rounds(options.size, options.dtype, 3))
    state = learner.init(problem, key=jax.random.key(0))
    for t in range(WARM):
        state = observe(learner, problem, state, rounds[t % len(rounds)])
    x, r = learner.decision(state), rounds[0]
    calls = {
        "Auto": lambda: observe(learner, problem, state, r),
        "projection, XLA": lambda: projected(problem, x, r),
        "projection, LAPACK": lambda: projected_by_lapack(problem, x, r),
    }
    for call in calls.values():
        jax.block_until_ready(call())
    spent = timed(calls, options.repeats)

    kept = jax.tree.leaves(eqx.filter(state, eqx.is_array))
    print(f"cocoax {cx.__version__}, jax {jax.__version__} on {jax.devices()[0].device_kind}, numpy {np.__version__}.")
    print(
        f"{platform.machine()} with {os.cpu_count()} cores; Auto's state is {sum(a.nbytes for a in kept) >> 20} MiB.\n"
    )
    print("| size | dtype | time | Auto, ms | XLA's SVD, ms | LAPACK's SVD, ms | faster SVD over Auto |")
    print("|---|---|---|---|---|---|---|")
    for name, summary in (("best", np.min), ("median", np.median)):
        auto, *rivals = (summary(each) for each in spent.values())
        times = " | ".join(f"{each:.3g}" for each in (auto, *rivals))
        print(f"| {options.size} | {options.dtype} | {name} | {times} | {min(rivals) / auto:.3g} |")
    print("\n| piece of Auto's round | ms, best | median |\n|---|---|---|")
    for name, each in timed(pieces(problem, state, r), options.repeats).items():
        print(f"| {name} | {np.min(each):.3g} | {np.median(each):.3g} |")


if __name__ == "__main__":
    main()
