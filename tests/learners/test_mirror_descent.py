"""Dual mirror descent: plain transcriptions, and its theorem as inequalities."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import request_tools as tools

import cocoax as cx
from cocoax import theory
from cocoax.learners import DualMirrorDescent, RegularizedMirrorDescent
from cocoax.testing import check_learner

KEY = jax.random.key(0)
ROUNDS = 300


@functools.cache
def plays():
    """One program for all games."""
    return jax.jit(lambda learner, rounds: cx.play(tools.problem(), learner, rounds, key=KEY))


def transcribed(rounds, update, price):
    """(losses, constraint values, prices before each round, price after all)."""
    value, cost, budget = (np.asarray(rounds[name]) for name in ("value", "cost", "budget"))
    losses, values, prices = [], [], []
    for t in range(len(value)):
        answer = (value[t] - cost[t] @ price).argmax()
        losses.append(-value[t, answer])
        values.append(cost[t, answer] - budget[t])
        prices.append(price)
        price = update(price, values[-1])
    return np.array(losses), np.array(values), np.array(prices), price


UPDATES = {
    "euclidean": (DualMirrorDescent(0.1), lambda price, g: np.maximum(price + 0.1 * g, 0), np.zeros(2)),
    "entropy": (
        DualMirrorDescent(0.2, geometry="entropy", first=0.5),
        lambda price, g: price * np.exp(0.2 * g),
        np.full(2, 0.5),
    ),
    "regularised": (
        RegularizedMirrorDescent(0.1, lambda price: jnp.minimum(0.0, -0.02 + price / 5.0)),
        lambda price, g: price + 0.1 * (g - np.minimum(0.0, -0.02 + price / 5.0)),
        np.zeros(2),
    ),
}


@pytest.mark.parametrize("name", UPDATES)
def test_games_are_those_of_a_plain_transcription(name):
    learner, update, first = UPDATES[name]
    rounds = tools.drawn(ROUNDS, seed=1)
    game = plays()(learner, rounds)
    losses, values, prices, _ = transcribed(rounds, update, first)
    np.testing.assert_allclose(game.loss, losses, rtol=1e-12)
    np.testing.assert_allclose(game.constraint, values, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(game.multiplier, prices, rtol=1e-9, atol=1e-12)


def test_smoothing_pulls_spending_to_where_it_is_wanted():
    """A budget that is too large for what is worth buying: the regularised form spends less, and loses little."""
    rounds = tools.drawn(2000, seed=2, budget=1.0)
    plain, smooth = DualMirrorDescent(0.05), RegularizedMirrorDescent(0.05, lambda a: jnp.minimum(0.0, -0.3 + a))
    spent = [np.asarray(plays()(learner, rounds).constraint).mean(0) for learner in (plain, smooth)]
    assert (spent[1] < spent[0] - 0.02).all()


def adversarial(count, seed):
    """Costs and values that jump, and change with what the prices should be."""
    rng = np.random.default_rng(seed)
    rounds = {name: np.array(leaf) for name, leaf in tools.drawn(count, seed=seed).items()}
    blocks = np.repeat(rng.integers(0, 2, -(-count // 20)), 20)[:count, None]
    rounds["cost"] = rounds["cost"] * np.where(blocks, 1.0, 0.1)[..., None]
    rounds["value"] = rounds["value"] * np.where(np.roll(blocks, 10), 1.0, 0.3)
    return jax.tree.map(jnp.asarray, rounds)


BOUNDS = {"constraint_bound": 0.9 * 2**0.5, "loss_range": 1.0, "slack": 0.1}  # of `tools.drawn`


@pytest.mark.parametrize("step", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("rounds", [tools.drawn(ROUNDS, seed=3), adversarial(ROUNDS, 4)], ids=["iid", "adversarial"])
def test_violation_and_prices_are_bounded_for_every_sequence(step, rounds):
    game = plays()(DualMirrorDescent(step), rounds)
    bounds = theory.mirror_descent(ROUNDS, **BOUNDS, step=step)
    values, prices = np.asarray(game.constraint), np.asarray(game.multiplier)
    _, _, _, last = transcribed(rounds, lambda price, g: np.maximum(price + step * g, 0), np.zeros(2))
    assert (np.linalg.norm(values, axis=1) <= BOUNDS["constraint_bound"]).all()
    assert (values.sum(0) <= last / step + 1e-9).all()
    assert np.linalg.norm([*prices, last], axis=1).max() <= bounds.multiplier
    assert values.sum(0).max() <= bounds.violation
    for multiplier in ([0, 0], [1, 0], [0, 5], [3, 3]):  # part (a), for every sequence
        drift = np.sum((np.array(multiplier) - prices) * values)
        assert drift <= np.dot(multiplier, multiplier) / (2 * step) + step / 2 * np.sum(values**2) + 1e-9


def test_regret_against_the_best_policy_is_bounded_in_expectation():
    """200 i.i.d. games of 200 rounds: their mean regret, against a lower bound of OPT, is below the theorem's."""
    count, seeds, steps = 200, 200, jnp.array([0.25, 2.0, 20.0])
    games = [tools.drawn(count, seed=1000 + seed) for seed in range(seeds)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *games)

    def loss(step, rounds):
        return cx.play(tools.problem(), DualMirrorDescent(step), rounds, key=KEY).loss.sum()

    losses = jax.jit(jax.vmap(jax.vmap(loss, in_axes=(None, 0)), in_axes=(0, None)))(steps, stacked)
    price = np.array([0.8, 0.8])  # any price bounds OPT from below
    value, cost, budget = (np.asarray(stacked[name]) for name in ("value", "cost", "budget"))
    regret = np.asarray(losses) - ((cost @ price - value).min(2) - budget @ price).sum(1)
    mean, error = regret.mean(1), regret.std(1) / seeds**0.5
    assert (mean + 3 * error <= [theory.mirror_descent(count, **BOUNDS, step=step).regret for step in steps]).all()
    assert mean[-1] > 3 * error[-1]  # a step that is too large does lose value


