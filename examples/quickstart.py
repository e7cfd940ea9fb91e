"""Quickstart: split requests over three servers, cheaply, within an energy budget that must hold in the long run.

The fast server is cheap and needs much energy, the slow one is expensive and needs little. On average a request costs
(1, 2, 4) and needs (1, 0.4, 0.1) units of energy; the budget is 0.5 per round. By hand: the best fixed split is
(1/6, 5/6, 0), at a cost of 11/6 per round, and one more unit of energy would save 5/3. Run it: it prints that, and
writes a picture.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx

BUDGET = 0.5
horizon = int(sys.argv[1]) if len(sys.argv) > 1 else 3000


def loss(x, r):  # r is whatever a round reveals
    return jnp.vdot(r["price"], x)


def constraint(x, r):  # <= 0 is good
    return jnp.vdot(r["energy"], x) - BUDGET


problem = cx.Problem(
    cx.domains.ProbabilitySimplex(3),
    loss,
    constraint,
    # bounds on gradients and constraint values, for the methods that come with a proof
    regularity=cx.Regularity(lipschitz=6.9, smoothness=0.0, constraint_bound=1.0),
)

price_key, energy_key, key = jax.random.split(jax.random.key(0), 3)
rounds = {
    "price": jnp.array([1.0, 2.0, 4.0]) * jax.random.uniform(price_key, (horizon, 3), minval=0.5, maxval=1.5),
    "energy": jnp.array([1.0, 0.4, 0.1]) * jax.random.uniform(energy_key, (horizon, 3), minval=0.5, maxval=1.5),
}

best = cx.hindsight(problem, rounds)
print(
    f"best fixed split {best.x.round(3)}, cost {best.value / horizon:.3f} per round, multiplier "
    f"{best.multiplier[0]:.2f}"
)
print(f"certified: no split within the budget is better by more than {best.gap / horizon:.1e} per round\n")

learners = {
    "Auto": cx.learners.Auto(),
    "always the cheapest server": cx.learners.Stay(),
    "Algorithm 1 + OCG": cx.learners.Blocks(cx.primal.OCG()),
    "Algorithm 2, ball": cx.learners.PDMFW(perturbation="ball"),
    "drift-plus-penalty": cx.learners.DPP(),
}
cheapest = jnp.array([1.0, 0.0, 0.0])
games = {
    name: cx.play(problem, learner, rounds, key=key, start=cheapest if "cheapest" in name else None)
    for name, learner in learners.items()
}

print(f"{'after ' + str(horizon) + ' rounds':28}{'cost per round':>16}{'energy, % of budget':>22}{'score':>10}")
for name, game in games.items():
    energy = 100 * (1 + game.violation()[-1, 0] / horizon / BUDGET)
    print(f"{name:28}{game.loss.mean():16.3f}{energy:22.1f}{game.score(best)[-1]:10.1f}")
print("score = regret + price * overspending: what overspending saved is charged twice, so that it never pays")

SHOWN = {  # colours that colour-blind readers can tell apart; how far above its line a name stands, left and right
    "always the cheapest server": ("#D55E00", "dashdot", (8, 8)),
    "drift-plus-penalty": ("#009E73", "dashed", (-16, 10)),
    "Auto": ("#0072B2", "solid", (8, -16)),
}


def draw(picture):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    number = np.arange(1, horizon + 1)
    for name, (colour, style, above) in SHOWN.items():
        game = games[name]
        cost, energy = np.cumsum(game.loss) / number, 100 * (1 + game.violation()[:, 0] / number / BUDGET)
        for axes, values, offset in zip((left, right), (cost, energy), above):
            axes.plot(number, values, color=colour, linestyle=style, linewidth=2.5 if name == "Auto" else 1.8)
            end = (horizon, values[-1])
            axes.annotate(name, end, (0, offset), textcoords="offset points", color=colour, ha="right")
    mark = {"color": "black", "linewidth": 1, "linestyle": "dotted"}
    left.axhline(best.value / horizon, **mark)
    right.axhline(100, **mark)
    below = {"textcoords": "offset points", "ha": "left", "fontsize": "small"}
    left.annotate("best fixed split within the budget", (1, best.value / horizon), (60, 4), **below)
    right.annotate("the budget", (1, 100), (60, -12), **below)
    left.set(title="Cost per round, mean so far", xlabel="round", ylim=(0.8, 2.2))
    right.set(title="Energy spent so far, % of the budget", xlabel="round", ylim=(0, 225))
    for axes in (left, right):
        axes.grid(alpha=0.3)
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, dpi=150)


picture = Path("out/quickstart.png")
try:
    draw(picture)
except ImportError:
    sys.exit("for the picture: pip install 'cocoax[figures]'")
print(f"wrote {picture}")
