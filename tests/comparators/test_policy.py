"""The best policy in hindsight: against a generic solver, and its certificate."""

import functools

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, eye, kron

import cocoax as cx
from cocoax.comparators import clock, policy
from cocoax.domains import Box, ProbabilitySimplex
from cocoax.problem.linearity import is_linear

ANSWERS = 5


def loss(x, r):
    return -jnp.vdot(r["value"], x)


def constraint(x, r):
    return x @ r["cost"] - r["budget"]


@functools.cache
def problem(resources, answers=ANSWERS):
    return cx.Problem(ProbabilitySimplex(answers), loss, constraint, constraints=resources, request=True)


def drawn(count, resources, seed=0, answers=ANSWERS, budget=0.2):
    rng = np.random.default_rng(seed)
    value, cost = rng.uniform(0, 1, (count, answers)), rng.uniform(0, 1, (count, answers, resources))
    value[:, 0], cost[:, 0] = 0, 0
    budgets = rng.uniform(0.8, 1.2, resources) * budget
    return {"value": value, "cost": cost, "budget": np.broadcast_to(budgets, (count, resources)).copy()}


def by_highs(rounds):
    """Least loss, and the prices of the budgets."""
    value, cost, budget = rounds["value"], rounds["cost"], rounds["budget"]
    count, answers = value.shape
    spend, one_each = csr_matrix(cost.reshape(count * answers, -1).T), kron(eye(count), np.ones((1, answers)))
    return linprog(-value.ravel(), spend, budget.sum(0), one_each, np.ones(count), bounds=(0, 1), method="highs")


SIZES = [(2000, 1), (2000, 2), (500, 10)]
LARGE = [(2000, 10), (2000, 20)]


@pytest.mark.parametrize("count, resources", [*SIZES, *(pytest.param(*size, marks=pytest.mark.slow) for size in LARGE)])
def test_the_best_policy_is_that_of_highs(count, resources):
    rounds = drawn(count, resources, seed=count + resources)
    best, exact = cx.hindsight(problem(resources), rounds, policy=True), by_highs(rounds)
    assert 0 <= best.gap <= 1e-6 * abs(best.value)
    assert best.lower_bound - 1e-7 <= exact.fun <= best.value + 1e-7
    size = np.abs(rounds["cost"]).sum(axis=(0, 1))
    assert (best.constraint.sum(0) <= 1e-9 * size).all() and best.x.shape == (count, ANSWERS)
    np.testing.assert_allclose(best.multiplier, -exact.ineqlin.marginals, rtol=0.05, atol=0.01)
    assert best.price.shape == (resources,) and (best.price >= 2 * best.multiplier).all()


def test_no_policy_within_the_budgets_is_better_than_the_bound():
    rounds = drawn(200, 2, seed=3)
    best, rng = cx.hindsight(problem(2), rounds, policy=True), np.random.default_rng(0)
    safe = np.eye(ANSWERS)[0]
    for scale in rng.uniform(0, 5, (200, 2)):  # prices of their own, made feasible by the safe answer
        chosen = np.eye(ANSWERS)[(rounds["value"] - rounds["cost"] @ scale).argmax(1)]
        spent = np.einsum("tk,tkm->m", chosen, rounds["cost"])
        part = min(1.0, (rounds["budget"].sum(0) / spent).min())
        path = part * chosen + (1 - part) * safe
        assert -np.sum(rounds["value"] * path) >= best.lower_bound


def test_prices_of_zero_where_budgets_do_not_bind():
    rounds = drawn(100, 2, seed=4, budget=5.0)
    best = cx.hindsight(problem(2), rounds, policy=True)
    assert best.gap <= 100 * 20 * 2.0**-52  # what rounding may add to the bounds of 100 rounds, in numbers of 1
    assert (best.multiplier == 0).all()
    np.testing.assert_allclose(best.value, -rounds["value"].max(1).sum(), rtol=1e-12)


def test_infeasible_budgets_are_refused_with_a_proof():
    rounds = drawn(100, 2, seed=5)
    rounds["cost"] = rounds["cost"] + np.array([0.1, 0.5])  # there is no free answer any more
    with pytest.raises(
        cx.InfeasibleError, match=r"^no policy meets the constraints: the mean of .* is at least"
    ) as caught:
        cx.hindsight(problem(2), rounds, policy=True)
    multiplier, bound = caught.value.multiplier, caught.value.bound
    least = (rounds["cost"] @ multiplier).min(1).mean() - rounds["budget"].mean(0) @ multiplier
    assert bound > 0 and (multiplier >= 0).all() and least >= bound - 1e-12
    rounds["budget"] = rounds["budget"] * 0 + np.array(
        [0.6, 0.50]
    )  # the dearer one only just: each free answer, always
    assert cx.hindsight(problem(2), rounds, policy=True).gap < 1e-4
    rounds["budget"] *= np.array([1.0, 1 - 1e-7])  # too little, by less than `tol`: exceeded by so much, not by 40%
    nearly = cx.hindsight(problem(2), rounds, policy=True)
    assert nearly.gap < 1e-4 and (nearly.constraint.mean(0) <= [0.0, 1e-6]).all()


