"""Auto on families of problems that nobody had in mind when it was made, against simple rivals with one tuned step.

python -m benchmarks.unseen [part of a family's name ...] [--first 0]

Each family is played on the seeds 0, 1, 2 (from `--first` on), for 1000 rounds unless it says otherwise. A score is
regret against `cx.hindsight` plus the violation at its price; scores are means. The rivals are projected gradient
descent with steps c R/(L sqrt T), c R/(L sqrt t) and c R/(L t), AdaGrad by coordinate, and on simplices exponentiated
gradient, all with dual ascent of 1 or 10 units; where a set has no projection, Frank-Wolfe steps of length c/sqrt t
along running means of gradients. R is the diameter, L the RMS length of gradients at the start. c, one of 11, and the
dual's step are the best on the seeds 100, 101, 102. The best of the rivals and of staying at the start is shown.
"""

import argparse
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx

from . import FAMILIES

SCALES = 10.0 ** np.arange(-3, 2.1, 0.5)
KINDS = {  # powers of T and t in the step; whether it is AdaGrad, exponentiated
    "c/sqrt T": (0.5, 0.0, False, False),
    "c/sqrt t": (0.0, 0.5, False, False),
    "c/t": (0.0, 1.0, False, False),
    "AdaGrad": (0.0, 0.0, True, False),
    "exponentiated": (0.5, 0.0, False, True),
    "Frank-Wolfe": (0.0, 0.5, False, False),
}


def rival(problem, rounds, units, start):
    """`play(c, dual, kind, data)`: total loss and violation."""
    of_loss, of_constraint, diameter = units
    simplex, projects = isinstance(problem.domain, cx.domains.ProbabilitySimplex), _projects(problem.domain)

    def moved(x, sums, h, t, c, kind):
        powers, adagrad, exponentiated = kind[:2], kind[2], kind[3]
        if not projects:
            sums = jax.tree.map(lambda s, h: s + (h - s) / jnp.sqrt(t), sums, h)
            vertex = problem.domain.lmo(sums).dense()
            return jax.tree.map(lambda x, v: x + jnp.minimum(1, c / jnp.sqrt(t)) * (v - x), x, vertex), sums
        sums = jax.tree.map(lambda s, h: s + h * h, sums, h)
        eta = c * diameter / of_loss / (rounds ** powers[0] * t ** powers[1])
        etas = jax.tree.map(lambda s: jnp.where(adagrad, c * diameter / jnp.sqrt(s + 1e-30), eta), sums)
        y = problem.domain.project(jax.tree.map(lambda x, h, eta: x - eta * h, x, h, etas))
        if simplex:
            y = jnp.where(
                exponentiated, problem.domain.total * jax.nn.softmax(jnp.log(jnp.maximum(x, 1e-30)) - eta * h), y
            )
        return y, sums

    def play(c, dual, kind, data):
        def step(state, now):
            (x, multiplier, sums), (t, round) = state, now
            values, (grad, grads) = problem.values(x, round), problem.gradients(x, round)
            h = jax.tree.map(lambda f, g: f + jnp.tensordot(multiplier, g, 1), grad, grads)
            ascent = dual * of_loss / of_constraint / (of_constraint * diameter) / rounds**0.5
            x, sums = moved(x, sums, h, t, c, kind)
            return (x, jnp.maximum(0, multiplier + ascent * values[1]), sums), values

        begin = (start, jnp.zeros(problem.constraints), jax.tree.map(jnp.zeros_like, start))
        loss, values = jax.lax.scan(step, begin, (jnp.arange(1.0, rounds + 1), data))[1]
        return loss.sum(), values.sum(axis=0)

    return play


def _projects(domain):
    try:
        domain.project(domain.start())
    except cx.errors.DomainError:
        return False
    return True


def _units(problem, data, start):
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), data)
    lengths = [
        np.sqrt(sum(float(jnp.sum(leaf.astype(float) ** 2)) / leaf.shape[0] for leaf in jax.tree.leaves(gradients)))
        for gradients in jax.jit(jax.vmap(lambda r: problem.gradients(start, r)))(flat)
    ]
    return lengths[0], lengths[1] / max(problem.constraints, 1) ** 0.5 or 1.0, float(problem.domain.diameter(2))


