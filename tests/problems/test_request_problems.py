"""Ready problems with requests are what they say, and AutoPrice is near the best policy on all of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, eye, kron

import cocoax as cx
from cocoax import problems
from cocoax.learners import AutoPrice
from cocoax.problems.language_models import _recorded, expected_by_source

KEY = jax.random.key(11)
ROUNDS = 600
READY = {
    "offers": lambda: problems.offers(share=0.3),
    "offers, heavy tails": lambda: problems.offers(tails="heavy"),
    "ten resources": lambda: problems.resources(KEY, answers=20, constraints=10),
    "fulfilment": lambda: problems.fulfilment(KEY),
    "prompts": lambda: problems.llm_routing(budget=2e-3),
}


@pytest.mark.parametrize("name", READY)
def test_autoprice_is_near_the_certified_best_policy(name):
    """A game of 600 rounds: the score, which charges overspending twice its worth or more, in parts of the value."""
    instance = READY[name]()
    rounds = instance.rounds(ROUNDS, KEY)
    best = instance.comparator(rounds, tol=1e-5)
    assert 0 <= best.gap <= 1e-4 * abs(best.value)
    game = cx.play(instance.problem, AutoPrice(), rounds, key=KEY, keep_decisions=True)
    assert game.score(best)[-1] <= 0.06 * abs(best.value)  # 0.1% to 2.3% measured
    decisions = np.asarray(game.decisions)
    assert np.isin(decisions, [0.0, 1.0]).all() and instance.problem.integral


def test_orders_are_shipped_as_highs_would():
    """Every path of every order as a variable of a linear program."""
    instance, count = problems.fulfilment(KEY, warehouses=3, hubs=2), 150
    rounds = instance.rounds(count, KEY)
    domain, edges = instance.problem.domain, 3 + 6 + 2 + 2
    paths = np.zeros((7, edges))
    for number, (w, h) in enumerate([(w, h) for w in range(3) for h in range(2)]):
        paths[number, [w, 3 + 2 * w + h, 9 + h]] = 1
    paths[6, [11, 12]] = 1
    assert bool(jax.vmap(domain.contains)(jnp.asarray(paths)).all())
    cost = np.asarray(rounds["cost"]) @ paths.T
    use = np.asarray(rounds["size"])[:, None, None] * paths[None, :, :3]
    spend, one_each = csr_matrix(use.reshape(count * 7, 3).T), kron(eye(count), np.ones((1, 7)))
    stock = np.asarray(rounds["stock"]).sum(0)
    exact = linprog(cost.ravel(), spend, stock, one_each, np.ones(count), bounds=(0, 1), method="highs").fun
    best = instance.comparator(rounds)
    assert best.lower_bound - 1e-6 <= exact <= best.value + 1e-6 and best.gap <= 1e-5 * abs(best.value)


def test_offers_cost_what_the_budget_counts_on():
    rounds = problems.offers(share=1.0).rounds(20_000, KEY)
    cost = np.asarray(rounds["cost"])[:, 1, 0]
    assert abs(cost.mean() / float(rounds["budget"][0, 0]) - 1) < 5 * cost.std() / cost.mean() / 20_000**0.5
    value = np.asarray(rounds["value"])[:, 1]
    assert (cost <= value).all() and (cost >= 0.3 * value).all()
    double = np.asarray(problems.offers(doubles_at=10).rounds(20, KEY)["cost"])[:, 1, 0]
    plain = np.asarray(problems.offers().rounds(20, KEY)["cost"])[:, 1, 0]
    np.testing.assert_allclose(double / plain, [1.0] * 10 + [2.0] * 10, rtol=1e-6)
    day = np.asarray(problems.offers(day=20).rounds(20, KEY)["value"])[:, 1]
    plain = np.asarray(problems.offers().rounds(20, KEY)["value"])[:, 1]
    np.testing.assert_allclose(day / plain, 1 + 0.8 * np.sin(np.arange(20) * 2 * np.pi / 20), rtol=1e-6)


def test_the_recorded_prompts_are_those_of_the_source():
    columns = _recorded()
    assert columns["new_quality"].shape == (1824, 3) and columns["past_cost"].shape == (1785, 3)
    assert columns["models"][0] == "google/gemini-2.5-pro" and len(columns["sources"]) == 31
    np.testing.assert_allclose(columns["past_cost"][0], [0.03494625, 3.73e-05, 0.0006155], rtol=1e-12)
    np.testing.assert_allclose(columns["past_quality"][0], [0.96, 0.4, 1.0], rtol=1e-12)
    every = problems.llm_routing().rounds(1824, KEY)["quality"]
    np.testing.assert_allclose(np.sort(every, axis=0), np.sort(columns["new_quality"], axis=0), rtol=1e-12)


def test_prompts_may_be_routed_by_what_is_known_of_their_source():
    """Mean of five orders: within 1% of the best policy on the same predictions, at prices of hindsight."""
    instance, known = problems.llm_routing(budget=3e-4, known=False), problems.llm_routing().problem
    learner, worse = AutoPrice(predict=expected_by_source), []
    for seed in range(5):
        rounds = instance.rounds(1824, jax.random.key(seed))
        game = cx.play(instance.problem, learner, rounds, key=KEY)
        path = cx.hindsight(known, expected_by_source(rounds), policy=True).x
        lost = 1 + float(game.loss.sum()) / np.sum(np.asarray(rounds["quality"]) * path)
        worse.append(lost + max(float(game.violation()[-1, 0]) / (1824 * 3e-4), 0))
    assert np.mean(worse) <= 0.01
    with pytest.raises(cx.LearnerError, match=r"give predict="):
        cx.play(instance.problem, AutoPrice(), rounds, key=KEY)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: problems.offers(share=0), "offers needs share > 0"),
        (lambda: problems.offers(day=-1), "day must be a positive number of rounds"),
        (lambda: problems.resources(KEY, answers=1), "resources needs answers >= 2"),
        (lambda: problems.fulfilment(KEY, stock=0), "fulfilment needs warehouses >= 1"),
        (lambda: problems.llm_routing(budget=-1.0), "budget must be positive"),
    ],
)
def test_what_cannot_be_is_refused(make, sentence):
    with pytest.raises(cx.ProblemError, match=f"^{sentence}"):
        make()
