"""Routing prompts to language models within a monthly budget: each prompt goes to one of three models.

The data are recorded: quality and price of 1,824 prompts, each answered by three models. What is known when a prompt
comes differs: its quality and price with every model; their means over earlier prompts of the same source; or nothing,
so that only the chosen model's quality and price are ever seen.

Run it: `python examples/llm_routing.py [prompts]`. It prints quality and spending beside the best policy, with its
certificate, and writes out/llm_routing.png: what was spent in the month, beside an even plan.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx
from cocoax.problems.language_models import SOURCES, expected_by_source, source_features

BUDGET = 3e-4  # dollars a prompt; the best model alone costs 50 times as much

WAYS = {
    "every prompt known": (True, cx.learners.AutoPrice()),
    "means of its source known": (False, cx.learners.AutoPrice(predict=expected_by_source)),
    "learned from what was chosen": ("source", cx.learners.BanditPrice(source_features, SOURCES)),
}


def main(rounds=1824, out="out"):
    order, key = jax.random.split(jax.random.key(0))
    instance = cx.problems.llm_routing(budget=BUDGET)
    prompts = instance.rounds(rounds, order)
    best, fixed = instance.comparator(prompts), cx.hindsight(instance.problem, prompts)
    quality, gap = -best.value / rounds, best.gap / rounds
    print(f"best policy: mean quality {quality:.3f}, at most {gap:.0e} below the best possible")
    print(f"{'best fixed mix of models':30} {fixed.value / best.value:6.1%} of its quality, in hindsight")
    games = {}
    for name, (known, learner) in WAYS.items():
        problem = cx.problems.llm_routing(budget=BUDGET, known=known).problem
        games[name] = game = cx.play(problem, learner, prompts, key=key)
        spent = 1 + float(game.violation()[-1, 0]) / (BUDGET * rounds)
        print(f"{name:30} {float(game.loss.sum()) / best.value:6.1%} of its quality for {spent:6.1%} of the budget")

    days = np.arange(1, rounds + 1) * 30 / rounds
    figure = Figure(figsize=(11, 4), layout="constrained")
    (left, right) = figure.subplots(1, 2)
    for name, game in games.items():
        left.plot(days, np.cumsum(game.constraint[:, 0] + BUDGET), label=name)
        right.plot(days, np.cumsum(-game.loss) / np.arange(1, rounds + 1), label=name)
    left.plot(days, BUDGET * np.arange(1, rounds + 1), "k--", label="even plan")
    left.set(title="Spent so far", xlabel="day of the month", ylabel="dollars")
    left.legend(fontsize="small")
    right.axhline(-best.value / rounds, color="black", linestyle="--", label="best policy in hindsight")
    right.axhline(-fixed.value / rounds, color="grey", linestyle=":", label="best fixed mix in hindsight")
    right.set(title="Mean quality so far", xlabel="day of the month", ylim=(0.7, 1))
    right.legend(fontsize="small")
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "llm_routing.png"), dpi=150)
    print(f"wrote {Path(out, 'llm_routing.png')}")
    return best, fixed, games


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
