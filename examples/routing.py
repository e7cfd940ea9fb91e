"""Routing: send a fleet across a town, fast, within an emissions budget that must hold in the long run.

The town is a grid of one-way streets; a decision is how much of the fleet takes each street, a unit of flow from the
first corner to the last. Fast streets emit more, full ones are slow. Times and emissions are seen after each trip. To
project onto the flows takes a quadratic programme; all that is asked for here is shortest paths.

Run it: `python examples/routing.py [trips]`. It prints times and emissions against the best fixed routes, with their
certificate, and writes out/routing.png.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

import cocoax as cx

SIDE = 5
STREETS = [(i, i + 1) for i in range(SIDE**2) if (i + 1) % SIDE] + [(i, i + SIDE) for i in range(SIDE**2 - SIDE)]
routes = cx.domains.ShortestPath(STREETS, source=0, sink=SIDE**2 - 1)
problem = cx.Problem(
    routes,
    loss=lambda x, r: jnp.sum(r["time"] * x * (1 + x / 2)),
    constraint=lambda x, r: jnp.vdot(r["emission"], x) - r["budget"],
    regularity=cx.Regularity(lipschitz=25.0, smoothness=3.0, constraint_bound=30.0),
)


def draw_rounds(trips, key):
    speed_key, *keys = jax.random.split(key, 3)
    speed = jax.random.uniform(speed_key, (len(STREETS),), minval=0.5, maxval=2.0)
    fastest, cleanest = (speed @ routes.lmo(cost).dense() for cost in (1 / speed, speed))
    change = [jax.random.uniform(each, (trips, len(STREETS)), minval=0.5, maxval=1.5) for each in keys]
    budget = jnp.full(trips, (fastest + cleanest) / 2)
    return {"time": change[0] / speed, "emission": change[1] * speed, "budget": budget}


def main(rounds=2000, out="out"):
    data = draw_rounds(rounds, jax.random.key(0))
    best = cx.hindsight(problem, data, tol=1e-4)
    print(
        f"best fixed routes: {best.value / rounds:.3f} a trip, at most {best.gap / rounds:.0e} above the best possible"
    )
    learners = {
        "Auto": cx.learners.Auto(),
        "Algorithm 1 + OCG, as proven": cx.learners.Blocks(cx.primal.OCG()),
        "stay at the start": cx.learners.Stay(),
    }
    games = {name: cx.play(problem, each, data, key=jax.random.key(1)) for name, each in learners.items()}
    budget = float(data["budget"][0])
    for name, game in games.items():
        emitted = float(game.constraint.mean()) / budget
        print(f"{name:29} {game.loss.mean():.3f} a trip, emissions {1 + emitted:.1%} of the budget", end=", ")
        print(f"score {game.score(best)[-1]:.0f}")

    figure = Figure(figsize=(13, 4), layout="constrained")
    axes = figure.subplots(1, 3)
    flows = {"Best fixed routes": best.x, "Learnt: the last decision": games["Auto"].decision}
    for cell, (title, flow) in zip(axes, flows.items()):
        for (tail, head), share, emission in zip(STREETS, np.asarray(flow), data["emission"].mean(0)):
            (y, x), colour = np.divmod([tail, head], SIDE), colormaps["RdYlGn_r"](float(emission) / 2)
            cell.plot(x, -y, color="0.85", linewidth=1, zorder=0)
            cell.plot(x, -y, color=colour, linewidth=10 * share, solid_capstyle="round")
        cell.set(title=f"{title}\n(width: flow, red: dirty)", aspect="equal")
        cell.axis("off")
    for name, game in games.items():
        axes[2].plot(game.violation()[:, 0], label=name)
    axes[2].axhline(0, color="black", linewidth=0.8)
    axes[2].set(title="Emissions above the budget, so far", xlabel="trip")
    axes[2].legend(fontsize="small")
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "routing.png"), dpi=150)
    print(f"wrote {Path(out, 'routing.png')}")
    return best, games


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
