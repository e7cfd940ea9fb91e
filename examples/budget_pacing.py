"""Budget pacing: buy offers all day, one round a minute, and have spent the budget when the day is over.

Every minute offers ten segments; the decision is how much of each to buy, and what they were worth and cost is seen
afterwards. `cx.problems.pacing` is ready-made. The spending of three learners is drawn beside the budget.

Run it: `python examples/budget_pacing.py [minutes]`. It prints value and spending against the best fixed decision, with
its certificate, and writes out/budget_pacing.png.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx

LEARNERS = {
    "Auto": cx.learners.Auto(),
    "drift plus penalty (projects)": cx.learners.DPP(),
    "Algorithm 1 + OCG, as proven": cx.learners.Blocks(cx.primal.OCG()),
}


def main(rounds=1440, out="out"):
    instance_key, rounds_key, key = jax.random.split(jax.random.key(0), 3)
    instance = cx.problems.pacing(instance_key, budget=0.3)  # 30% of what buying everything would cost
    data = instance.rounds(rounds, rounds_key)
    start = jnp.zeros(10)  # buy nothing before anything is known
    best = cx.hindsight(instance.problem, data)
    budget = float(data["budget"].sum())
    print(f"best fixed decision: value {-best.value:.1f}, at most {best.gap:.0e} below the best possible")
    games = {name: cx.play(instance.problem, one, data, key=key, start=start) for name, one in LEARNERS.items()}
    for name, game in games.items():
        value, spent = -game.loss.sum() / -best.value, 1 + game.violation()[-1, 0] / budget
        print(f"{name:30} {value:4.0%} of its value for {spent:4.0%} of the budget, score {game.score(best)[-1]:.0f}")

    hours = np.arange(1, rounds + 1) * 24 / rounds
    figure = Figure(figsize=(11, 4), layout="constrained")
    (left, right) = figure.subplots(1, 2)
    for name, game in games.items():
        left.plot(hours, np.cumsum(game.constraint[:, 0] + data["budget"]) / budget, label=name)
        right.plot(hours, game.multiplier[:, 0], label=name)
    left.plot(hours, np.cumsum(data["budget"]) / budget, "k--", label="the budget")
    left.set(title="Spent so far", xlabel="hour", ylabel="of the day's budget")
    left.legend(fontsize="small")
    right.axhline(best.multiplier[0], color="black", linestyle="--", label="best in hindsight")
    right.set(title="What a unit of budget is held to be worth", xlabel="hour")
    right.legend(fontsize="small")
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "budget_pacing.png"), dpi=150)
    print(f"wrote {Path(out, 'budget_pacing.png')}")
    return best, games


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
