"""Your own learner: a few lines, checked by the contract suite, and raced against three others.

`Haggler` keeps running means of the gradients of the loss and of each constraint, asks the LMO with the constraints'
current prices, and takes a Frank-Wolfe step. Prices follow the constraints' values, in steps that no unit changes. It
needs no horizon, no constants and no projection, and has no theorem.

Run it: `python examples/your_own_learner.py [rounds]`. It prints the race, with the comparators' certificates, and
writes out/your_own_learner.png.
"""

import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import polars as pl
from matplotlib.figure import Figure

import cocoax as cx
from cocoax.lab import Study
from cocoax.learners import AbstractLearner, Outcome


class _State(eqx.Module):  # what is remembered between rounds
    point: Any  # the next decision
    means: Any  # of the gradients of the loss and, along a leading axis, of the constraints
    squares: jax.Array  # sum of g^2
    price: jax.Array
    round: jax.Array


class Haggler(AbstractLearner):
    eagerness: jax.Array = eqx.field(converter=jnp.asarray, default=0.3)  # an array: to change it compiles nothing

    def init(self, problem, *, key, horizon=None, start=None):
        x = problem.domain.start() if start is None else start
        zeros, m = jax.tree.map(jnp.zeros_like, x), problem.constraints
        nothing = jnp.zeros(m, jax.tree.leaves(x)[0].dtype)
        stack = jax.tree.map(lambda leaf: jnp.zeros((m, *leaf.shape), leaf.dtype), x)
        return _State(x, (zeros, stack), nothing, nothing, jnp.ones((), nothing.dtype))

    def decision(self, state):
        return state.point

    def observe(self, problem, state, round, *, played=None):
        x, t = state.point if played is None else played, state.round
        (loss, values), gradients = problem.values(x, round), problem.gradients(x, round)
        means = jax.tree.map(lambda mean, new: mean + (new - mean) / t**0.75, state.means, gradients)
        squares = state.squares + values**2
        unit = norm(means[0]) / jnp.maximum(jax.vmap(norm)(means[1]), 1e-9)  # of a price
        change = self.eagerness.astype(t.dtype) * unit * values / jnp.sqrt(jnp.maximum(squares, 1e-9))
        price = jnp.maximum(state.price + change, 0)
        vertex = problem.domain.lmo(jax.tree.map(lambda f, g: f + jnp.tensordot(price, g, axes=1), *means))
        one, finite = jnp.ones((), int), jnp.isfinite(loss + norm(gradients)) & jnp.isfinite(values).all()
        outcome = Outcome(loss, values, state.price, one, one, finite)
        return _State(vertex.mix(state.point, 0.5 / t**0.75), means, squares, price, t + 1), outcome


def norm(tree):
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def main(rounds=2000, out="out"):
    pacing = cx.problems.pacing(jax.random.key(0))
    few = pacing.rounds(20, jax.random.key(1))
    cx.testing.check_learner(Haggler(), key=jax.random.key(2), problem=pacing.problem, rounds=few, random=False)
    learners = {"Haggler": Haggler(), "Stay": cx.learners.Stay(), "AdaptivePDOGD": cx.learners.AdaptivePDOGD()}
    learners["Blocks(OCG())"] = cx.learners.Blocks(cx.primal.OCG())
    study = Study({"pacing": cx.problems.pacing}, learners, horizons=[rounds], seeds=range(5)).run(quiet=True)
    figures = pl.col("regret", "violation", "score", "gap").mean()
    table = study.table().group_by("learner", maintain_order=True).agg(figures)
    print(f"{rounds} rounds of pacing, means of 5 instances; gap: how far the comparator is from the best, at most")
    print(table)

    figure = Figure(figsize=(11, 4), layout="constrained")
    axes = figure.subplots(1, 2)
    curves = study.curves().group_by("learner", "round", maintain_order=True).agg(pl.col("regret", "violation").mean())
    for cell, name in zip(axes, ("regret", "violation")):
        for (learner,), curve in curves.group_by("learner", maintain_order=True):
            cell.plot(curve["round"], curve[name], label=learner, linewidth=3 if learner == "Haggler" else 1.5)
        cell.set(title=f"{name}, mean of 5 instances", xlabel="round")
        cell.axhline(0, color="black", linewidth=0.8)
    axes[0].legend()
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "your_own_learner.png"), dpi=150)
    print(f"wrote {Path(out, 'your_own_learner.png')}")
    return table


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
