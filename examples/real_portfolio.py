"""Stocks of the New York Stock Exchange, 1962 to 1984, with volatility of at most 0.8% a day.

Exponentiated gradient (EG), which knows of no limit, and equal shares exceed it. AutoGrowth keeps it, up to a quarter
of a per cent, and ends with more than both. Beside them are the best constant shares that keep the limit, known only
afterwards and certified. All pay 10 basis points on what they trade. The limit is far below the risk of equal shares,
so AutoGrowth has the faster of its two controllers, `dual.RobustPI()`.

Run it: `python examples/real_portfolio.py [days]`, after `cocoax data fetch nyse_o`; without these data, prices are
simulated. It prints wealth and volatility, and writes out/real_portfolio.png.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx
from cocoax.problems.real.portfolios import growth_factors

LIMIT = 0.008


def simulated(days):
    """Ten stocks that move together, as wild as those of 1962."""
    rng = np.random.default_rng(0)
    return np.exp(4e-4 + 0.006 * rng.normal(size=(days, 1)) + 0.015 * rng.normal(size=(days, 10)))


def main(rounds=5650, out="out"):
    is_real = cx.data.is_here("nyse_o")
    if not is_real:
        print("the data are not here (cocoax data fetch nyse_o): prices are simulated")
    growth = growth_factors("nyse_o")[:rounds] if is_real else simulated(rounds)
    instance = cx.problems.real.portfolio(data=growth, volatility=LIMIT)
    learner = cx.learners.AutoGrowth(dual=cx.dual.RobustPI())
    game = cx.play(instance.problem, learner, instance.recorded, key=jax.random.key(0))
    best = cx.hindsight(instance.problem, instance.recorded, tol=1e-3, progress=False)
    paths = {
        "AutoGrowth": (game.loss, game.constraint),
        "EG, no limit": (instance.baseline("EG").loss, instance.baseline("EG").constraint),
        "equal shares": (instance.baseline("uniform").loss, instance.baseline("uniform").constraint),
        "best constant shares within the limit": (best.loss, best.constraint),
    }
    figure = Figure(figsize=(11, 4), layout="constrained")
    (left, right) = figure.subplots(1, 2)
    days, volatility = np.arange(1, len(growth) + 1), {}
    for name, (loss, constraint) in paths.items():
        wealth = np.exp(-np.cumsum(np.asarray(loss, float)))
        variance = 1 + np.asarray(constraint, float)[:, 0]
        volatility[name] = LIMIT * variance.mean() ** 0.5
        print(f"{name:38} wealth {wealth[-1]:8.2f}, volatility {volatility[name]:.3%} a day")
        style = "k--" if name.startswith("best") else "-"
        left.plot(days, wealth, style, label=name, linewidth=1, zorder=3 if name == "AutoGrowth" else 2)
        right.plot(days[50:], 100 * LIMIT * (np.cumsum(variance) / days)[50:] ** 0.5, style, label=name, linewidth=1)
    left.set(title="Wealth after fees, from 1", xlabel="day", yscale="log")
    left.yaxis.set_major_formatter("{x:g}")
    right.axhline(100 * LIMIT, color="red", linestyle=":", label="the limit")
    right.set(title="Volatility so far", xlabel="day", ylabel="per cent a day")
    left.legend(fontsize="small")
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "real_portfolio.png"), dpi=150)
    print(f"wrote {Path(out, 'real_portfolio.png')}")
    return volatility


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
