"""AdaHedge: shares are shares, and its regret is below its bound, whoever chooses the costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocoax.primal.hedge import Hedge

ENTRIES, ROUNDS = 5, 500


def tables(seed=0):
    """Costs of several kinds: noise, one good entry, leaders that change, sizes from 1e-3 to 1e3, and a
    leader of many small rounds, whose rivals have shares that round to 0, before large ones."""
    rng, t = np.random.default_rng(seed), np.arange(ROUNDS)
    noise = rng.normal(size=(ROUNDS, ENTRIES))
    leaders = np.eye(ENTRIES)[t % 2]
    leaders[0] *= 0.5
    rivals = 1 - np.eye(ENTRIES)[0]
    return np.stack(
        [
            noise,
            noise - 0.5 * np.eye(ENTRIES)[2],
            leaders,
            np.where(t < ROUNDS / 2, 1.0, -2.0)[:, None] * np.eye(ENTRIES)[0] + 0.1 * noise,
            noise * np.geomspace(1e-3, 1e3, ROUNDS)[:, None],
            noise * np.geomspace(1e3, 1e-3, ROUNDS)[:, None],
            np.zeros((ROUNDS, ENTRIES)),
            np.eye(ENTRIES)[1] * (t == 400)[:, None],
            np.where((t < 400)[:, None], 1e-9 * t[:, None] * rivals, np.where((t % 2)[:, None], rivals, 1 - rivals)),
        ]
    )


@jax.jit
def played(tables, spite):
    """(shares, costs, gaps) after every round; `spite` adds to what has the largest share."""

    def one(table):
        def step(hedge, costs):
            shares = hedge.shares
            costs = costs + spite * (shares == shares.max()).astype(shares.dtype)
            new = hedge.observe(costs, jnp.ptp(costs), jnp.ones(()))
            return new, (shares, costs, new.gap)

        return jax.lax.scan(step, Hedge.begin(jnp.full(ENTRIES, 1 / ENTRIES)), table)[1]

    return jax.vmap(one)(tables)


@pytest.mark.parametrize("spite", [0.0, 1.0])
def test_regret_is_below_its_bound_after_every_round(spite):
    """2 sqrt(V ln d) + (4/3 ln d + 2) S in the paper; beginning with the prior and half of a span costs up to 2 S."""
    shares, costs, gaps = map(np.asarray, played(tables(), spite))
    np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-12)
    assert shares.min() >= 0 and np.all(np.isfinite(gaps))
    regret = np.cumsum((shares * costs).sum(-1), axis=1) - np.cumsum(costs, axis=1).min(-1)
    means = (shares * costs).sum(-1, keepdims=True)
    variance = np.cumsum((shares * (costs - means) ** 2).sum(-1), axis=1)
    span = np.maximum.accumulate(np.ptp(costs, axis=-1), axis=1)
    log = np.log(ENTRIES)
    slack = 1e-12 * np.cumsum(np.abs(costs).sum(-1), axis=1)
    assert np.all(regret <= 2 * gaps + span + slack)
    assert np.all(regret <= 2 * np.sqrt(variance * log) + (4 / 3 * log + 4) * span + slack)
    assert np.any(regret > 0.5 * np.sqrt(variance * log))  # the games are hard


def test_the_best_entry_has_all_in_the_end():
    shares, _, _ = played(tables(), 0.0)
    assert shares[1, -1, 2] > 0.99


def test_a_prior_has_no_zeros():
    shares = np.asarray(Hedge.begin(jnp.eye(ENTRIES)[1]).shares)
    np.testing.assert_allclose(shares, np.where(np.arange(ENTRIES) == 1, 25, 1) / 29, rtol=1e-12)


def test_sums_forget():
    """Entry 0 is best in the last 100 rounds, entry 1 before."""
    table = np.full((ROUNDS, ENTRIES), 3.0)
    table[:, 0], table[:, 1] = np.arange(ROUNDS) < 400, np.arange(ROUNDS) >= 400

    @jax.jit
    @jax.vmap
    def last(keep):
        def step(hedge, costs):
            return hedge.observe(costs, jnp.ptp(costs), keep), None

        return jax.lax.scan(step, Hedge.begin(jnp.full(ENTRIES, 1 / ENTRIES)), jnp.asarray(table))[0].shares

    assert np.argmax(last(jnp.array([1.0, 0.95])), axis=1).tolist() == [1, 0]
