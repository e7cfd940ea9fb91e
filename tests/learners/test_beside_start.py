"""The start is left as soon as moving has surely paid, in all units, and however large the first costs are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocoax.learners.beside_start import BesideStart

NOISE = np.random.default_rng(0).normal(size=1000)
NOISE -= NOISE.mean()


def shares(excess, keep=1.0):
    """The start's, after every round in which the decision cost so much more."""

    def step(beside, excess):
        beside = beside.observe(excess, jnp.asarray(keep))
        return beside, beside.share

    return np.asarray(jax.lax.scan(step, BesideStart.begin(excess.dtype), excess)[1])


def test_it_begins_with_little_and_changes_nothing_while_both_cost_the_same():
    first = 1 / (1 + 4 * np.exp(2 * 2**0.5))
    np.testing.assert_allclose(shares(np.zeros(9)), first, rtol=1e-12)
    assert first < 0.015


def test_what_surely_costs_less_is_played():
    """One standard deviation a round is sure within twenty rounds, a tenth of one within a thousand."""
    assert shares(NOISE - 1)[19] < 0.02 and shares(NOISE - 0.1)[-1] < 0.02
    assert shares(NOISE + 1)[19] > 0.95 and shares(NOISE + 0.1)[-1] > 0.95


def test_noise_alone_decides_nothing():
    """z is then nearly a normal number: in a tenth of all games the share is above 0.77, in a tenth below 0.02."""
    last = np.stack([shares(noise)[-1] for noise in np.random.default_rng(1).normal(size=(200, 300))])
    assert 0.05 < np.mean(last > 0.77) < 0.15 and 0.05 < np.mean(last < 0.02) < 0.15


@pytest.mark.parametrize("first", [1e3, 1e6])
def test_costs_of_the_first_round_do_not_decide(first):
    """30 rounds in which moving paid are enough against one in which it cost a million times more."""
    excess = -np.ones(300)
    excess[0] = first
    assert shares(excess)[30] < 0.2 and shares(excess)[-1] < 1e-3


def test_what_is_rare_counts_by_its_size():
    """Moving costs 1 in most rounds, and gains 40 in one of twenty: twice as much in all."""
    excess = np.where(np.arange(2000) % 20 == 19, -40.0, 1.0)
    assert shares(excess)[-1] < 1e-3 and shares(-excess)[-1] > 0.99


def test_rounds_in_which_both_cost_the_same_change_nothing():
    seldom = np.zeros(300)
    seldom[::10] = NOISE[:30] - 0.5
    np.testing.assert_allclose(shares(seldom)[::10], shares(seldom[::10]), rtol=1e-12)


def test_what_it_remembers_fades():
    turn = np.where(np.arange(600) < 300, -1.0, 1.0)
    assert shares(turn, keep=0.98)[-1] > 0.99 > 0.5 > shares(turn, keep=0.98)[299]


def test_powers_of_two_change_no_bit():
    np.testing.assert_array_equal(shares(2.0**40 * NOISE), shares(NOISE))
