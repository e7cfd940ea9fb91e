"""Pacing with requests: see each offer, buy it or pass, and never exceed the budget nor the plan of the day.

Value and cost of an offer are known before the decision, and rise and fall over the day. `learners.Budgeted` refuses
what would exceed the budget or the plan; the learner inside it chooses what is worth its price.

Run it: `python examples/pacing_requests.py [offers]`. It prints value and spending beside the best policy, with its
certificate, and writes out/pacing_requests.png: what was spent, beside the plan.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx

SAFE = np.array([1.0, 0.0])  # to pass


def spend(x, offer):
    return x @ offer["cost"]


def plan_of(rounds):
    """What part of the budget may be spent by the end of each round: as offers are expected to cost, and 10% more."""
    day = 1 + 0.8 * np.sin(2 * np.pi * np.arange(rounds) / rounds)
    return np.minimum(1.0, 0.1 + np.cumsum(day) / day.sum())


def main(rounds=1440, out="out"):
    instance = cx.problems.offers(share=0.2, day=rounds)
    offers = instance.rounds(rounds, jax.random.key(0))
    best, budget, plan = instance.comparator(offers), float(offers["budget"].sum()), plan_of(rounds)
    print(f"best policy: value {-best.value:.1f}, at most {best.gap:.0e} below the best possible")
    inside = {
        "AutoPrice": cx.learners.AutoPrice(),
        "adaptive pacing": cx.learners.AdaptivePacing(1 / rounds**0.5),
        "throttling": cx.learners.Throttling(SAFE),
    }
    games = {}
    for name, learner in inside.items():
        learner = cx.learners.Budgeted(learner, spend=spend, budget=budget, safe=SAFE, plan=plan)
        games[name] = game = cx.play(instance.problem, learner, offers, key=jax.random.key(1))
        spent = 1 + float(game.violation()[-1, 0]) / budget
        print(f"{name:16} {float(game.loss.sum()) / best.value:6.1%} of its value for {spent:6.1%} of the budget")

    hours = np.arange(1, rounds + 1) * 24 / rounds
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    for name, game in games.items():
        axes.plot(hours, np.cumsum(game.constraint[:, 0] + offers["budget"][:, 0]) / budget, label=name)
    axes.plot(hours, plan, "k--", label="plan: never more than this")
    axes.set(title="Spent so far", xlabel="hour", ylabel="of the day's budget")
    axes.legend(fontsize="small")
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "pacing_requests.png"), dpi=150)
    print(f"wrote {Path(out, 'pacing_requests.png')}")
    return best, budget, plan, games


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
