# %% [markdown]
# # A first game
#
# A web service sends its requests to three servers. In each round you choose which share goes where; afterwards
# you see what each server cost and how much energy it used. The cost should be low. The energy has a budget of
# 0.5 a round, which must hold *in the long run*: one round may use more if others use less.
#
# A problem has three parts: the set of decisions, the loss, and the constraint, which is good where it is at most
# 0.

# %%
import jax
import jax.numpy as jnp

import cocoax as cx

problem = cx.Problem(
    cx.domains.ProbabilitySimplex(3),  # shares: not negative, with sum 1
    loss=lambda x, r: r["cost"] @ x,  # r is whatever a round reveals
    constraint=lambda x, r: r["energy"] @ x - 0.5,
)

# %% [markdown]
# Rounds are arrays with a leading axis, one row a round. Here they are drawn; yours may come from a log. The
# first server is cheap and hungry, the last one dear and frugal.

# %%
rounds = 2000
cost_key, energy_key, key = jax.random.split(jax.random.key(0), 3)
data = {
    "cost": jnp.array([1.0, 2.0, 4.0]) * jax.random.uniform(cost_key, (rounds, 3), minval=0.5, maxval=1.5),
    "energy": jnp.array([1.0, 0.4, 0.1]) * jax.random.uniform(energy_key, (rounds, 3), minval=0.5, maxval=1.5),
}

# %% [markdown]
# `cx.play` plays a learner on all rounds, as one compiled program. A decision never sees its own round.

# %%
game = cx.play(problem, cx.learners.Auto(), data, key=key)
game.loss.shape, game.constraint.shape

# %% [markdown]
# Was that good? `cx.hindsight` finds the best *fixed* decision among those that keep the budget over all rounds.
# It comes with a proof: no such decision is better by more than `best.gap`.

# %%
best = cx.hindsight(problem, data)
print("best fixed shares", best.x.round(3), "proven to", best.gap)
print("regret   ", game.regret(best)[-1], "= cost above that, over all rounds")
print("violation", game.violation()[-1], "= energy above the budget, over all rounds")

# %% [markdown]
# **Read regret and violation together.** A learner that ignores the budget is cheaper than the best decision that
# keeps it: its regret is negative. The score charges the violation at twice its worth, so that overspending never
# pays. `learners.Stay()` plays the start in all rounds: a learner that does not beat it has learnt nothing.

# %%
games = {
    "Auto": game,
    "stay at the start": cx.play(problem, cx.learners.Stay(), data, key=key),
    "always the cheapest": cx.play(problem, cx.learners.Stay(), data, key=key, start=jnp.array([1.0, 0.0, 0.0])),
}
for name, played in games.items():
    regret, violation, score = played.regret(best)[-1], played.violation()[-1, 0], played.score(best)[-1]
    print(f"{name:20} regret {regret:8.1f}   violation {violation:8.1f}   score {score:8.1f}")

# %%
from matplotlib import pyplot

figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for name, played in games.items():
    axes[0].plot(played.regret(best), label=name)
    axes[1].plot(played.violation()[:, 0], label=name)
axes[0].set(title="Regret", xlabel="round")
axes[1].set(title="Energy above the budget", xlabel="round")
axes[0].legend()
# %% [markdown]
# ## The price of energy
#
# The learner's multiplier is what it holds a unit of energy to be worth; the comparator's is exact. Both are in
# units of cost: this is what one more unit of budget a round would save.

# %%
print("learner, mean of the last 500 rounds", game.multiplier[-500:].mean(0), "in hindsight", best.multiplier)

# %% [markdown]
# ## Next
#
# * Several constraints: return a vector and give `constraints=3`, or return a dict and give their names.
# * Data that drift: `cx.learners.Auto(memory=1000)`, [budgets that drift](../guides/drift.md).
# * A request is seen before the decision: [requests](../requests.md).
# * In production, one round at a time, safe against crashes: [sessions](../sessions.md).
# * Your own method: [research](research.py).
