"""Who earns more than 50,000 dollars: logistic regression whose scores may hardly depend on sex.

48,842 people of the census of 1994 come ten at a time, and are predicted before their income is seen. Without a limit,
men are predicted to earn more four times as often as women. Auto keeps the limit on the covariance of sex and score,
the convex surrogate of equal rates; the true rates are drawn beside it.

Run it: `python examples/real_classification.py [rounds]`, after `cocoax data fetch adult`; without these data, people
are simulated. It prints losses and rates, and writes out/real_classification.png.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx
from cocoax.problems.real import people


def simulated(count):
    """People of two groups, one of which has more of the feature that matters."""
    rng = np.random.default_rng(0)
    group = (rng.random(count) < 0.33).astype(float)
    features = np.concatenate([np.ones((count, 1)), rng.normal(size=(count, 4))], 1)
    features[:, 1] -= group
    score = features @ [-1.0, 1.5, 0.8, -0.5, 0.0] + rng.logistic(size=count)
    return people.People(features, np.where(score > 0, 1.0, -1.0), group)


def main(rounds=4884, out="out"):
    is_real = cx.data.is_here("adult")
    if not is_real:
        print("the data are not here (cocoax data fetch adult): people are simulated")
    instance = cx.problems.real.fair_classification(data="adult" if is_real else simulated(10 * rounds))
    data = instance.rounds(rounds)
    game = cx.play(instance.problem, cx.learners.Auto(), data, key=jax.random.key(0), keep_decisions=True)
    free = instance.baseline("logistic regression", data)
    same = instance.baseline("constant", data)
    played = {
        "Auto, within the limit": (game.loss, game.constraint, np.asarray(game.decisions)),
        "logistic regression": (free.loss, free.constraint, free.x),
        "the same score for all": (same.loss, same.constraint, np.broadcast_to(same.x, (rounds, same.x.size))),
    }
    figure = Figure(figsize=(11, 4), layout="constrained")
    (left, right) = figure.subplots(1, 2)
    results = {}
    for place, (name, (loss, constraint, decisions)) in enumerate(played.items()):
        used = 1 + np.asarray(constraint, float).mean(0).max()
        rates = people.rates(decisions, data)
        results[name] = used, rates
        wrong = people.mistakes(decisions, data)
        print(f"{name:23} log-loss {np.mean(loss):.3f}, {wrong:.1%} wrong, {used:.1%} of the limit used, ", end="")
        print(f"predicted positive: {rates[0]:.1%} and {rates[1]:.1%}")
        seen = np.arange(1, rounds + 1)
        covariance = np.abs(np.cumsum(np.asarray(constraint, float), 0) / seen[:, None] + 1).max(1)
        if name != "the same score for all":  # it hardly uses any
            left.plot(seen[20:], covariance[20:], label=name)
        per_cent = [100 * rate for rate in rates]
        bars = right.bar([place - 0.2, place + 0.2], per_cent, 0.38, color=["steelblue", "darkorange"])
        right.bar_label(bars, fmt="%.1f", fontsize="small")
    left.axhline(1, color="red", linestyle=":", label="the limit")
    left.set(title="Covariance of group and score so far, in limits", xlabel="round", yscale="log")
    left.yaxis.set_major_formatter("{x:g}")
    left.legend(fontsize="small")
    right.set_xticks(range(len(played)), [name.replace(", ", ",\n") for name in played], fontsize="small")
    right.set(title="Predicted positive: men (blue), women (orange)" if is_real else "Predicted positive, by group")
    right.set_ylabel("per cent")
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "real_classification.png"), dpi=150)
    print(f"wrote {Path(out, 'real_classification.png')}")
    return results


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
