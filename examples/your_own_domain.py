"""Your own domain: a set that cocoax does not know, made from nothing but its linear minimisation.

A fleet of heat pumps runs by the hour, and one that starts must run for at least four hours. A decision is the share of
the fleet that runs in each hour: a point of the convex hull of all such days. Projecting onto that hull has no formula,
but the cheapest day for given hourly costs is a dynamic programme, and the gradient of the least cost is that day.
Prices, emissions and the hours of heat that were needed are seen after each day; emissions have a budget.

Run it: `python examples/your_own_domain.py [days]`. It checks the set, prints what the learner came to against the best
fixed plan, with its certificate, and writes out/your_own_domain.png.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx

HOURS, LEAST, BUDGET = 24, 4, 4.0


def least_cost(direction):
    """min <direction, day>; best[0] is for pumps that are off, best[k] after k hours of running, or, the last, more."""

    def one_hour(best, cost):
        stop, go_on = jnp.minimum(best[0], best[-1]), jnp.minimum(best[-2], best[-1]) + cost
        return jnp.concatenate([stop[None], best[:-2] + cost, go_on[None]]), None

    off_at_midnight = jnp.full(LEAST + 1, jnp.inf, direction.dtype).at[0].set(0)
    best, _ = jax.lax.scan(one_hour, off_at_midnight, direction)
    return jnp.minimum(best[0], best[-1])


days_of_pumps = cx.domains.from_lmo(
    jax.grad(least_cost), start=jnp.zeros(HOURS), diameter={1: HOURS, 2: HOURS**0.5}
)  # the farthest pair: off all day, and on all day

problem = cx.Problem(
    days_of_pumps,
    loss=lambda x, r: jnp.vdot(r["price"], x) + 0.25 * (r["need"] - x.sum()) ** 2,  # money, and cold rooms
    constraint=lambda x, r: jnp.vdot(r["carbon"], x) - BUDGET,
)


def draw_rounds(days, key):
    hour, keys = jnp.arange(HOURS), jax.random.split(key, 3)
    evening, noon = jnp.exp(-(((hour - 18) / 3) ** 2)), jnp.exp(-(((hour - 12) / 3) ** 2))
    return {
        "price": (0.8 + evening) * jax.random.uniform(keys[0], (days, HOURS), minval=0.5, maxval=1.5),
        "carbon": (1.0 - 0.6 * noon) * jax.random.uniform(keys[1], (days, HOURS), minval=0.5, maxval=1.5),
        "need": jax.random.uniform(keys[2], (days,), minval=6.0, maxval=10.0),
    }


def main(rounds=1000, out="out"):
    cx.testing.check_domain(days_of_pumps, key=jax.random.key(0), directions=12)
    data = draw_rounds(rounds, jax.random.key(0))
    best = cx.hindsight(problem, data, tol=1e-4)
    game = cx.play(problem, cx.learners.Auto(), data, key=jax.random.key(1))
    regret, violation = game.regret(best), game.violation()[:, 0]
    print(f"best fixed plan: {best.value / rounds:.3f} a day, at most {best.gap / rounds:.0e} above the best possible")
    spent = BUDGET + violation[-1] / rounds
    print(f"the learner: {regret[-1] / rounds:.3f} a day above it, emissions {spent:.3f} a day of {BUDGET} allowed")

    figure = Figure(figsize=(11, 4), layout="constrained")
    (left, right) = figure.subplots(1, 2)
    left.stairs(best.x, np.arange(HOURS + 1), fill=True, alpha=0.3, label="best fixed plan")
    left.stairs(game.average, np.arange(HOURS + 1), linewidth=2, label="the learner's, on average")
    left.plot(np.arange(HOURS) + 0.5, data["price"].mean(0) / 2, "k:", label="price / 2")
    left.plot(np.arange(HOURS) + 0.5, data["carbon"].mean(0), "g--", label="emissions")
    left.set(title="Share of the fleet that runs", xlabel="hour", ylim=(0, 1.5))
    right.plot(regret, label="regret")
    right.plot(violation, label="emissions above the budget")
    right.axhline(0, color="black", linewidth=0.8)
    right.set(title="Sums so far", xlabel="day")
    for axes in (left, right):
        axes.legend()
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "your_own_domain.png"), dpi=150)
    print(f"wrote {Path(out, 'your_own_domain.png')}")
    return best, game


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
