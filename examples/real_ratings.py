"""Ratings of films, predicted before they are seen: precision against exposure.

100,000 ratings of MovieLens come in the order of time, 500 at once. Well-known films get better ratings, and so are
recommended even more. A limit on exposure bounds how many stars they may be predicted above the others. AutoNewton,
with nothing tuned, keeps every limit. Without one it is ahead of damped means and of SGD factorisation, which know of
none; with the limit 0.3 it is level with the first, with 0.1 still ahead of the second.

Run it: `python examples/real_ratings.py [rounds]`, after `cocoax data fetch ml-100k`; without these data, ratings are
made up. It prints errors and exposure, and writes out/real_ratings.png: error against exposure, and exposure in time.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx
from cocoax.problems import real

LIMITS = (None, 0.3, 0.2, 0.1, 0.05)
BATCH, NO_LIMIT = 500, 1e3  # stars: a limit that nobody reaches, so that exposure is counted


def main(rounds=200, out="out"):
    is_real = cx.data.is_here("ml-100k")
    if not is_real:
        print("the data are not here (cocoax data fetch ml-100k): ratings are made up")
    made_up = None if is_real else real.sampled_ratings(jax.random.key(0), users=300, items=200, count=BATCH * rounds)
    found, paths = {}, {}
    for limit in LIMITS:
        allowed = NO_LIMIT if limit is None else limit
        instance = real.ratings(batch=BATCH, limit=allowed, table=made_up)
        batches = instance.rounds(rounds)
        game = cx.play(instance.problem, cx.learners.AutoNewton(), batches, key=jax.random.key(0))
        counted = np.asarray(game.constraint, float)[:, 0]
        paths[limit] = np.cumsum(np.where(counted == 0, 0, counted + allowed)) / np.maximum(np.cumsum(counted != 0), 1)
        found[limit] = real.next_batch_rmse(game.loss, batches), paths[limit][-1]
        name = "no limit" if limit is None else f"limit {limit}"
        print(f"AutoNewton, {name:10} RMSE {found[limit][0]:.4f}, known films {found[limit][1]:.3f} stars above others")
    baselines = {
        "running mean": real.ratings_baselines.running_mean(batches),
        "damped means": real.ratings_baselines.damped_means(batches),
        "SGD factorisation": real.ratings_baselines.sgd_factorisation(batches),
    }
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    rmse, exposure = np.array(list(found.values())).T
    left.plot(exposure, rmse, "o-", color="C0", label="AutoNewton")
    for (limit, _), x, y in zip(found.items(), exposure, rmse):
        text = "no limit" if limit is None else f"limit {limit}"
        left.annotate(text, (x, y), textcoords="offset points", xytext=(6, 5), fontsize="small")
    for colour, (name, error) in zip(("", "C1", "C2"), baselines.items()):
        print(f"{name:22} RMSE {error:.4f}")
        if colour:  # the running mean is far above
            left.axhline(error, color=colour, linestyle="--", linewidth=1, label=f"{name}, no limit")
    left.set(title="Precision against exposure", xlabel="known films above the others, stars")
    left.set_ylabel("RMSE of the next batch")
    left.margins(x=0.18, y=0.12)
    left.legend(fontsize="small")
    seen = np.arange(1, rounds + 1) * BATCH
    for place, (limit, path) in enumerate(paths.items()):
        line = "no limit" if limit is None else f"limit {limit}"
        right.plot(seen, path, color=f"C{place}", label=line)
        if limit is not None:
            right.axhline(limit, color=f"C{place}", linestyle=":", linewidth=1)
    right.set(title="Exposure so far (dotted: its limit)", xlabel="ratings seen", ylabel="stars")
    right.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "real_ratings.png"), dpi=150)
    print(f"wrote {Path(out, 'real_ratings.png')}")
    return found, baselines


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
