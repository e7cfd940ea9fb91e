"""Baselines that answer requests: plain transcriptions, and what each is good for."""

import functools

import jax
import numpy as np
import pytest
import request_tools as tools
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, eye, kron

import cocoax as cx
from cocoax.learners import AdaptivePacing, AutoPrice, PIDPacing, Resolving, Throttling
from cocoax.testing import check_learner
from cocoax.testing.learners import check_game

KEY = jax.random.key(0)
ROUNDS = 300


@functools.cache
def plays(answers=3, resources=2):
    problem = tools.problem(answers, resources)
    return jax.jit(lambda learner, rounds: cx.play(problem, learner, rounds, key=KEY, keep_decisions=True))


def transcribed(rounds, update, price):
    """Prices before each round, of a rule `update(values so far) -> price`."""
    value, cost, budget = (np.asarray(rounds[name]) for name in ("value", "cost", "budget"))
    values, prices = [], []
    for t in range(len(value)):
        prices.append(price)
        answer = (value[t] - cost[t] @ price).argmax()
        values.append(cost[t, answer] - budget[t])
        price = update(np.array(values), price)
    return np.array(prices)


def pid(values, price):
    sizes = np.cumsum(np.abs(values), 0) / np.arange(1, len(values) + 1)[:, None]
    errors = values / sizes
    change = errors[-1] - (errors[-2] if len(errors) > 1 else 0)
    return 0.7 * np.exp(0.2 * errors[-1] + 0.03 * errors.sum(0) + 0.05 * change)


def adaptive(values, price):
    return np.clip(price + 0.3 * values[-1], 0, 0.5)


RULES = {
    "PID": (PIDPacing(0.7, proportional=0.2, integral=0.03, derivative=0.05), pid, np.full(2, 0.7)),
    "adaptive": (AdaptivePacing(0.3, first=0.4, most=0.5), adaptive, np.full(2, 0.4)),
}


@pytest.mark.parametrize("name", RULES)
def test_prices_are_those_of_a_plain_transcription(name):
    learner, update, first = RULES[name]
    rounds = tools.drawn(ROUNDS, seed=1)
    prices = transcribed(rounds, update, first)
    np.testing.assert_allclose(plays()(learner, rounds).multiplier, prices, rtol=1e-9, atol=1e-12)
    assert prices.std(0).min() > 0.01


def test_throttling_answers_as_many_requests_as_the_budget_pays_for():
    """Of the requests that it answers, all have their best answer; what is spent is the budget, to about 3%."""
    rounds = tools.pacing(2000, 3, share=0.3)
    game = plays(2, 1)(Throttling([1.0, 0.0]), rounds)
    spent = 1 + float(game.violation()[-1, 0]) / float(rounds["budget"].sum())
    assert abs(spent - 1) < 0.03
    bought = np.asarray(game.decisions)[:, 1]
    assert abs(bought.mean() - 0.3) < 0.06 and abs(bought[:1000].mean() - bought[1000:].mean()) < 0.08
    best = cx.hindsight(tools.problem(2, 1), rounds, policy=True)
    lost = 1 - float(game.loss.sum() / best.value)
    assert 0.15 < lost < 0.45  # a coin does not see what a request is worth
    free = plays(2, 1)(Throttling([1.0, 0.0]), {**rounds, "budget": 100 + rounds["budget"]})
    assert np.asarray(free.decisions)[:, 1].all()


def test_after_the_rounds_that_were_planned_it_answers_while_there_is_room():
    problem, rounds = tools.problem(2, 1), tools.pacing(4, 3, share=2.0)
    learner, state = Throttling([1.0, 0.0]), None
    state = learner.init(problem, key=KEY, horizon=2)
    for t in range(4):
        request = jax.tree.map(lambda leaf, t=t: leaf[t], rounds)
        assert learner.decide(problem, state, request)[1] == 1
        state, _ = learner.observe(problem, state, request)


