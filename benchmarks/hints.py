"""Regret of `Hinted` with forecasts of all kinds, on the unit ball with noise. Figures of docs/models.md.

python -m benchmarks.hints
"""

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx

ROUNDS, GOOD = 400, 150  # the last kind of forecast is good for so many rounds
BALL = cx.domains.L2Ball(3, 1.0)
PROBLEM = cx.Problem(BALL, lambda x, r: jnp.vdot(r["cost"], x), request="forecast")
LEARNER = cx.learners.Hinted(lambda request: {"cost": request["forecast"]})


def forecasts(cost):
    """What is forecast of these costs, by kind."""
    noise = np.random.default_rng(1).normal(size=cost.shape)
    return {
        "perfect": cost,
        "noise of 0.1": cost + 0.1 * noise,
        "none": 0 * cost,
        "useless": noise,
        "wrong (the opposite)": -cost,
        "perfect, then 3 times the opposite": np.where(np.arange(ROUNDS)[:, None] < GOOD, cost, -3 * cost),
    }


def regret(cost, forecast):
    """After all rounds, against the best fixed point."""
    rounds = {"cost": jnp.asarray(cost), "forecast": jnp.asarray(forecast)}
    loss = cx.play(PROBLEM, LEARNER, rounds, key=jax.random.key(0)).loss
    return float(np.sum(loss)) + float(np.linalg.norm(cost.sum(0)))


def main():
    cost = np.random.default_rng(0).normal(size=(ROUNDS, 3)) + np.array([0.2, 0.0, -0.1])
    found = {name: regret(cost, forecast) for name, forecast in forecasts(cost).items()}
    print(f"| forecast | {' | '.join(found)} |\n|{'---|' * (1 + len(found))}")
    print(f"| regret | {' | '.join(f'{each:.0f}' for each in found.values())} |")


if __name__ == "__main__":
    main()