def _stacked(games):
    arrays = {field: np.stack([game[field] for game in games]) for field in games[0]}
    return {k: jnp.asarray(v, np.int32 if v.dtype.kind == "i" else np.float32) for k, v in arrays.items()}


def _optimum(problem, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of certificates that are not closed: the table has the gap
        return cx.hindsight(problem, data, tol=1e-4, seconds=10, progress=False)


def _candidates(problem):
    kinds = ["c/sqrt T", "c/sqrt t", "c/t", "AdaGrad"] if _projects(problem.domain) else ["Frank-Wolfe"]
    kinds += ["exponentiated"] * isinstance(problem.domain, cx.domains.ProbabilitySimplex)
    return [
        (kind, c, dual) for kind in kinds for c in SCALES for dual in ((1.0, 10.0) if problem.constraints else (1.0,))
    ]


def measure(name, first=0):
    """One row of the table."""
    problem, draw, rounds, start = FAMILIES[name]
    data = _stacked([draw(np.random.default_rng(seed), rounds) for seed in (*range(first, first + 3), 100, 101, 102)])
    played, tuned_on = ({k: v[part] for k, v in data.items()} for part in (slice(3), slice(3, 6)))
    bests = [_optimum(problem, {k: v[i] for k, v in played.items()}) for i in range(3)]
    price, value = np.mean([best.price for best in bests], axis=0), np.array([best.value for best in bests])

    def scores(losses, values, value=value):
        scores = np.asarray(losses, float) - value + np.maximum(np.asarray(values, float), 0) @ price
        return np.where(np.isfinite(scores), scores, np.inf).mean(axis=-1)

    def auto(data):
        game = cx.play(problem, cx.learners.Auto(), data, key=jax.random.key(0), start=start)
        return game.loss.sum(), game.constraint.sum(axis=0)

    losses, values = jax.jit(jax.vmap(auto))(played)
    score, regret = scores(losses, values), float(np.mean(np.asarray(losses, float) - value))
    stay = jax.vmap(jax.vmap(lambda r: problem.values(start, r)))
    still = scores(*(leaf.sum(axis=1) for leaf in jax.jit(stay)(played)))

    candidates = _candidates(problem)
    c, dual = (jnp.array([candidate[i] for candidate in candidates]) for i in (1, 2))
    kind = tuple(jnp.array(column) for column in zip(*(KINDS[candidate[0]] for candidate in candidates)))
    play = rival(problem, rounds, _units(problem, tuned_on, start), start)
    losses, totals = jax.jit(jax.vmap(jax.vmap(play, (None, None, None, 0)), (0, 0, 0, None)))(c, dual, kind, data)
    others = {"start": still}
    for name in dict.fromkeys(candidate[0] for candidate in candidates):
        tuned = [s if k[0] == name else np.inf for k, s in zip(candidates, scores(losses[:, 3:], totals[:, 3:], 0.0))]
        others[name] = scores(losses[int(np.argmin(tuned)), :3], totals[int(np.argmin(tuned)), :3])
    best = min(others, key=lambda name: others[name])
    violation = ", ".join(f"{v:.3g}" for v in np.asarray(values, float).mean(axis=0)[:2])
    return (
        score,
        f"{score:.3g} ({regret:.3g}; {violation})",
        still,
        best,
        others[best],
        max(float(b.gap) for b in bests),
    )


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--first", type=int, default=0)
    arguments = arguments.parse_args()
    jax.config.update("jax_disable_most_optimizations", True)  # each program runs once: compiling takes longer
    print("| family | Auto (regret; violations) | start | best tuned rival | its score | ratio | gap |")
    print("|---" * 7 + "|")
    for name in FAMILIES:
        if not arguments.names or any(part in name for part in arguments.names):
            score, auto, still, best, least, gap = measure(name, arguments.first)
            ratio = f"{score / least:.2g}" if least > 0 else "–"
            print(f"| {name} | {auto} | {still:.3g} | {best} | {least:.3g} | {ratio} | {gap:.1g} |", flush=True)


if __name__ == "__main__":
    main()
