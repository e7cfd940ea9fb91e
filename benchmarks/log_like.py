"""Wealth of exponentiated gradient and online Newton on real stocks. Figures of docs/models.md.

cocoax data fetch nyse_o sp500
python -m benchmarks.log_like
"""

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax import dual, primal
from cocoax.learners import Auto, PrimalDual
from cocoax.problems import real
from cocoax.problems.real.portfolios import LIMITS

ALONE = {
    "EG, 0.05": primal.ExponentiatedGradient(0.05),
    "EG": primal.ExponentiatedGradient(),
    **{f"Newton, damping {rho}": primal.OnlineNewton(damping=rho) for rho in (1.0, 8.0, 512.0)},
}
STEPS = (0.02, 0.05, 0.2, 0.5)


def wealth(problem, learner, rounds):
    """The logarithm of wealth, and the mean of each constraint."""
    game = cx.play(problem, learner, rounds, key=jax.random.key(0))
    return -float(np.sum(game.loss)), np.asarray(game.constraint).sum(0) / len(game.loss)


def within(method):
    return PrimalDual(method, dual.RobustPI(0.01, 2.0))


def main():
    growth = real.portfolio(data="nyse_o", turnover=0.005).recorded["growth"]
    domain = cx.domains.ProbabilitySimplex(growth.shape[1])
    free = cx.Problem(domain, lambda x, r: -jnp.log(jnp.vdot(r, x)))
    print(f"no limits, no fees: equal shares {float(jnp.log(growth.mean(1)).sum()):.2f}")
    for name, method in ALONE.items():
        print(f"  {name}: {wealth(free, PrimalDual(method, dual.RobustPI()), growth)[0]:.2f}", flush=True)
    print(f"  Auto: {wealth(free, Auto(), growth)[0]:.2f}, best {-cx.hindsight(free, growth).value:.2f}")
    for data, limits in LIMITS.items():
        for chosen in (*({name: limit} for name, limit in limits.items()), limits):
            instance = real.portfolio(data=data, **chosen)
            print(data, chosen, f"EG without limits: {np.exp(-np.sum(instance.baseline('EG').loss)):.2f}")
            mixture = primal.Mixture([primal.ExponentiatedGradient(step) for step in STEPS])
            for name, method in {"EG, 0.05": ALONE["EG, 0.05"], "Mixture": mixture}.items():
                found, used = wealth(instance.problem, within(method), instance.recorded)
                print(f"  {name}: {np.exp(found):.2f}, {used.round(3)}", flush=True)


if __name__ == "__main__":
    main()
