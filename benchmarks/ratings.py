"""Next-batch RMSE on MovieLens 100K: `AutoNewton`, `Auto` and what people compare with. Figures of docs/models.md.

cocoax data fetch ml-100k
python -m benchmarks.ratings
"""

import time

import jax
import numpy as np

import cocoax as cx
from cocoax.problems import real

FAR = 64.0  # stars: a limit that is not reached


def scored(learner, batch, limit=None):
    """RMSE, mean of g, ratings a second once compiled."""
    instance = real.ratings(batch=batch, limit=limit)
    rounds = instance.recorded

    def played():
        game = cx.play(instance.problem, learner, rounds, key=jax.random.key(0))
        return game, np.asarray(game.loss)

    played()
    begun = time.perf_counter()
    game, losses = played()
    seconds = time.perf_counter() - begun
    violation = float(np.asarray(game.constraint).sum() / len(losses))
    return real.next_batch_rmse(losses, rounds), violation, int(rounds["weight"].sum()) / seconds


def exposure_without_a_limit(batch):
    """How many stars known items are predicted above the others, mean over the rounds that have both."""
    instance = real.ratings(batch=batch, limit=FAR)
    game = cx.play(instance.problem, cx.learners.AutoNewton(), instance.recorded, key=jax.random.key(0))
    counted = np.asarray(game.constraint)[:, 0]
    return FAR + counted[counted != 0].mean()


def main():
    for batch in (500, 10):
        rounds = real.ratings(batch=batch).recorded
        baselines = real.ratings_baselines
        print(f"batches of {batch}")
        print(f"  running mean {baselines.running_mean(rounds):.4f}, damped means {baselines.damped_means(rounds):.4f}")
        for step in (0.02, 0.05, 0.1):
            print(f"  SGD, step {step}: {baselines.sgd_factorisation(rounds, step=step):.4f}")
        print(f"  known items, no limit: {exposure_without_a_limit(batch):.2f} stars above the others")
        print("  Auto: {:.4f}, {:.4f}, {:.0f} ratings/s".format(*scored(cx.learners.Auto(), batch)))
        for limit in (None, 0.3, 0.2, 0.1):
            found = scored(cx.learners.AutoNewton(), batch, limit)
            print("  AutoNewton, limit {}: {:.4f}, {:.4f}, {:.0f} ratings/s".format(limit, *found))


if __name__ == "__main__":
    main()
