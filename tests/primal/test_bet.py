"""A bet on a challenger loses a constant to the favourite, and a root of the squared gains to the challenger."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocoax import theory
from cocoax.primal.bet import Bet

ROUNDS = 3000
T = np.arange(ROUNDS)
RNG = np.random.default_rng(0)
GAINS = {
    "noise": RNG.normal(size=ROUNDS),
    "the favourite is better": RNG.normal(size=ROUNDS) - 0.3,
    "the challenger is better": RNG.normal(size=ROUNDS) + 0.3,
    "better, then far worse": np.where(T < 500, 1.0, -1.0),
    "waves": np.sign(np.sin(T / 50)) + 0.02,
    "scales that grow": RNG.normal(size=ROUNDS) * 10.0 ** (T / 1000) + 0.1,
    "better by little, then worse by much": np.where(T < 2500, np.where(T % 2, -0.9, 1.1), -3.0),
    "heavy tails": RNG.standard_t(1.5, ROUNDS),
}


@jax.jit
def shares_and_scales(gains):
    def one(bet, gain):
        new = bet.observe(gain)
        return new, (bet.share, new.scale, new.logs)

    return jax.lax.scan(one, Bet.begin(gains.dtype), gains)[1]


def against(gains, factor=1.0):
    """(shares, scales) of a game, in NumPy."""
    shares, scales, _ = shares_and_scales(jnp.asarray(factor * gains))
    return np.asarray(shares), np.asarray(scales)


@pytest.mark.parametrize("kind", GAINS)
def test_never_more_than_a_constant_is_lost_to_the_favourite(kind):
    gains = GAINS[kind]
    shares, _ = against(gains)
    lost = -np.cumsum(shares * gains)
    assert np.all(lost <= theory.regret.favourite(span=np.maximum.accumulate(np.abs(gains))))
    assert shares.min() >= 0 and shares.max() <= 1


@pytest.mark.parametrize("kind", GAINS)
def test_a_root_of_the_squares_is_lost_to_the_challenger(kind):
    gains = GAINS[kind]
    shares, scales = against(gains)
    lost, bound = np.cumsum((1 - shares) * gains), 0.0
    for scale in np.unique(scales):
        rounds = np.flatnonzero(scales == scale)
        squares = np.square(gains[rounds]).sum()
        assert lost[rounds[-1]] <= bound + theory.regret.challenger(scale=scale, squares=squares)
        bound += theory.regret.challenger(scale=scale, squares=squares)


def test_a_challenger_who_always_loses_takes_the_stake_and_no_more():
    """A quarter of the scale, which is twice the gains; the first round adds its share of a gain."""
    shares, scales = against(np.full(ROUNDS, -1.0))
    assert scales[-1] == 2 and 0.4 < shares.sum() <= 0.25 * 2 + shares[0]


def test_the_unit_of_losses_does_not_matter_and_a_clear_winner_gets_all():
    gains = GAINS["the challenger is better"]
    shares, _ = against(gains)
    np.testing.assert_array_equal(shares, against(gains, 2.0**30)[0])
    assert shares[-500:].min() > 0.5
    assert against(np.ones(ROUNDS))[0][30] == 1


@pytest.mark.parametrize("kind", ["better, then far worse", "better by little, then worse by much", "heavy tails"])
def test_shares_are_those_of_the_formula(kind):
    """Written again, product by product: what a share that was cut to 1 gains is not counted, nor more than a unit."""
    rates, prior = 2.0 ** -np.arange(1, 13), 13 / 12 / np.arange(1, 13) / np.arange(2, 14)
    products, scale, expected = np.ones(12), 0.0, []
    for gain in GAINS[kind]:
        share = 0.25 * prior @ (rates * products)
        expected.append(min(share, 1))
        if abs(gain) > scale:
            unit, scale = scale / (2 * abs(gain)), 2 * abs(gain)
            taken = unit * products
            products = 1 + taken / max(1, 0.25 * prior @ taken)
        elif share <= 1 or gain <= 0:
            products = products * (1 + rates * gain / scale)
    np.testing.assert_allclose(against(GAINS[kind])[0], expected, rtol=1e-9)
