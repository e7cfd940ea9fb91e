"""A portfolio of five trading rules, whose turnover must stay below 20% a day in the long run.

Turnover depends on yesterday's holdings, so as a function of today's decision alone it is no constraint that can be
revealed. What can: each rule's own turnover. Capital x over the rules makes turnover of at most <turnover_t, x> by
trading as the rules say, since trades that cancel only help; that is linear, and the constraint. What keeping and
moving x itself adds is not in it: the true turnover is computed afterwards, from the holdings, and printed. (A
constraint may also take yesterday's decision: docs/movement.md.) Prices are simulated with momentum, so the fastest
rule earns most and trades most; no claim about real markets is made.

Run it: `python examples/portfolio.py [days]`. It prints growth and turnover against the best fixed capital, with its
certificate, and writes out/portfolio.png.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx

ASSETS, HELD, PAST, BUDGET = 8, 3, 20, 0.2
RULES = ["buy and hold", "equal weights", "winners of 1 day", "winners of 5 days", "winners of 20 days"]

problem = cx.Problem(
    cx.domains.ProbabilitySimplex(len(RULES)),
    loss=lambda x, r: -100 * jnp.log1p(jnp.vdot(r["gain"], x)),  # percent; net gains keep the gradients small
    constraint=lambda x, r: jnp.vdot(r["turnover"], x) - BUDGET,
    regularity=cx.Regularity(lipschitz=6.0, smoothness=0.4, constraint_bound=1.0),
)


def simulate(days, key):
    """What the rules hold each day (days, rules, assets), and the prices' growth that day (days, assets)."""
    noise = 0.01 * jax.random.normal(key, (days + PAST + 1, ASSETS))
    moves = jax.lax.scan(lambda last, new: (0.15 * last + new,) * 2, jnp.zeros(ASSETS), noise)[1]
    growth, log_price = 1.0004 + moves[PAST + 1 :], jnp.cumsum(jnp.log(1.0004 + moves), 0)

    def winners(window):  # of the days before
        gain = log_price[PAST:-1] - log_price[PAST - window : -1 - window]
        return (jnp.argsort(jnp.argsort(-gain)) < HELD) / HELD

    drifted = jnp.cumprod(jnp.concatenate([jnp.ones((1, ASSETS)), growth[:-1]]), 0)
    passive = drifted / drifted.sum(1, keepdims=True), jnp.full((days, ASSETS), 1 / ASSETS)
    return jnp.stack([*passive, *map(winners, (1, 5, 20))], 1), growth


def turnover(held, growth):
    """Half of what is bought and sold to hold `held`, given what the day before made of it; (days, ..., assets)."""
    after = held * growth
    trades = held[1:] - (after / after.sum(-1, keepdims=True))[:-1]
    return 0.5 * jnp.abs(trades).sum(-1)


def main(rounds=2500, out="out"):
    held, growth = simulate(rounds + 1, jax.random.key(0))
    gain, traded = (held * growth[:, None]).sum(-1) - 1, turnover(held, growth[:, None])
    data = {"gain": gain[1:], "turnover": traded}
    best = cx.hindsight(problem, data)
    print(
        "best fixed capital:", ", ".join(f"{share:.0%} {rule}" for share, rule in zip(best.x, RULES) if share > 0.005)
    )
    print(f"it grows {-best.value / rounds:.3f}% a day, at most {best.gap / rounds:.0e}% below the best possible")
    # Frank-Wolfe steps of fixed length jump from rule to rule, which is turnover that the constraint does not see.
    learners = {
        "Auto": cx.learners.Auto(),
        "drift plus penalty": cx.learners.DPP(),
        "Algorithm 1 + OCG, theta x 0.001": cx.learners.Blocks(cx.primal.OCG(), theta_scale=0.001),
        "equal capital": cx.learners.Stay(),
    }
    games, true = {}, {}
    for name, learner in learners.items():
        games[name] = cx.play(problem, learner, data, key=jax.random.key(1), keep_decisions=True)
        holdings = jnp.einsum("tr,tra->ta", games[name].decisions, held[1:])
        true[name] = np.asarray(turnover(holdings, growth[1:]))
        bound = float(games[name].constraint.mean()) + BUDGET
        grown, traded = -games[name].loss.mean(), true[name].mean()
        print(f"{name:33} grows {grown:.3f}% a day, turnover {traded:.1%} (by the constraint {bound:.1%})")

    figure = Figure(figsize=(11, 4), layout="constrained")
    (left, right) = figure.subplots(1, 2)
    for name, game in games.items():
        left.plot(-np.cumsum(game.loss), label=name)
        right.plot(np.cumsum(true[name]) / np.arange(1, rounds), label=name)
    left.plot(-np.cumsum(best.loss), "k--", label="best fixed capital")
    left.set(title="Growth of log wealth", xlabel="day", ylabel="percent")
    right.axhline(BUDGET, color="black", linestyle="--", label="the budget")
    right.set(title="True turnover a day, mean so far", xlabel="day", ylim=(0, 2 * BUDGET))
    left.legend(fontsize="small")
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "portfolio.png"), dpi=150)
    print(f"wrote {Path(out, 'portfolio.png')}")
    return best, games, true


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
