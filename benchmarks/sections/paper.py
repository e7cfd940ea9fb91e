"""The paper's whole experiment with Algorithm 2: 30 instances, T = 1000, 50 x 50, perturbations from the cube.

cocoax plays it as one compiled call, in float32, not counting compilation. Its rivals are Algorithm 2 in plain NumPy,
in float32 too, with one LMO after the other by SciPy's `svds(k=1)` as it comes, or by LAPACK's whole SVD.
They play the first rounds of one instance; their time is *extrapolated* from these to all rounds of all instances.
Losses a round tell that all play the same game.
"""

import functools
import math

import jax
import numpy as np

import cocoax as cx
from benchmarks.timing import ratios, row, skipped, timed

RADIUS = 5.0


def instances(count, horizon):
    @jax.jit
    @jax.vmap
    def make(key):
        instance_key, rounds_key = jax.random.split(key)
        instance = cx.problems.matrix_completion(instance_key, radius=RADIUS)
        return instance.problem, instance.rounds(horizon, rounds_key)

    keys = jax.random.split(jax.random.key(0), count)
    return *jax.block_until_ready(make(keys)), keys


def by_svds(direction):
    from scipy.sparse.linalg import svds

    left, _, right = svds(direction, k=1)
    return -RADIUS * left * right


def by_lapack(direction):
    left, _, right = np.linalg.svd(direction, full_matrices=False)
    return -RADIUS * left[:, :1] * right[:1]


def algorithm_2(rounds, lmo, horizon, played, noise=None):
    """The losses of the first `played` rounds of Algorithm 2, planned for `horizon`, in plain NumPy.

    `noise(t, k)` is uniform on the unit cube, NumPy's by default.
    """
    rng, shape = np.random.default_rng(0), rounds["exposure"].shape[1:]
    noise = noise or (lambda t, k: rng.random(shape, np.float32))
    inner, level, d = math.ceil(math.sqrt(horizon)), math.sqrt(horizon), math.prod(shape)
    lipschitz, diameter = RADIUS + 1, 2 * RADIUS * math.sqrt(d)  # in the linf and the l1 norm
    size, theta = 2 * lipschitz * math.sqrt(d) * level, 12 * diameter * lipschitz * math.sqrt(d) / level
    mu = 1 / (theta * (horizon + 2))
    totals, multiplier, losses = np.zeros((inner, *shape), np.float32), 0.0, []
    for t in range(played):
        entries, ratings, exposure = (rounds[name][t] for name in ("entries", "ratings", "exposure"))
        x, points = np.zeros(shape, np.float32), []
        for k in range(inner):
            points.append(x)
            vertex = lmo(totals[k] + np.float32(size) * noise(t, k))
            x = x + np.float32(2 / (k + 2)) * (vertex - x)
        losses.append(0.5 * np.sum((x.ravel()[entries] - ratings) ** 2))
        for total, point in zip(totals, points):
            total.ravel()[entries] += point.ravel()[entries] - ratings
            total += np.float32(multiplier) * exposure
        value = np.vdot(exposure, x) - rounds["budget"][t]
        multiplier = max((1 - theta * mu) * multiplier + mu * value, 0.0)
    return np.array(losses)


def games(learner, count, horizon):
    """One compiled call that plays so many instances, and what it was given."""
    problems, rounds, keys = instances(count, horizon)

    @jax.jit
    @jax.vmap
    def losses(problem, rounds, key):
        return cx.play(problem, learner, rounds, key=key).loss

    compiled = losses.lower(problems, rounds, keys).compile()
    return functools.partial(compiled, problems, rounds, keys), rounds


def measure(device, quick):
    count, horizon, played, repeats = (2, 30, 3, 1) if quick else (30, 1000, 20, 3)
    case, all_rounds = f"{count} instances, T = {horizon}", count * horizon
    study, rounds = games(cx.learners.PDMFW(), count, horizon)
    first = {name: np.asarray(leaf[0]) for name, leaf in rounds.items()}
    calls, rows = {"cocoax": study}, []
    losses = {"cocoax": np.asarray(study())[0, :played]}
    for name, lmo in (("NumPy and `svds`", by_svds), ("NumPy and LAPACK", by_lapack)):
        try:
            losses[name] = algorithm_2(first, lmo, horizon, played)
            calls[name] = functools.partial(algorithm_2, first, lmo, horizon, played)
        except ImportError:
            rows.append(skipped(case, name, "SciPy is not installed"))
    spent = {name: [1e-3 * each for each in found] for name, found in timed(calls, repeats).items()}
    ours = spent["cocoax"]
    for name, each in spent.items():
        note = f"loss {losses[name].mean():.3f} a round in the first {played}"
        if name != "cocoax":
            each = [seconds * all_rounds / played for seconds in each]
            note += f"; extrapolated from {played} of {all_rounds} rounds"
        rows.append(row(case, name, each, over="cocoax", ours=ours, note=note))
        if "svds" in name:
            target = None if quick or device != "cpu" else (">=", 30.0)
            rows.append(row(case, "`svds` loop / cocoax", ratios(each, ours), unit="x", target=target))
    return rows
