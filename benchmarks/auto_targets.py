"""What Auto reaches with nothing tuned, on seeds that were first played when it was finished.

python -m benchmarks.auto_targets
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.lab.sources import as_source

HORIZON = 1000
COMPLETION = {
    "the paper's experiment": cx.problems.matrix_completion,
    "its binding variant": functools.partial(cx.problems.matrix_completion, binding=True),
}
BUDGETS = (0.5, 0.2, 0.1)
AGES = (1000, 10_000)


def play_all(drawn, learner):
    """Losses and constraint values of one game for each seed, with time as the second axis."""
    problems, rounds = (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        for each in ([d.problem for d in drawn], [d.rounds for d in drawn])
    )

    @jax.jit
    @jax.vmap
    def play(problem, rounds):
        game = cx.play(problem, learner, rounds, key=jax.random.key(0))
        return game.loss, game.constraint

    loss, constraint = (np.asarray(each, np.float64) for each in play(problems, rounds))
    return loss, constraint


def against_best(make, seeds):
    """Regret, violation, and the comparators' values, one for each seed."""
    drawn = [as_source("benchmark", make).draw(seed, HORIZON) for seed in seeds]
    loss, constraint = play_all(drawn, cx.learners.Auto())
    values = np.array([float(each.comparator(HORIZON, 1e-5).value) for each in drawn])
    return loss.sum(1) - values, constraint.sum((1, 2)), values, drawn


def pacing(budget, seeds):
    """Regret in % of the optimum, overspending in % of the budget."""
    regret, violation, values, drawn = against_best(functools.partial(cx.problems.pacing, budget=budget), seeds)
    spend = HORIZON * np.array([float(each.rounds["budget"][0]) for each in drawn])
    return 100 * regret / np.abs(values), 100 * violation / spend


def drift(age, memory, seeds, after=1000):
    """The highest overspending after all prices double at that age, in rounds of budget."""
    make = functools.partial(cx.problems.pacing, doubles_at=age)
    drawn = [as_source("benchmark", make).draw(seed, age + after) for seed in seeds]
    _, constraint = play_all(drawn, cx.learners.Auto(memory))
    spent = np.cumsum(constraint[:, :, 0], axis=1)
    budget = np.array([float(each.rounds["budget"][0]) for each in drawn])
    return (spent[:, age:].max(1) - spent[:, age - 1]) / budget


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=2000)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    print(f"Means over the seeds {seeds[0]} to {seeds[-1]}, T = {HORIZON}.\n\n| | regret | violation |\n|---|---|---|")
    for name, make in COMPLETION.items():
        regret, violation, _, _ = against_best(make, seeds)
        print(f"| {name} | {regret.mean():.3f} | {violation.mean():+.1f} |", flush=True)
    for budget in BUDGETS:
        regret, overspent = pacing(budget, seeds)
        print(f"| pacing, budget {budget:.0%} | {regret.mean():.2f}% | {overspent.mean():+.2f}% |", flush=True)
    for memory in (None, 1000):
        peaks = ", ".join(f"{drift(age, memory, seeds).mean():.1f} at {age}" for age in AGES)
        print(
            f"| prices double, memory {memory or 'of all rounds'} | | peak, in rounds of budget: {peaks} |", flush=True
        )


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
