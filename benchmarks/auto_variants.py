"""Variants of Auto that were not taken, beside it: scores on problems of the arena, on seeds that no page reports.

python -m benchmarks.auto_variants [part of a name ...] [--variants "all debts" ...] [--first 50000] [--seeds 6]

Scores are those of `cocoax race arena`, means over the seeds, after 100 and 1000 rounds of the same games. Behind a
variant's score, in brackets: its mean difference from Auto's, and the standard error of that.
"""

import argparse
import warnings
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.core import tree
from cocoax.dual.robust_pi import _NORMAL, RobustPI
from cocoax.lab.arena.problems import ARENA
from cocoax.learners.base import first_decision
from cocoax.primal.bet import Bet
from cocoax.primal.hedge import Hedge

HORIZONS = (100, 1000)


class OtherDebts(RobustPI):
    """Another number of standard deviations of noise is no debt: a function of all multipliers, in their units."""

    rule: Callable = eqx.field(static=True)

    def __init__(self, rule: Callable):
        super().__init__()
        self.rule = rule

    def control(self, state, values, unit):
        """Deviations that are a debt here, and would not be one in RobustPI, are added to the sum that it sees."""
        _, usual = super().control(state, values, unit)
        tolerated = self.rule(tree.ratio(state.integral, unit))
        owed = state.owed + (1 - tolerated) * _NORMAL * usual.noise * jnp.sqrt(usual.seen)
        weights, new = super().control(eqx.tree_at(lambda state: state.owed, state, owed), values, unit)
        return weights, eqx.tree_at(lambda state: state.owed, new, usual.owed)


def binding(worth):
    """The share of a constraint in the direction: 0 where it does not bind."""
    return worth / (1 + worth.sum())


class BesideStart(cx.learners.AbstractLearner):
    """Auto's decisions, mixed with the start by what both would have cost (AdaHedge); the start begins with `share`.

    If `fades`, sums of costs fade like 1/n, so that large costs of the first rounds are forgotten.
    """

    learner: cx.learners.AbstractLearner
    share: float = eqx.field(static=True, default=0.05)
    fades: bool = eqx.field(static=True, default=False)

    def init(self, problem, *, key, horizon=None, start=None):
        start = first_decision(problem, start)
        return self.learner.init(problem, key=key, start=start), start, self.begin(tree.dtype(start))

    def decision(self, state):
        inner, start, both = state
        return tree.mix(start, self.learner.decision(inner), self.share_of_auto(both))

    def observe(self, problem, state, round, *, played=None):
        inner, start, both = state
        moved = tree.sub(self.learner.decision(inner), start)
        played = self.decision(state) if played is None else played
        of_loss, of_constraints = problem.gradients(played, round)
        inner, outcome = self.learner.observe(problem, inner, round, played=played)
        direction = tree.add(of_loss, tree.combine(outcome.multiplier, of_constraints))
        excess = tree.dot(direction, moved) / (1 + outcome.multiplier.sum())
        return (inner, start, self.after(both, excess, inner.units.rounds)), outcome

    def begin(self, dtype):
        return Hedge.begin(jnp.array([1 - self.share, self.share], dtype), least=0.0)

    def share_of_auto(self, both):
        return both.shares[0]

    def after(self, both, excess, rounds):
        """After a round in which Auto cost `excess` more than the start."""
        costs = jnp.stack([excess, jnp.zeros_like(excess)])
        return both.observe(costs, jnp.abs(excess), rounds / (rounds + 1) if self.fades else 1.0)


class BetOnStart(BesideStart):
    """Auto's decisions, with a bet that the start is better (`primal.bet`)."""

    def begin(self, dtype):
        return Bet.begin(dtype)

    def share_of_auto(self, both):
        return 1 - both.share

    def after(self, both, excess, rounds):
        return both.observe(excess)


def auto(**parts):
    """Auto with other parts."""
    learner = cx.learners.Auto()
    for name, part in parts.items():
        learner = eqx.tree_at(lambda learner, name=name: getattr(learner, name), learner, part)
    return learner


VARIANTS = {
    "Auto": auto(),
    "start": cx.learners.Stay(),
    "half debts": auto(dual=OtherDebts(lambda worth: 0.5)),
    "all debts": auto(dual=OtherDebts(lambda worth: 0.0)),
    "binding debts": auto(dual=OtherDebts(lambda worth: 1 - binding(worth))),
    "binding debts, squared": auto(dual=OtherDebts(lambda worth: 1 - binding(worth) ** 2)),
    "start, 20%": BesideStart(auto(), 0.2),
    "start, 5%": BesideStart(auto()),
    "start, 5%, fading": BesideStart(auto(), fades=True),
    "bet on the start": BetOnStart(auto()),
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
