"""How much Auto overspends at most after all prices double, with and without a memory.

python -m benchmarks.auto_drift
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.lab.sources import as_source

AGES, SEEDS = (1000, 10_000), range(2000, 2010)


def drift(age, memory, after=1000):
    """The highest overspending after all prices double at that age, in rounds of budget."""
    make = functools.partial(cx.problems.pacing, doubles_at=age)
    drawn = [as_source("benchmark", make).draw(seed, age + after) for seed in SEEDS]
    problems, rounds = (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        for each in ([d.problem for d in drawn], [d.rounds for d in drawn])
    )
    learner = cx.learners.Auto(memory)
    play = jax.vmap(lambda problem, rounds: cx.play(problem, learner, rounds, key=jax.random.key(0)).constraint)
    spent = np.cumsum(np.asarray(jax.jit(play)(problems, rounds), np.float64)[:, :, 0], axis=1)
    budget = np.array([float(each.rounds["budget"][0]) for each in drawn])
    return (spent[:, age:].max(1) - spent[:, age - 1]) / budget


def main():
    print(f"Rounds of budget; means over the seeds {SEEDS[0]} to {SEEDS[-1]}.\n")
    print(f"| memory | {AGES[0]} | {AGES[1]} |\n|---|---|---|")
    for memory in (None, 1000):
        peaks = " | ".join(f"{drift(age, memory).mean():.1f}" for age in AGES)
        print(f"| {memory or 'all rounds'} | {peaks} |", flush=True)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
