"""Wealth of exponentiated gradient and online Newton on real stocks, without limits. Figures of docs/models.md.

cocoax data fetch nyse_o
python -m benchmarks.log_like
"""

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax import dual, primal
from cocoax.learners import Auto, PrimalDual
from cocoax.problems import real

ALONE = {
    "EG, 0.05": primal.ExponentiatedGradient(0.05),
    "EG": primal.ExponentiatedGradient(),
    **{f"Newton, damping {rho}": primal.OnlineNewton(damping=rho) for rho in (1.0, 8.0, 512.0)},
}


def wealth(problem, learner, rounds):
    """The logarithm of wealth."""
    return -float(np.sum(cx.play(problem, learner, rounds, key=jax.random.key(0)).loss))


def main():
    growth = real.portfolio(data="nyse_o", turnover=0.005).recorded["growth"]
    domain = cx.domains.ProbabilitySimplex(growth.shape[1])
    free = cx.Problem(domain, lambda x, r: -jnp.log(jnp.vdot(r, x)))
    print(f"no limits, no fees: equal shares {float(jnp.log(growth.mean(1)).sum()):.2f}")
    for name, method in ALONE.items():
        print(f"  {name}: {wealth(free, PrimalDual(method, dual.RobustPI()), growth):.2f}", flush=True)
    print(f"  Auto: {wealth(free, Auto(), growth):.2f}, best {-cx.hindsight(free, growth).value:.2f}")


if __name__ == "__main__":
    main()
