"""Variants of Auto that were not taken, beside it: scores on problems of the arena, on seeds that no page reports.

python -m benchmarks.auto_variants [part of a name ...] [--variants "all debts" ...] [--first 50000] [--seeds 6]

Scores are those of `cocoax race arena`, means over the seeds, after 100 and 1000 rounds of the same games. Behind a
variant's score, in brackets: its mean difference from Auto's, and the standard error of that.
"""

import argparse
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.dual.robust_pi import RobustPI
from cocoax.lab.arena.problems import ARENA

HORIZONS = (100, 1000)


class OtherDebts(RobustPI):
    """Another number of standard deviations of noise is no debt, whatever a constraint's multiplier is."""

    deviations: float = eqx.field(static=True)

    def __init__(self, deviations: float):
        super().__init__()
        self.deviations = deviations

    def tolerated(self, shares):
        return jnp.full_like(shares, self.deviations)


def auto(**parts):
    """Auto with other parts."""
    learner = cx.learners.Auto()
    for name, part in parts.items():
        learner = eqx.tree_at(lambda learner, name=name: getattr(learner, name), learner, part)
    return learner


VARIANTS = {
    "Auto": auto(),
    "start": cx.learners.Stay(),
    "debts beyond one deviation": auto(dual=OtherDebts(1.0)),
    "beyond half a deviation": auto(dual=OtherDebts(0.5)),
    "all debts": auto(dual=OtherDebts(0.0)),
    "boxes, first 0.001": auto(box_rule=cx.primal.DistanceBound(1e-3)),
    "boxes, most 0.5": auto(box_rule=cx.primal.DistanceBound(most=0.5)),
}


def drawn(name, seeds):
    """Instances and their rounds."""
    keys = [jax.random.split(jax.random.key(seed)) for seed in seeds]
    instances = [ARENA[name](key[0]) for key in keys]
    return instances, [instance.rounds(max(HORIZONS), key[1]) for instance, key in zip(instances, keys)]


def comparators(instances, rounds):
    """(values, prices) for each horizon."""
    for horizon in HORIZONS:
        first = [jax.tree.map(lambda leaf, n=horizon: leaf[:n], each) for each in rounds]
        best = [instance.comparator(each, tol=1e-5) for instance, each in zip(instances, first)]
        yield np.array([each.value for each in best]), np.array([each.price for each in best])


def scores(learner, problems, rounds, against):
    """One row for each horizon, one column for each seed."""

    def play(problem, rounds):
        game = cx.play(problem, learner, rounds, key=jax.random.key(0))
        return jnp.cumsum(game.loss), jnp.cumsum(game.constraint, axis=0)

    losses, violations = (np.asarray(sums, float) for sums in jax.jit(jax.vmap(play))(problems, rounds))
    return [
        losses[:, n - 1] - values + (prices * np.maximum(violations[:, n - 1], 0)).sum(-1)
        for n, (values, prices) in zip(HORIZONS, against)
    ]


def _stacked(games):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *games)


def rows(name, chosen, seeds):
    """The lines of a problem's part of the table."""
    instances, rounds = drawn(name, seeds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of certificates that are not closed
        against = list(comparators(instances, rounds))
    problems, rounds = _stacked([instance.problem for instance in instances]), _stacked(rounds)
    found = {variant: scores(VARIANTS[variant], problems, rounds, against) for variant in ("Auto", *chosen)}
    for k, horizon in enumerate(HORIZONS):
        line = [f"{found['Auto'][k].mean():.4g}"]
        for variant in chosen:
            more = found[variant][k] - found["Auto"][k]
            error = more.std(ddof=1) / len(more) ** 0.5
            line.append(f"{found[variant][k].mean():.4g} ({more.mean():+.2g} ± {error:.1g})")
        yield f"| {name}, T = {horizon} | {' | '.join(line)} |"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--variants", nargs="*", default=[name for name in VARIANTS if name != "Auto"])
    arguments.add_argument("--first", type=int, default=50000)
    arguments.add_argument("--seeds", type=int, default=6)
    arguments = arguments.parse_args()
    jax.config.update("jax_disable_most_optimizations", True)  # each program runs once: compiling takes longer
    print(f"| | Auto | {' | '.join(arguments.variants)} |\n|---|{'---|' * (1 + len(arguments.variants))}")
    for name in ARENA:
        if not arguments.names or any(part in name for part in arguments.names):
            for row in rows(name, arguments.variants, range(arguments.first, arguments.first + arguments.seeds)):
                print(row, flush=True)


if __name__ == "__main__":
    main()