@pytest.mark.parametrize("request_", [True, ("value", "cost", "budget")], ids=["whole", "named"])
def test_the_contract_holds(request_, free_promotion):
    problem = tools.problem(request=request_)
    learner = DualMirrorDescent(0.1)
    if request_ is True:
        learner = RegularizedMirrorDescent(0.1, lambda price: jnp.minimum(0.0, -0.02 + price / 5.0))
    check_learner(learner, key=KEY, problem=problem, rounds=tools.drawn(20), random=False)


def test_what_cannot_be_is_refused():
    for step in (0, -1.0, float("nan")):
        with pytest.raises(cx.LearnerError, match=r"^step must be positive"):
            DualMirrorDescent(step)
    with pytest.raises(cx.LearnerError, match=r"^geometry must be 'euclidean' or 'entropy', got 'l1'"):
        DualMirrorDescent(0.1, geometry="l1")
    before = cx.Problem(tools.problem().domain, tools.loss)
    with pytest.raises(cx.LearnerError, match=r"^DualMirrorDescent decides after a request; give Problem\(request="):
        cx.play(before, DualMirrorDescent(0.1), tools.drawn(5), key=KEY)
    blind = tools.problem(request=("value",))
    with pytest.raises(cx.LearnerError, match=r"needs more than the request shows .*; give predict="):
        cx.play(blind, DualMirrorDescent(0.1), tools.drawn(5), key=KEY)


def test_decisions_follow_what_is_predicted_and_prices_what_happened():
    rounds, typical = tools.drawn(ROUNDS, seed=5), jnp.array([0.0, 0.5, 0.5])

    def predict(request):
        return {"value": request["value"], "cost": jnp.stack([typical, typical], 1), "budget": jnp.full(2, 0.1)}

    learner = DualMirrorDescent(0.1, predict=predict)
    game = cx.play(tools.problem(request=("value",)), learner, rounds, key=KEY, keep_decisions=True)
    value, cost = np.asarray(rounds["value"]), np.asarray(rounds["cost"])
    price = np.zeros(2)
    for t in range(ROUNDS):
        answer = (value[t] - np.asarray(typical) * price.sum()).argmax()
        assert np.asarray(game.decisions)[t, answer] == 1
        price = np.maximum(price + 0.1 * (cost[t, answer] - 0.1), 0)