def test_curved_losses_are_certified_too():
    """Frank-Wolfe in every round, against a cone program."""
    rng = np.random.default_rng(6)
    rounds = {"aim": rng.uniform(0, 1, (30, 3)), "cost": rng.uniform(0, 1, (30, 3))}
    curved = cx.Problem(
        Box([0.0] * 3, [1.0] * 3),
        lambda x, r: 0.5 * jnp.sum((x - r["aim"]) ** 2),
        lambda x, r: jnp.sum(r["cost"] * x**2) - 0.2,
        request=True,
    )
    best = cx.hindsight(curved, rounds, policy=True)
    x = cp.Variable((30, 3))
    budget = cp.sum(cp.multiply(rounds["cost"], cp.square(x))) <= 30 * 0.2
    exact = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - rounds["aim"])), [budget, x >= 0, x <= 1]).solve()
    assert best.lower_bound <= exact + 1e-6 and best.value >= exact - 1e-6
    assert best.gap <= 1e-4 * best.value and best.constraint.sum() <= 1e-9


def test_regret_and_score_against_the_best_policy():
    rounds, resources = drawn(60, 2, seed=7), problem(2)
    best = cx.hindsight(resources, rounds, policy=True)
    game = cx.play(resources, cx.learners.Stay(), jax.tree.map(jnp.asarray, rounds), key=jax.random.key(0))
    np.testing.assert_allclose(game.regret(best)[-1], game.loss.sum() - best.value, rtol=1e-12)
    charge = best.price @ np.maximum(game.violation()[-1], 0)
    np.testing.assert_allclose(game.score(best)[-1], game.regret(best)[-1] + charge, rtol=1e-12)


def test_what_does_not_belong_to_a_policy_is_refused():
    rounds = drawn(10, 1)
    with pytest.raises(cx.ProblemError, match=r"^a policy meets the mean of what happens; leave out"):
        cx.hindsight(problem(1), rounds, policy=True, benchmark="every_round")
    moving = cx.Problem(ProbabilitySimplex(ANSWERS), lambda x, r, previous: jnp.sum((x - previous) ** 2), request=True)
    with pytest.raises(cx.ProblemError, match=r"^a policy with movement is no sum over rounds"):
        cx.hindsight(moving, rounds, policy=True)


LINEAR = {
    "vdot": (lambda x, r: jnp.vdot(r, x), True),
    "einsum": (lambda x, r: jnp.einsum("i,i->", r, x) / 3 - 1, True),
    "choice by the round": (lambda x, r: jnp.where(r[0] > 0, x[0], x[1]), True),
    "cumsum": (lambda x, r: jnp.cumsum(x)[1] + jnp.sort(r) @ x, True),
    "absolute": (lambda x, r: jnp.abs(x).sum(), False),
    "maximum": (lambda x, r: jnp.maximum(x[0], x[1]), False),
    "relu": (lambda x, r: jax.nn.relu(x - r).sum(), False),
    "product": (lambda x, r: x[0] * x[1], False),
    "choice by the decision": (lambda x, r: jnp.where(x[0] > 0.5, x[0], x[1]), False),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_functions_are_recognised(name):
    function, expected = LINEAR[name]
    assert is_linear(cx.Problem(ProbabilitySimplex(3), function), jnp.ones(3)) is expected
    assert is_linear(cx.Problem(ProbabilitySimplex(3), jnp.vdot, function), jnp.ones(3)) is expected


def test_a_policy_is_returned_when_time_is_over():
    """With ten budgets it takes many columns; a feasible policy and its true bound are there after few."""
    rounds = drawn(500, 10, seed=510)
    with pytest.warns(UserWarning, match="stopped before its certificate closed"):
        early = cx.hindsight(problem(10), rounds, policy=True, seconds=1e-9)
    exact = by_highs(rounds)
    assert early.lower_bound - 1e-7 <= exact.fun <= early.value + 1e-7
    assert early.gap > 1e-6 * abs(early.value)
    assert (early.constraint.sum(0) <= 1e-9 * np.abs(rounds["cost"]).sum(axis=(0, 1))).all()


def test_an_interrupt_returns_the_policy_so_far(monkeypatch):
    rounds, answers, asked = drawn(500, 10, seed=510), policy._answers, []

    def interrupted(*given):
        asked.append(given)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return answers(*given)

    monkeypatch.setattr(policy, "_answers", interrupted)
    with pytest.warns(UserWarning, match="stopped before its certificate closed"):
        early = cx.hindsight(problem(10), rounds, policy=True)
    assert early.lower_bound <= by_highs(rounds).fun + 1e-7 and early.constraint.sum(0).max() <= 1e-9


def test_progress_is_said_and_earlier_prices_are_a_start(monkeypatch, capsys):
    monkeypatch.setattr(clock, "_SILENT", 0.0)
    monkeypatch.setattr(clock, "_LOG", 0.0)
    answers, asked = policy._answers, []
    monkeypatch.setattr(policy, "_answers", lambda *given: asked.append(given) or answers(*given))
    rounds = drawn(2000, 2, seed=2002)
    best, calls = cx.hindsight(problem(2), rounds, policy=True), len(asked)
    assert "hindsight, 0 s: value -" in capsys.readouterr().err
    again = cx.hindsight(problem(2), rounds, policy=True, start=best, progress=False)
    assert len(asked) - calls < calls and again.gap <= 1e-6 * abs(again.value)
    assert capsys.readouterr().err == ""
    with pytest.raises(cx.ProblemError, match="a policy begins with prices: give start what hindsight returned"):
        cx.hindsight(problem(2), rounds, policy=True, start=np.full(ANSWERS, 0.2))
