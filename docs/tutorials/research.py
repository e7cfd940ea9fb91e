# %% [markdown]
# # For PhD students: race a method of your own
#
# You have an idea for a method and a deadline. This page writes a method in 20 lines, checks that it is one,
# races it against others on the same rounds with certified comparators, and ends with a LaTeX table.
#
# The idea: Frank-Wolfe with a running mean of gradients (momentum). It goes into any primal-dual scheme as the
# *primal*.

# %%
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import polars as pl

import cocoax as cx
from cocoax.primal import AbstractPrimal, cost


class State(eqx.Module):  # what is remembered between rounds
    point: jax.Array
    mean: jax.Array
    round: jax.Array


class MomentumFW(AbstractPrimal):
    r"""$d_t = (1-\rho_t)d_{t-1} + \rho_t\nabla_t$, $x_{t+1} = x_t + \eta_t(\mathrm{lmo}(d_t) - x_t)$."""

    deterministic = True

    def init(self, domain, bounds, *, start, key, warm=None):
        return State(start, jnp.zeros_like(start), jnp.ones((), start.dtype))

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient = revealed.gradient(revealed.played)
        mean = state.mean + (gradient - state.mean) / state.round**0.5
        point = domain.lmo(mean).mix(state.point, 0.5 / state.round**0.75)
        spent = cost(lmo_calls=1, gradient_calls=1, finite=jnp.isfinite(gradient).all())
        return State(point, mean, state.round + 1), spent


mine = cx.learners.PrimalDual(MomentumFW(), cx.dual.RobustPI())

# %% [markdown]
# ## One game
#
# Play it once before you race it.

# %%
instance = cx.problems.pacing(jax.random.key(0), budget=0.2)
data = instance.rounds(500, jax.random.key(1))
best = cx.hindsight(instance.problem, data)
for name, learner in {"mine": mine, "Auto": cx.learners.Auto()}.items():
    game = cx.play(instance.problem, learner, data, key=jax.random.key(2))
    print(f"{name:5} regret {game.regret(best)[-1]:7.2f}  violation {game.violation()[-1, 0]:7.2f}")

# %% [markdown]
# ## A race
#
# A study plays every learner on every problem, horizon and seed; all meet the same rounds. It may be killed at
# any time and goes on where it was. `cx.testing.check_primal` and `check_learner` tell whether a part keeps all
# promises (that it never sees the future, that the same key gives the same decisions): run them before you
# publish.

# %%
study = cx.lab.Study(
    {"pacing": cx.problems.pacing, "simplex": cx.problems.simplex},
    {"MomentumFW": mine, "Auto": cx.learners.Auto(), "DPP": cx.learners.DPP(), "play the start": cx.learners.Stay()},
    horizons=[100, 400],
    seeds=range(5),
    out="race",
).run(quiet=True)
figures = pl.col("regret", "violation", "score").mean()
study.table().filter(pl.col("horizon") == 400).group_by("problem", "learner", maintain_order=True).agg(figures)

# %% [markdown]
# ## The paper
#
# The report is one HTML file with curves, confidence intervals and paired differences. Beside it lie figures as
# PDF, and the table for LaTeX.

# %%
study.report()
print(Path("race/table.tex").read_text()[:1200])

# %%
from matplotlib import pyplot

figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
curves = study.curves().filter((pl.col("horizon") == 400) & (pl.col("problem") == "pacing"))
curves = curves.group_by("learner", "round", maintain_order=True).agg(pl.col("regret", "violation").mean())
for cell, column in zip(axes, ("regret", "violation")):
    for (name,), curve in curves.group_by("learner", maintain_order=True):
        cell.plot(curve["round"], curve[column], label=name, linewidth=3 if name == "MomentumFW" else 1.5)
    cell.set(title=f"{column.capitalize()} on pacing, mean of 5 seeds", xlabel="round")
    cell.axhline(0, color="black", linewidth=0.8)
axes[0].legend()
figure.savefig("research.png", dpi=120)

# %% [markdown]
# ## Next
#
# * [Write your own parts](../guides/own_parts.md): domains, primals, duals, learners, environments, with their
#   contracts.
# * `cocoax race arena --challenger mine.py:MomentumFW` plays it beside Auto and tuned rivals on 57 problems
#   ([the arena](../arena.md)).
# * [Theory](../theory.md): bounds as numbers, and from which horizon on they say anything.
# * `cocoax list --cite` prints BibTeX for everything that you raced.
