"""Low rank plus biases, written down and as factors: next-batch RMSE, time and memory. Figures of docs/models.md.

cocoax data fetch ml-100k
python -m benchmarks.low_rank
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.domains import LowRankPlusBiases
from cocoax.problems import real

RADIUS, RANK, BATCH = 100.0, 8, 500
LARGE = (100_000, 20_000), 25_000  # shape and ratings of a made-up table


def batches(user, item, stars):
    """Rounds of sparse triples, and the entries that are seen, each once."""
    shape = int(user.max()) + 1, int(item.max()) + 1
    seen, place = np.unique(user.astype(np.int64) * shape[1] + item, return_inverse=True)
    columns = {"user": user, "item": item, "place": place, "rating": stars}
    whole = len(stars) // BATCH * BATCH
    rounds = {name: jnp.asarray(column[:whole].reshape(-1, BATCH)) for name, column in columns.items()}
    return shape, np.divmod(seen, shape[1]), rounds


def problem_of(domain, entries):
    def loss(x, r):
        low_rank = entries(x["matrix"], r)
        return jnp.mean((x["mean"] + x["rows"][r["user"]] + x["columns"][r["item"]] + low_rank - r["rating"]) ** 2)

    return cx.Problem(domain, loss)


def written(shape, places):
    return problem_of(LowRankPlusBiases(shape, RADIUS), lambda matrix, r: matrix[r["user"], r["item"]])


def factored(shape, places):
    domain = LowRankPlusBiases(shape, RADIUS, factored=True, entries=places, rank=RANK)
    return problem_of(domain, lambda matrix, r: matrix.entries(r["place"]))


def measured(problem, rounds):
    """(RMSE, milliseconds a round once compiled, MB of a learner's state)."""
    learner = cx.learners.Auto()
    cx.play(problem, learner, rounds, key=jax.random.key(0))
    begun = time.perf_counter()
    game = jax.block_until_ready(cx.play(problem, learner, rounds, key=jax.random.key(0)))
    seconds = time.perf_counter() - begun
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(game.state) if hasattr(leaf, "itemsize"))
    return f"{float(jnp.mean(game.loss)) ** 0.5:.4f}", f"{1e3 * seconds / len(game.loss):.1f}", f"{size / 1e6:.1f}"


def main():
    print("| matrix | RMSE | ms a round of 500 | MB of state |\n|---|---|---|---|")
    recorded = real.ratings(batch=BATCH).recorded
    table = batches(*(np.asarray(recorded[name]).reshape(-1) for name in ("user", "item", "rating")))
    shape = " x ".join(f"{size:,}" for size in table[0])
    for name, make in {"written down": written, f"factors, rank {RANK}": factored}.items():
        print(f"| MovieLens, {shape}, {name} | {' | '.join(measured(make(*table[:2]), table[2]))} |", flush=True)
    (users, items), count = LARGE
    drawn = real.sampled_ratings(jax.random.key(0), users=users, items=items, count=count)
    table = batches(*(drawn[name] for name in ("user", "item", "rating")))
    shape = " x ".join(f"{size:,}" for size in table[0])
    print(f"| made up, {shape}, factors, rank {RANK} | {' | '.join(measured(factored(*table[:2]), table[2]))} |")


if __name__ == "__main__":
    main()
