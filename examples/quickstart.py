"""Quickstart: send requests to three servers, cheaply, within an energy budget that must hold in the long run.

The fast server is cheap and hungry, the slow one dear and frugal. On average the costs are (1, 2, 4) and the energy
uses (1, 0.4, 0.1); the budget is 0.5 a round. By hand: the best fixed split is (1/6, 5/6, 0), at a cost of 11/6 a
round, and one more unit of energy would save 5/3. Run it: it prints that, and writes a picture.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

import cocoax as cx

horizon = int(sys.argv[1]) if len(sys.argv) > 1 else 3000


def loss(x, r):  # r is whatever a round reveals
    return jnp.vdot(r["cost"], x)


def constraint(x, r):  # <= 0 is good
    return jnp.vdot(r["energy"], x) - 0.5


problem = cx.Problem(
    cx.domains.ProbabilitySimplex(3),
    loss,
    constraint,
    # bounds on gradients and constraint values, for the methods that come with a proof
    regularity=cx.Regularity(lipschitz=6.0, smoothness=0.0, constraint_bound=0.75),
)

cost_key, energy_key, key = jax.random.split(jax.random.key(0), 3)
rounds = {
    "cost": jnp.array([1.0, 2.0, 4.0]) * jax.random.uniform(cost_key, (horizon, 3), minval=0.75, maxval=1.25),
    "energy": jnp.array([1.0, 0.4, 0.1]) * jax.random.uniform(energy_key, (horizon, 3), minval=0.75, maxval=1.25),
}

best = cx.hindsight(problem, rounds)
print(
    f"best fixed split {best.x.round(3)}, cost {best.value / horizon:.3f} a round, multiplier {best.multiplier[0]:.2f}"
)
print(f"certified: no split within the budget is better by more than {best.gap / horizon:.1e} a round\n")

learners = {
    "Auto": cx.learners.Auto(),
    "stay at the start": cx.learners.Stay(),
    "Algorithm 1 + OCG": cx.learners.Blocks(cx.primal.OCG()),
    "Algorithm 1 + OCG, theta x 0.001": cx.learners.Blocks(cx.primal.OCG(), theta_scale=0.001),
    "Algorithm 2, ball": cx.learners.PDMFW(perturbation="ball"),
    "Algorithm 2, ball, theta x 0.01": cx.learners.PDMFW(perturbation="ball", theta_scale=0.01),
    "projected drift-plus-penalty": cx.learners.DPP(),
}
games = {name: cx.play(problem, learner, rounds, key=key) for name, learner in learners.items()}

print(f"{'after ' + str(horizon) + ' rounds':34}{'regret':>10}{'violation':>12}{'score':>10}{'LMOs a round':>15}")
for name, game in games.items():
    regret, violation, score = game.regret(best)[-1], game.violation()[-1, 0], game.score(best)[-1]
    print(f"{name:34}{regret:10.1f}{violation:12.1f}{score:10.1f}{game.lmo_calls.sum() / horizon:15.1f}")
print("score = regret + price * overspending: what overspending saved is charged twice, so that it never pays")


def draw(picture):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for name, game in games.items():
        width = 3 if name == "Auto" else 1.5
        left.plot(game.regret(best), label=name, linewidth=width)
        right.plot(game.violation()[:, 0], label=name, linewidth=width)
    left.set(title="Regret", xlabel="round", ylabel="cost above the best fixed split")
    right.set(title="Violation", xlabel="round", ylabel="energy above the budget")
    for axes in (left, right):
        axes.axhline(0, color="black", linewidth=0.8, zorder=0)
        axes.grid(alpha=0.3)
    right.legend(fontsize="small")
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, dpi=150)


picture = Path("out/quickstart.png")
try:
    draw(picture)
except ImportError:
    sys.exit("for the picture: pip install 'cocoax[figures]'")
print(f"wrote {picture}")
