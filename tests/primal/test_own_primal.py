"""A primal of one's own needs three methods and public names only; one without a theorem needs no constants."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.primal import AbstractPrimal, Cost, Revealed, RoundBounds, cost, first_guess, step_size

KEY = jax.random.key(0)
PROBLEM = cx.Problem(
    cx.domains.ProbabilitySimplex(3), lambda x, r: jnp.vdot(r, x), lambda x, r: x[0] - 0.25
)  # states no regularity
ROUNDS = jnp.tile(jnp.array([1.0, 2.0, 3.0]), (50, 1))
RULE = cx.dual.RegularizedAscent(theta=1.0, mu=0.1)


class State(eqx.Module):
    point: object
    mean: object
    round: jax.Array


class MomFW(AbstractPrimal):
    deterministic = True

    def init(self, domain, bounds, *, start, key, warm=None):
        return State(start, jax.tree.map(jnp.zeros_like, start), jnp.ones((), jax.tree.leaves(start)[0].dtype))

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient = revealed.gradient(revealed.played)
        rate = 1 / state.round**0.75
        mean = jax.tree.map(lambda mean, new: mean + rate * (new - mean), state.mean, gradient)
        finite = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient)]).all()
        point = domain.lmo(mean).mix(state.point, rate / 2)
        return State(point, mean, state.round + 1), cost(lmo_calls=1, gradient_calls=1, finite=finite)


class Uncertain(MomFW):
    deterministic = False


class NoAlpha(MomFW):
    def _constants(self, domain):
        return cx.theory.Constants(0.5, 0.0, 1.0, 0.0)


def test_a_primal_without_a_theorem_keeps_the_contract():
    cx.testing.check_primal(MomFW(), key=KEY)


def test_it_plays_problems_that_state_no_constants():
    learner = cx.learners.PrimalDual(MomFW(), RULE)
    game = cx.play(PROBLEM, learner, ROUNDS, key=KEY)
    assert np.isfinite(game.loss).all() and int(game.lmo_calls.sum()) == 50


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (
            lambda: cx.learners.Blocks(MomFW()),
            "Blocks is tuned by the regret bound of its primal, but MomFW states none",
        ),
        (lambda: MomFW().constants(PROBLEM.domain), "MomFW states no regret bound; play it with learners.PrimalDual"),
    ],
)
def test_where_constants_are_needed_the_error_says_so(attempt, sentence):
    with pytest.raises(cx.LearnerError, match=re.escape(sentence)):
        attempt()


@pytest.mark.parametrize(
    ("primal", "sentence"),
    [
        (Uncertain(), "decisions do not depend on the key, but deterministic is False"),
        (NoAlpha(), "a primal that states constants also states alpha"),
    ],
)
def test_the_contract_says_what_is_missing(primal, sentence):
    with pytest.raises(AssertionError, match=sentence):
        cx.testing.check_primal(primal, key=KEY)


def test_what_an_author_needs_is_public():
    assert issubclass(Cost, eqx.Module) and isinstance(Revealed, type)
    bounds = RoundBounds(jnp.asarray(2.0), jnp.asarray(0.0), jnp.asarray(16), 16)
    assert float(step_size(PROBLEM.domain, bounds, 0.5)) == pytest.approx(2**0.5 / 8)
    assert first_guess(PROBLEM.domain, jnp.ones(3, jnp.float32)).mix(jnp.ones(3, jnp.float32), 0.5).dtype == jnp.float32