def test_prices_of_a_steep_controller_stay_numbers():
    rounds = {**tools.drawn(ROUNDS, seed=1), "budget": np.full((ROUNDS, 2), -1.0)}
    prices = np.asarray(plays()(PIDPacing(0.7, integral=10.0), rounds).multiplier)
    assert (prices > 0.7).any() and np.isfinite(prices).all()


def program(rounds, count, target):
    """Dual prices of the requests so far, written out in another way."""
    value, cost = np.asarray(rounds["value"])[:count], np.asarray(rounds["cost"])[:count]
    answers, resources = cost.shape[1:]
    limit = count * (target + np.asarray(rounds["budget"])[0])
    each, spend = kron(eye(count), np.ones((1, answers))), csr_matrix(cost.reshape(-1, resources).T)
    found = linprog(-value.ravel(), spend, limit, each, np.ones(count), bounds=(0, 1), method="highs")
    return -found.ineqlin.marginals


def test_resolving_has_the_prices_of_the_program():
    rounds = tools.drawn(ROUNDS, seed=4)
    game = plays()(Resolving(every=50), rounds)
    for count in (100, 200):
        left = -np.asarray(game.violation())[count - 1] / (ROUNDS - count)
        np.testing.assert_allclose(game.multiplier[count], program(rounds, count, left), rtol=1e-6, atol=1e-9)
        assert np.array_equal(game.multiplier[count - 1], game.multiplier[count - 50])


@pytest.mark.slow
def test_autoprice_is_as_good_as_resolving():
    """Mean of ten seeds, lost plus overspent, in per cent of the best policy: about 1 for both."""
    figures = []
    for seed in range(7100, 7110):
        rounds = tools.pacing(1000, seed)
        best = cx.hindsight(tools.problem(2, 1), rounds, policy=True, tol=1e-5)
        both = [plays(2, 1)(learner, rounds) for learner in (AutoPrice(), Resolving(every=10))]
        figures.append([sum(np.maximum(tools.lost_and_overspent(game, best, rounds), 0)) for game in both])
    auto, resolved = np.mean(figures, 0)
    assert resolved < 2 and auto < resolved + 0.3


def test_their_contracts_hold(free_promotion):
    rounds = tools.drawn(20)
    problem = tools.problem(3, 2)
    check_learner(PIDPacing(0.5), key=KEY, problem=problem, rounds=rounds)
    check_game(AdaptivePacing(0.1, first=0.5, most=2.0), problem, rounds, key=KEY)
    check_game(Throttling([1.0, 0.0, 0.0]), problem, rounds, key=KEY, random=True)
    check_game(Resolving(every=5), problem, rounds, key=KEY)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: PIDPacing(0.0), "first must be positive"),
        (lambda: PIDPacing(1.0, integral=-1.0), "integral must lie in"),
        (lambda: AdaptivePacing(-1.0), "step must be positive"),
        (lambda: Resolving(every=0), "every must be"),
        (lambda: Throttling([np.nan, 1.0]), "safe must be finite"),
    ],
)
def test_what_cannot_be_is_refused(make, sentence):
    with pytest.raises(cx.LearnerError, match=f"^{sentence}"):
        make()


def test_what_does_not_fit_the_problem_is_refused():
    orders = cx.problems.fulfilment(KEY, warehouses=2, hubs=2)
    for problem, learner, sentence in (
        (orders.problem, Resolving(), "Resolving writes a program with every answer of a ProbabilitySimplex"),
        (tools.problem(2, 1), Throttling([2.0, 0.0]), "safe must lie in the domain"),
    ):
        with pytest.raises(cx.LearnerError, match=f"^{sentence}"):
            cx.play(problem, learner, tools.pacing(5), key=KEY)
    with pytest.raises(cx.LearnerError, match=r"^Resolving plans for a number of rounds; give horizon="):
        cx.Session(tools.problem(2, 1), Resolving(), key=KEY)
