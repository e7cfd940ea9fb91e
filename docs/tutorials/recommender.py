# %% [markdown]
# # For recommender engineers: ratings under a budget
#
# A shop predicts how much each of 120 users will like each of 80 items. Ratings arrive in small batches. Some
# items are *promoted*, and the contract says: over the year, promoted items may score at most 0.05 above the
# others on average. The predictions are a matrix of low rank, so decisions lie in a nuclear-norm ball. A
# projection onto it needs a full singular value decomposition; cocoax needs one pair of singular vectors a round.

# %%
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx

users, items, rounds, batch = 120, 80, 1500, 60
drawn = np.random.default_rng(0)
taste = drawn.standard_normal((users, 3)) @ drawn.standard_normal((3, items)) / 3**0.5
promoted = np.arange(items) < 20
taste += 1.0 * promoted  # promoted items are popular, too
taste = taste / np.abs(taste).max()

# %% [markdown]
# ## Rounds: what was rated, not a mask
#
# A round is a batch of (user, item, rating). Give the *indices*, not a dense mask of 120 x 80: memory then grows
# with the ratings, and not with the matrix ([sparse rounds](../guides/sparse.md)).

# %%
user, item = drawn.integers(0, users, (rounds, batch)), drawn.integers(0, items, (rounds, batch))
data = {
    "user": user,
    "item": item,
    "rating": taste[user, item] + 0.1 * drawn.standard_normal((rounds, batch)),
    "cap": np.full(rounds, 0.05),
}


def loss(x, r):
    return jnp.mean((x[r["user"], r["item"]] - r["rating"]) ** 2)


def lead(x, r):
    """By how much promoted items lead, above the cap."""
    return x[:, promoted].mean() - x[:, ~promoted].mean() - r["cap"]


# %% [markdown]
# ## The radius
#
# The radius bounds the sum of singular values. Too small, and the predictions are too flat; too large costs
# little with `Auto`. Measure it in hindsight, on a part of the log ([choose a model](../guides/model.md)).

# %%
part = {name: field[:100] for name, field in data.items()}
for radius in (5.0, 20.0, 80.0):
    problem = cx.Problem(cx.domains.NuclearNormBall((users, items), radius=radius), loss, lead)
    best = cx.hindsight(problem, part, tol=1e-2)
    print(f"radius {radius:4.0f}: best mean loss {best.value / 100:.4f}, multiplier {best.multiplier[0]:.3f}")

# %% [markdown]
# ## Play the log
#
# The same rounds with and without the contract.

# %%
ball = cx.domains.NuclearNormBall((users, items), radius=80.0)
problem, free = cx.Problem(ball, loss, lead), cx.Problem(ball, loss)
game = cx.play(problem, cx.learners.Auto(), data, key=jax.random.key(0))
ignoring = cx.play(free, cx.learners.Auto(), data, key=jax.random.key(0))
print("mean loss with the contract   ", float(game.loss[-500:].mean()))
print("mean loss without it          ", float(ignoring.loss[-500:].mean()))
print("mean loss of predicting 0     ", float((data["rating"][-500:] ** 2).mean()))
x = np.asarray(ignoring.average)
print("lead of promoted items, capped at 0.05:", 0.05 + float(game.constraint.mean()))
print("without the contract, on average:     ", float(x[:, promoted].mean() - x[:, ~promoted].mean()))

# %%
from matplotlib import pyplot

figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
smooth = np.ones(50) / 50
axes[0].plot(np.convolve(ignoring.loss, smooth, "valid"), label="without the contract")
axes[0].plot(np.convolve(game.loss, smooth, "valid"), label="with it")
axes[0].set(title="Squared error, mean of 50 rounds", xlabel="round", ylim=(0, None))
axes[1].plot(np.cumsum(game.constraint[:, 0] + 0.05) / np.arange(1, rounds + 1), "C1", label="promoted above others")
axes[1].axhline(0.05, color="black", linestyle="--", label="cap")
axes[1].set(title="Mean lead of promoted items so far", xlabel="round")
for cell in axes:
    cell.legend()
figure.savefig("recommender.png", dpi=120)

# %% [markdown]
# ## Live, and after a crash
#
# A session takes one round at a time. `observe` returns when the round is on disk. The same line begins a session
# and goes on with it: after a crash, every acknowledged round is there, to the bit ([sessions](../sessions.md)).

# %%
folder = Path(tempfile.mkdtemp())


def open_session():
    return cx.Session(problem, cx.learners.Auto(), folder / "ratings.session", key=jax.random.key(0))


with open_session() as session:
    for t in range(5):
        scores = session.decide()  # NumPy: rank items by these
        session.observe({name: field[t] for name, field in data.items()})
with open_session() as session:
    print(session.rounds, "rounds; the next decision is", session.decide().shape)

# %% [markdown]
# ## Next
#
# * Real ratings, and biases and factors that are fitted as they come: [real data](../real_data.md),
#   [models](../models.md).
# * A matrix that does not fit in memory is played in factors: `NuclearNormBall(..., factored=True)`,
#   [too large to write down](../domains.md#too-large-to-write-down).
# * Many campaigns, over HTTP: [production](../production.md).
