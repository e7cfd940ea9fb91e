# %% [markdown]
# # For quants: a portfolio with a turnover limit
#
# Five assets, daily decisions, fees, and a limit: at most 1% of the capital may be traded a day, on average.
# Markets change, so what was learnt long ago should count less. All prices here are simulated; nothing is claimed
# about real markets.

# %%
import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx

days, assets = 1500, 5
key = jax.random.key(0)
drift = jnp.where(jnp.arange(days)[:, None] < days // 2, jnp.linspace(0, 0.002, assets), jnp.linspace(0.002, 0, assets))
returns = jnp.exp(drift + 0.008 * jax.random.normal(key, (days, assets)))  # the best asset becomes the worst

# %% [markdown]
# A loss or a constraint that takes a third argument, `previous`, sees what was really held the day before
# ([movement](../movement.md)). The loss is minus the growth of log-wealth, in per cent, with fees of 0.1%.

# %%
LIMIT = 0.01


def loss(x, r, previous):
    return -100 * jnp.log(r @ x) + 0.1 * jnp.abs(x - previous).sum()


def turnover(x, r, previous):
    return 0.5 * jnp.abs(x - previous).sum() - LIMIT


problem = cx.Problem(cx.domains.ProbabilitySimplex(assets), loss, turnover)

# %%
learners = {
    "Auto()": cx.learners.Auto(),
    "Auto(memory=100)": cx.learners.Auto(memory=100),
    "equal weights": cx.learners.Stay(),
}
games = {name: cx.play(problem, learner, returns, key=key) for name, learner in learners.items()}
best = cx.hindsight(problem, returns)
print(f"best fixed portfolio {best.x.round(2)}: log-wealth {-best.value:.1f}%, proven to {best.gap:.1e}")
for name, game in games.items():
    traded = abs(float(game.constraint.mean() + LIMIT))
    print(f"{name:18} log-wealth {-game.loss.sum():6.1f}%   traded {100 * traded:.2f}% a day of {100 * LIMIT:.0f}%")

# %% [markdown]
# A memory forgets: after the change in the middle, the learner with a memory of 100 days follows, as fast as the
# limit on trades lets it. On data that do not change, a memory costs a little: try both on your own log ([budgets
# that drift](../guides/drift.md)).

# %%
from matplotlib import pyplot

figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for name, game in games.items():
    axes[0].plot(-np.cumsum(game.loss), label=name)
    axes[1].plot(100 * np.cumsum(game.constraint[:, 0] + LIMIT) / np.arange(1, days + 1), label=name)
axes[0].axvline(days // 2, color="grey", linestyle=":")
axes[0].set(title="Log-wealth after fees, per cent", xlabel="day")
axes[1].axhline(100 * LIMIT, color="black", linestyle="--", label="limit")
axes[1].set(title="Traded a day so far, per cent of capital", xlabel="day", ylim=(0, 1.5))
axes[0].legend()
axes[1].legend()
figure.savefig("trading.png", dpi=120)

# %% [markdown]
# ## A proof while you trade
#
# With `certify=True` a game, or a live session, knows at any time how much worse it is than the best fixed
# decision, at most. This is a theorem and not an estimate, and needs no second pass over the data
# ([certificates](../certificates.md)). Fees and limits on trades are counted too; here is the same portfolio with a
# limit on risk instead.

# %%
risky = cx.Problem(
    cx.domains.ProbabilitySimplex(assets),
    loss=lambda x, r: -100 * jnp.log(r @ x),
    constraint=lambda x, r: (100 * jnp.log(r @ x)) ** 2 - 0.3,  # at most this variance, in the long run
)
game = cx.play(risky, cx.learners.Auto(), returns, key=key, certify=True)
certificate = game.certificate()
print(f"regret over {days} days: at most {certificate.regret:.1f}% of log-wealth")
print(f"in truth: {game.regret(cx.hindsight(risky, returns))[-1]:.1f}%")
