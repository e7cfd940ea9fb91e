"""Algorithm 2 on thirty instances of the paper's experiment (T = 1000) as one compiled call: seconds, compiled and not.

python -m benchmarks.pdmfw_study [--instances 30] [--horizon 1000]
"""

import argparse
import time

import jax
import numpy as np

import cocoax as cx


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument("--horizon", type=int, default=1000)
    options = parser.parse_args()

    @jax.jit
    @jax.vmap
    def make(key):
        instance_key, rounds_key = jax.random.split(key)
        instance = cx.problems.matrix_completion(instance_key)
        return instance.problem, instance.rounds(options.horizon, rounds_key)

    keys = jax.random.split(jax.random.key(0), options.instances)
    problems, rounds = jax.block_until_ready(make(keys))
    for perturbation in ("cube", "centred", "ball"):
        learner = cx.learners.PDMFW(perturbation=perturbation)

        @jax.jit
        @jax.vmap
        def total_loss(problem, rounds, key, learner=learner):
            return cx.play(problem, learner, rounds, key=key).loss.sum()

        began = time.perf_counter()
        compiled = total_loss.lower(problems, rounds, keys).compile()
        ready = time.perf_counter()
        losses = np.asarray(compiled(problems, rounds, keys))
        done = time.perf_counter()
        print(
            f"PDMFW, {perturbation:8} {options.instances} instances, T = {options.horizon}: compiled in "
            f"{ready - began:.1f} s, played in {done - ready:.1f} s, regret {losses.mean():.3g} ± {losses.std():.2g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
