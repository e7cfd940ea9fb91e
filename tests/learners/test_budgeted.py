"""Budgets that are never exceeded: late feedback, plans, several budgets, and what is lost by it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import request_tools as tools

import cocoax as cx
from cocoax.learners import AutoPrice, Budgeted, DualMirrorDescent, Stay
from cocoax.testing import check_learner

KEY = jax.random.key(0)
SAFE = np.array([1.0, 0.0, 0.0])
ROUNDS, PENDING = 25, 4


def spend(x, r):
    return x @ r["cost"]


def most(x, request):
    return x @ request["cost_at_most"]


@functools.cache
def problem(integral, known):
    domain = cx.domains.ProbabilitySimplex(3)
    names = True if known else ("value", "cost_at_most", "budget")
    return cx.Problem(domain, tools.loss, tools.constraint, constraints=2, request=names, integral=integral)


def expected(request):
    return {"value": request["value"], "cost": 0.5 * request["cost_at_most"], "budget": request["budget"]}


def drawn(rng, rounds=ROUNDS):
    """Requests that say what an answer may cost, of many sizes; budgets for a part of it; a plan, or none."""
    high = rng.uniform(0, 1, (rounds, 3, 2)) * 10.0 ** rng.uniform(-3, 3, (1, 1, 2))
    high[:, 0] = 0
    cost = high * rng.choice([rng.uniform(0, 1), 1.0], (rounds, 1, 1))  # the worst case is met, too
    value = rng.uniform(0, 1, (rounds, 3))
    total = high.sum(0).max(0) * rng.uniform(0.05, 0.7, 2)
    per_round = np.broadcast_to(total / rounds, (rounds, 2))
    plan = np.ones(rounds) if rng.uniform() < 0.5 else np.sort(rng.uniform(0, 1, rounds))
    return {"value": value, "cost": cost, "cost_at_most": high, "budget": per_round}, total, plan


def row(rounds, t, *names):
    return {name: rounds[name][t] for name in names}


def play_late(session, rounds, rng):
    """(decisions in their order, the largest share of its plan that was ever spent): rounds are observed at random."""
    decisions, waiting = {}, []
    for t in range(ROUNDS):
        decisions[t] = session.decide(row(rounds, t, "value", "cost_at_most", "budget"), ticket=str(t))
        waiting.append(t)
        while len(waiting) == PENDING or (waiting and rng.uniform() < 0.4):
            late = waiting.pop(rng.integers(len(waiting)))
            session.observe(row(rounds, late, "cost"), ticket=str(late))
    return np.array([decisions[t] for t in range(ROUNDS)])


def never_exceeds(seeds, integral):
    """Late feedback of real sessions; what was spent is summed exactly, decision by decision."""
    refused, shares = 0, []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rounds, budget, plan = drawn(rng)
        learner = Budgeted(
            DualMirrorDescent(1e-6, predict=expected), spend=spend, most=most, budget=budget, plan=plan, safe=SAFE
        )
        session = cx.Session(problem(integral, False), learner, key=KEY, pending=PENDING)
        decisions = play_late(session, rounds, rng)
        paid = np.einsum("tk,tkm->tm", decisions, rounds["cost"])
        share = np.cumsum(paid, 0) / (budget * np.maximum(plan, 1e-300)[:, None])
        assert (share <= 1 + 1e-12).all(), (seed, share.max())
        refused += (decisions[:, 0] > 0).sum()
        shares.append((paid.sum(0) / (budget * plan[-1])).max())
    assert refused > len(seeds) and np.mean(shares) > 0.5  # they met their budgets
    return max(shares)


@pytest.mark.parametrize("integral", [True, False], ids=["vertices", "mixtures"])
def test_late_rounds_never_exceed_a_budget(integral):
    """`slow` has 1,000 instances."""
    never_exceeds(range(15), integral)


@pytest.mark.slow
@pytest.mark.parametrize("integral", [True, False], ids=["vertices", "mixtures"])
def test_a_thousand_instances_never_exceed_a_budget(integral):
    assert never_exceeds(range(1000), integral) > 0.999


def session(tmp_path=None, **options):
    greedy = DualMirrorDescent(1e-9, predict=expected)
    learner = Budgeted(greedy, spend=spend, most=most, budget=[1.0, 1.0], safe=SAFE)
    path = None if tmp_path is None else tmp_path / "session"
    return cx.Session(problem(True, False), learner, path, key=KEY, pending=8, **options)


def asks(number, cost=0.5):
    """One answer is worth something, and may cost so much."""
    high = np.zeros((3, 2))
    high[1] = cost
    return {"value": np.array([0.0, 1.0, 0.0]), "cost_at_most": high, "budget": np.full(2, 0.1 + number / 1e6)}


def buys(it, number, cost=0.5):
    return bool(it.decide(asks(number, cost), ticket=str(number))[1])


NOTHING = {"cost": np.zeros((3, 2))}


def test_a_ticket_holds_its_worst_case_until_it_is_observed(tmp_path):
    it = session(tmp_path)
    assert [buys(it, number) for number in range(3)] == [True, True, False]
    it.observe(NOTHING, ticket="0")
    it.close()
    with session(tmp_path) as it:  # what waits is known after a restart
        assert [buys(it, number) for number in (3, 4)] == [True, False]
        it.observe(NOTHING, played=SAFE, ticket="1")  # it was not played
        assert buys(it, 5)
        it.skip("5")  # nothing is known of it
        assert not buys(it, 6)
        it.observe(NOTHING, ticket="3")
        assert [buys(it, number) for number in (7, 8)] == [True, False]
    with session(tmp_path) as it:
        assert not buys(it, 9)
        it.observe(NOTHING, ticket="7")
        assert [buys(it, number) for number in (10, 11)] == [True, False]


def test_what_a_ticket_may_bring_in_is_not_spent_before_it_is_observed():
    it = session()
    assert buys(it, 0, cost=-1.0) and not buys(it, 1, cost=1.5)
    it.observe({"cost": np.full((3, 2), -1.0)}, ticket="0")
    assert buys(it, 2, cost=1.5)


def test_an_expired_ticket_counts_as_played(tmp_path):
    with session(tmp_path, expires=2) as it:
        assert [buys(it, number) for number in range(5)] == [True, True, False, False, False]
        assert it.pending == ("3", "4")
    with session(tmp_path, expires=2) as again:
        assert not buys(again, 5)


def test_late_rounds_share_one_budget():
    with pytest.raises(cx.SessionError, match=r"^late rounds share one budget, .*; give copies=1"):
        session(copies=2)
    assert session(copies=1).summary()["pending"] == session().summary()["pending"] == 0


@functools.cache
def plays(integral):
    return jax.jit(
        lambda learner, rounds: cx.play(problem(integral, True), learner, rounds, key=KEY, keep_decisions=True)
    )


def test_whole_units_are_spent_to_the_last():
    """Ten answers cost one unit each; 0.1 is no binary fraction, and ten of them are the whole budget."""
    for unit in (1.0, 0.1):
        cost = np.zeros((20, 3, 2))
        cost[:, 1:] = unit
        value = np.tile([0.0, 1.0, 0.5], (20, 1))
        rounds = {"value": value, "cost": cost, "budget": np.ones((20, 2))}
        total = float(np.nextafter(10 * unit, np.inf)) if unit == 0.1 else 10.0  # ten times float(0.1) is a bit more
        for integral in (True, False):
            free = Budgeted(DualMirrorDescent(1e-9), spend=spend, budget=[total, 100.0], safe=SAFE)
            bought = np.asarray(plays(integral)(free, rounds).decisions)[:, 1]
            assert bought[:10].all() and bought[10:].max() < 1e-6


def test_mixtures_use_up_what_is_left():
    rng = np.random.default_rng(5)
    rounds, budget, _ = drawn(rng, 200)
    rounds = {name: rounds[name] for name in ("value", "cost", "budget")}
    paid = {}
    for integral in (True, False):
        learner = Budgeted(DualMirrorDescent(1e-9), spend=spend, budget=budget, safe=SAFE)
        decisions = np.asarray(plays(integral)(learner, rounds).decisions)
        paid[integral] = (np.einsum("tk,tkm->tm", decisions, rounds["cost"]).sum(0) / budget).max()
    assert 0.9 < paid[True] <= 1 and 1 - 1e-9 < paid[False] <= 1 + 1e-12


def test_rounding_of_what_is_spent_exceeds_no_budget():
    """Amounts have 20 bits, so that what is left is none; the safe answer is played where the next one is more."""

    def rounded(x, r):
        return jax.lax.reduce_precision(x @ r["cost"], 11, 20)

    learner = Budgeted(DualMirrorDescent(1e-9), spend=rounded, budget=[0.9, 1e9], safe=SAFE)

    @jax.jit
    @jax.vmap
    def played(cost):
        rounds = {"value": jnp.tile(jnp.array([0.0, 1.0, 0.5]), (4, 1)), "cost": cost, "budget": jnp.ones((4, 2))}
        return cx.play(problem(False, True), learner, rounds, key=KEY).state

    cost = np.random.default_rng(6).uniform(0.3, 0.9, (50, 4, 3, 2)) * np.array([0.0, 1.0, 1.0])[:, None]
    spent = learner.spending(played(cost)).spent[:, 0]
    assert (spent <= 0.9).all() and spent.max() > 0.89


def test_a_plan_holds_after_every_round_and_little_is_lost():
    """A budget is never exceeded, where AutoPrice alone exceeds it by a little; value within 2% of the best policy."""
    rounds = tools.pacing(1000, 21)
    total = float(np.asarray(rounds["budget"]).sum())
    problem = tools.problem(2, 1)
    best = cx.hindsight(problem, rounds, policy=True)
    plan = np.minimum(1, 0.05 + np.arange(1, 1001) / 1000)
    for curve in (None, plan):
        learner = Budgeted(AutoPrice(), spend=spend, budget=total, safe=[1.0, 0.0], plan=curve)
        game = cx.play(problem, learner, rounds, key=KEY)
        spent = np.cumsum(np.asarray(game.constraint + rounds["budget"])[:, 0])
        assert (spent <= total * (1 if curve is None else plan) + 1e-9).all() and spent[-1] > 0.98 * total
        assert float(game.loss.sum()) <= 0.98 * float(best.value)


def test_value_per_spend_is_an_ordinary_constraint():
    """At least 2 of value for each unit of money, within a budget: `value >= 2 * spend` in total."""

    def both(x, r):
        paid = spend(x, r)[0]
        return {"budget": paid - r["budget"][0], "return": 2 * paid - jnp.vdot(r["value"], x)}

    problem = cx.Problem(
        cx.domains.ProbabilitySimplex(2),
        tools.loss,
        both,
        constraints=("budget", "return"),
        request=True,
        integral=True,
    )
    rounds = tools.pacing(2000, 22, share=0.8)
    best = cx.hindsight(problem, rounds, policy=True)
    game = cx.play(problem, AutoPrice(), rounds, key=KEY)
    paid = float((game.constraint[:, 0] + rounds["budget"][:, 0]).sum())
    assert best.multiplier[1] > 0.1  # it binds
    assert -float(game.loss.sum()) >= 2 * paid * 0.995
    assert game.score(best)[-1] <= 0.02 * abs(best.value)


def test_the_contract_holds(free_promotion):
    learner = Budgeted(DualMirrorDescent(0.1), spend=spend, budget=[1.0, 1.0], safe=SAFE)
    check_learner(learner, key=KEY, problem=tools.problem(3, 2), rounds=tools.drawn(20))


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: Budgeted(5, spend=spend, budget=1.0, safe=SAFE), "Budgeted needs one of cocoax.learners first"),
        (lambda: Budgeted(Stay(), spend=5, budget=1.0, safe=SAFE), "spend must be callable as"),
        (lambda: Budgeted(Stay(), spend=spend, budget=-1.0, safe=SAFE), "budget must be a number >= 0"),
        (lambda: Budgeted(Stay(), spend=spend, budget=1.0, safe=SAFE, plan=[0.5, 0.4]), "plan must be numbers from"),
        (lambda: Budgeted(Stay(), spend=spend, budget=1.0, safe=SAFE, plan=[0.5, 1.4]), "plan must be numbers from"),
    ],
)
def test_what_cannot_be_is_refused(make, sentence):
    with pytest.raises(cx.LearnerError, match=f"^{sentence}"):
        make()


def test_what_does_not_fit_the_problem_is_refused():
    rounds = {name: leaf[:3] for name, leaf in tools.drawn(3).items()}
    blind = cx.Problem(cx.domains.ProbabilitySimplex(3), tools.loss, tools.constraint, constraints=2)
    learner = DualMirrorDescent(0.1, predict=lambda request: {name: leaf[0] for name, leaf in rounds.items()} | request)
    for problem, options, sentence in (
        (blind, {}, "Budgeted must see what an answer may spend before"),
        (tools.problem(3, 2), {"safe": [2.0, 0.0, 0.0]}, "safe must lie in the domain"),
        (tools.problem(3, 2), {"budget": 1.0}, "spend and most must return 1 amounts"),
        (tools.problem(3, 2, request=("value",)), {}, r"spend needs more than the request shows .* give most="),
    ):
        one = Budgeted(learner, **{"spend": spend, "budget": [1.0, 1.0], "safe": SAFE, **options})
        with pytest.raises(cx.LearnerError, match=f"^{sentence}"):
            cx.play(problem, one, rounds, key=KEY)


@pytest.mark.parametrize("wide", [False, True])
def test_a_budget_that_has_no_short_number_is_not_rounded_up(wide):
    """40 answers would spend 16,777,220; in float32, the budget 16,777,219 is that, too."""
    costs = np.full(45, 419_430.5, np.float32)
    with jax.enable_x64(False):
        domain = cx.domains.ProbabilitySimplex(2)
    with jax.enable_x64(wide):
        known = cx.Problem(domain, lambda x, r: -x[1], request=True, integral=True)
        learner = Budgeted(AutoPrice(), spend=lambda x, r: r * x[1], budget=16_777_219, safe=[1.0, 0.0])
        game = cx.play(known, learner, jnp.asarray(costs), key=jax.random.key(0))
        assert -float(game.loss.sum()) == 39
