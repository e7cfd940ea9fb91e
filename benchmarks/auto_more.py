"""What `Auto(lmos=k)` and `Auto(replays=k)` buy: mean regret over the seeds 2000 to 2004 at T = 1000.

python -m benchmarks.auto_more
"""

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx

ROUNDS, SEEDS = 1000, range(2000, 2005)


def least_squares(key):
    """Features that are correlated by 0.9, on a box; the truth lies in it."""
    keys = jax.random.split(key, 4)
    truth = jax.random.uniform(keys[0], (20,), minval=-0.8, maxval=0.8)
    features = 0.9**0.5 * jax.random.normal(keys[1], (ROUNDS, 1)) + 0.1**0.5 * jax.random.normal(keys[2], (ROUNDS, 20))
    rounds = {"a": features, "b": features @ truth + 0.5 * jax.random.normal(keys[3], (ROUNDS,))}
    best = 0.5 * jnp.sum((features @ truth - rounds["b"]) ** 2)
    return rounds, best


def experts(key):
    """One of 50 experts is better than the others by 0.1, noise 1."""
    costs = jax.random.normal(key, (ROUNDS, 50)) - 0.1 * (jnp.arange(50) == 7)
    return costs, costs.sum(axis=0).min()


def completion(key):
    """The paper's experiment: the best loss is 0. The truth has nuclear norm 1; the ball has radius 5, or 1."""
    keys = jax.random.split(key)
    return cx.problems.matrix_completion(keys[0]).rounds(ROUNDS, keys[1]), jnp.zeros(())


FAMILIES = {
    "least squares, correlated by 0.9, on a box": (
        cx.Problem(cx.domains.Box(-np.ones(20), np.ones(20)), lambda x, r: 0.5 * (r["a"] @ x - r["b"]) ** 2),
        least_squares,
    ),
    "matrix completion": (cx.problems.matrix_completion(jax.random.key(0)).problem, completion),
    "matrix completion, tight ball": (cx.problems.matrix_completion(jax.random.key(0), radius=1.0).problem, completion),
    "experts": (cx.Problem(cx.domains.ProbabilitySimplex(50), lambda x, r: jnp.vdot(r, x)), experts),
}
KINDS = [{}, {"lmos": 2}, {"lmos": 8}, {"replays": 1}, {"replays": 8}]


def _regret(problem, kind, rounds, best):
    like = jax.tree.map(lambda leaf: leaf[0, 0], rounds) if "replays" in kind else None
    learner = cx.learners.Auto(**kind, like=like)
    play = jax.vmap(lambda rounds: cx.play(problem, learner, rounds, key=jax.random.key(0)).loss.sum())
    return float(jnp.mean(jax.jit(play)(rounds) - best))


def main():
    print("|  | " + " | ".join(", ".join(f"{k}={v}" for k, v in kind.items()) or "Auto()" for kind in KINDS) + " |")
    print("|---" * (len(KINDS) + 1) + "|")
    for name, (problem, draw) in FAMILIES.items():
        games = [draw(jax.random.key(seed)) for seed in SEEDS]
        rounds, best = jax.tree.map(lambda *leaves: jnp.stack(leaves), *games)
        regrets = [_regret(problem, kind, rounds, best) for kind in KINDS]
        print(f"| {name} | " + " | ".join(f"{regret:.4g}" for regret in regrets) + " |", flush=True)


if __name__ == "__main__":
    main()
