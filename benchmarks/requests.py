"""Bandit routing of prompts, against the best policy that knows the means of each source, and the best fixed mix.

python -m benchmarks.requests

Means over the orders of prompts with the keys 300 to 319, in per cent of that policy's quality. The other figures of
docs/requests.md are those of `cocoax race requests`.
"""

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.problems.language_models import SOURCES, source_features

PROMPTS, ORDERS = 1824, range(300, 320)


def with_means(rounds):
    """The rounds, in which every prompt has the mean quality and cost of its source."""
    source = np.asarray(rounds["source"])
    means = {name: np.array(rounds[name]) for name in ("quality", "cost")}
    for one in np.unique(source):
        for table in means.values():
            table[source == one] = table[source == one].mean(0)
    return {name: jnp.asarray(table) for name, table in means.items()} | {"budget": rounds["budget"]}


def measure(budget):
    """(lost, overspent, lost by the best fixed mix) for every order."""
    instance, known = (cx.problems.llm_routing(budget=budget, known=what) for what in ("source", True))
    learner = cx.learners.BanditPrice(source_features, SOURCES)
    orders = [instance.rounds(PROMPTS, jax.random.key(order)) for order in ORDERS]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *orders)
    play = jax.jit(jax.vmap(lambda rounds: cx.play(instance.problem, learner, rounds, key=jax.random.key(0))))
    games = play(stacked)
    for number, rounds in enumerate(orders):
        policy = cx.hindsight(known.problem, with_means(rounds), policy=True).x
        best = float((policy * np.asarray(rounds["quality"])).sum())
        fixed = cx.hindsight(known.problem, rounds)
        over = float(games.constraint[number].sum()) / (budget * PROMPTS)
        yield 100 * (1 + float(games.loss[number].sum()) / best), 100 * over, 100 * (1 + float(fixed.value) / best)


def main():
    print("| budget | lost | overspent | worst order | lost by the best fixed mix |\n|---|---|---|---|---|")
    for budget in (3e-4, 2e-3):
        figures = np.array(list(measure(budget)))
        lost, over, fixed = figures.mean(0)
        print(f"| {budget:g} | {lost:.2f} | {over:.2f} | {figures[:, 0].max():.2f} | {fixed:.2f} |", flush=True)


if __name__ == "__main__":
    main()
