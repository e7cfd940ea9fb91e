"""Bandit feedback: only what was played is used, predictions are ridge regressions, and prompts are routed well."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import problems
from cocoax.learners import EXP3, BanditPrice
from cocoax.problems.language_models import SOURCES, _recorded, source_features
from cocoax.testing import check_learner

KEY = jax.random.key(0)
PROMPTS = 1824


def features(request):
    return request["features"]


def values(x, r):
    return -jnp.vdot(r["value"], x)


def paid(x, r):
    return jnp.vdot(r["cost"], x) - 0.3


@functools.cache
def problem(integral=True):
    domain = cx.domains.ProbabilitySimplex(3)
    return cx.Problem(domain, values, paid, request=("features",), integral=integral)


def drawn(count, seed=0):
    """Values and costs that are linear in two features, with noise."""
    rng = np.random.default_rng(seed)
    phi, noise = rng.normal(size=(count, 2)), 0.1 * rng.normal(size=(2, count, 3))
    value = 0.5 + phi @ rng.normal(size=(2, 3)) / 2 + noise[0]
    cost = np.abs([0.05, 0.4, 0.6] + noise[1])
    return jax.tree.map(jnp.asarray, {"features": phi, "value": value, "cost": cost})


LEARNER = BanditPrice(features, 2, sample=64)


@functools.cache
def plays():
    here = problem()
    return jax.jit(lambda learner, rounds: cx.play(here, learner, rounds, key=KEY, keep_decisions=True))


def test_predictions_are_ridge_regressions_of_what_was_played():
    rounds = drawn(200)
    game = plays()(LEARNER, rounds)
    model, chosen = game.state.prices.model, np.asarray(game.decisions).argmax(1)
    phi = np.column_stack([np.ones(200), rounds["features"]])
    came_to = np.column_stack([game.loss, game.constraint])
    held = 3 * np.diag([1e-2, 1, 1])
    for answer in range(3):
        mine = chosen == answer
        exact = np.linalg.solve(phi[mine].T @ phi[mine] + held, phi[mine].T @ came_to[mine])
        np.testing.assert_allclose(model.inverse[answer] @ model.sums[answer], exact, rtol=1e-8, atol=1e-10)
        assert int(model.seen[answer]) == mine.sum() >= 1


def test_what_was_not_played_is_not_seen():
    """Other answers come to something else: no bit changes. The same rounds with only what was played to show."""
    rounds = drawn(120, seed=1)
    game = plays()(LEARNER, rounds)
    seen = np.asarray(game.decisions) > 0
    hidden = {name: jnp.where(seen, rounds[name], 77.0) for name in ("value", "cost")}
    again = plays()(LEARNER, rounds | hidden)
    np.testing.assert_array_equal(game.decisions, again.decisions)
    np.testing.assert_array_equal(game.multiplier, again.multiplier)

    def as_told(field, offset=0.0):
        return lambda x, r: r[field] - offset + 0 * x.sum()

    told = cx.Problem(problem().domain, as_told("loss"), as_told("paid", 0.3), request=("features",), integral=True)
    session = cx.Session(told, LEARNER, key=KEY, horizon=120)
    for t in range(40):
        decision = session.decide({"features": rounds["features"][t]})
        np.testing.assert_array_equal(decision, game.decisions[t])
        session.observe({"loss": game.loss[t], "paid": game.constraint[t, 0] + 0.3})


def test_scaling_loss_and_constraint_by_powers_of_two_changes_no_decision(free_promotion):
    rounds = drawn(150, seed=2)
    scaled = cx.Problem(
        problem().domain,
        lambda x, r: 2.0**8 * values(x, r),
        lambda x, r: 2.0**-9 * paid(x, r),
        request=("features",),
        integral=True,
    )
    game = cx.play(scaled, LEARNER, rounds, key=KEY, keep_decisions=True)
    np.testing.assert_array_equal(game.decisions, plays()(LEARNER, rounds).decisions)


@functools.cache
def means_by_source():
    columns = _recorded()
    source = columns["new_source"]
    return {
        name: np.array([columns[f"new_{name}"][source == one].mean(0) for one in np.unique(source)])[
            np.searchsorted(np.unique(source), np.arange(SOURCES)).clip(max=len(np.unique(source)) - 1)
        ]
        for name in ("quality", "cost")
    }


def routed(budget, seeds):
    """Per cent of the best policy by source: lost and overspent by the learner, and lost by the best fixed mix."""
    instance, known = (problems.llm_routing(budget=budget, known=what) for what in ("source", True))
    learner = BanditPrice(source_features, SOURCES)
    play = jax.jit(lambda rounds: cx.play(instance.problem, learner, rounds, key=KEY))
    lost = []
    for seed in seeds:
        rounds = instance.rounds(PROMPTS, jax.random.key(seed))
        source, quality = np.asarray(rounds["source"]), np.asarray(rounds["quality"])
        means = {name: jnp.asarray(table[source]) for name, table in means_by_source().items()}
        policy = cx.hindsight(known.problem, means | {"budget": rounds["budget"]}, policy=True).x
        best, game = (policy * quality).sum(), play(rounds)
        fixed = cx.hindsight(known.problem, rounds, policy=False)
        over = max(float(game.violation()[-1, 0]) / (budget * PROMPTS), 0)
        lost.append([1 + float(game.loss.sum()) / best + over, 1 + float(fixed.value) / best])
    return 100 * np.mean(lost, 0)


@pytest.mark.parametrize("budget, most", [(3e-4, 3.0), (2e-3, 1.5)])
def test_prompts_are_routed_with_bandit_feedback(budget, most):
    """Three fresh orders; `slow` has ten."""
    lost, by_fixed = routed(budget, range(100, 103))
    assert lost < most
    if budget < 1e-3:
        assert lost < by_fixed  # 4.3% at the tight budget


@pytest.mark.slow
@pytest.mark.parametrize("budget", [3e-4, 2e-3])
def test_ten_orders_of_prompts(budget):
    lost, by_fixed = routed(budget, range(200, 210))
    assert lost < 3 and lost < by_fixed


def test_the_contract_holds(free_promotion):
    check_learner(BanditPrice(features, 2, sample=8), key=KEY, problem=problem(), rounds=drawn(20))


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: BanditPrice(5, 2), r"features must be callable as features\(request\)"),
        (lambda: BanditPrice(features, -1), "dimension must be"),
        (lambda: BanditPrice(features, 2, explore=-1.0), "explore must lie in"),
        (lambda: BanditPrice(features, 2, ridge=0.0), "ridge must be positive"),
        (lambda: plays()(BanditPrice(features, 3), drawn(5)), r"features must return 3 numbers, got shape \(2,\)"),
    ],
)
def test_what_cannot_be_is_refused(make, sentence):
    with pytest.raises(cx.LearnerError, match=f"^{sentence}"):
        make()


def test_other_domains_are_refused():
    box = cx.Problem(cx.domains.Box(np.zeros(3), np.ones(3)), values, paid, request=("features",))
    with pytest.raises(cx.LearnerError, match=r"^BanditPrice predicts each answer of a ProbabilitySimplex"):
        cx.play(box, LEARNER, drawn(5), key=KEY)
    with pytest.raises(cx.LearnerError, match=r"^EXP3 plays on a ProbabilitySimplex only"):
        cx.play(cx.Problem(box.domain, values, paid), EXP3(), drawn(5), key=KEY)
    with pytest.raises(cx.ProblemError, match=r"^known must be True, False or 'source'"):
        problems.llm_routing(known="all")


def test_exp3_finds_the_best_mix_of_two_answers():
    """Means over four seeds, T = 2000 and 16,000: the score grows as the root of T, and is below that of a coin."""
    means = jnp.array([[0.1, 0.3, 0.5, 0.45, 0.9], [0.9, 0.7, 0.5, 0.3, 0.1]])
    mixed = cx.Problem(
        cx.domains.ProbabilitySimplex(5), lambda x, r: r[0] @ x, lambda x, r: r[1] @ x - 0.5, integral=True
    )
    play = jax.jit(jax.vmap(lambda rounds, key: cx.play(mixed, EXP3(), rounds, key=key)))
    scores = {}
    for count in (2000, 16_000):
        rounds = jnp.broadcast_to(means, (4, count, 2, 5)) + 0.2 * jax.random.normal(
            jax.random.key(1), (4, count, 2, 5)
        )
        game = play(rounds, jax.random.split(KEY, 4))
        score = [
            float(game.loss[i].sum())
            - float(cx.hindsight(mixed, rounds[i]).value)
            + 1.2 * max(float(game.constraint[i].sum()), 0)
            for i in range(4)
        ]
        scores[count] = np.mean(score)
        coin = float((rounds.mean((0, 1, 3))[0] - (means[0] @ jnp.array([1 / 3, 0, 0, 2 / 3, 0]))) * count)
        assert scores[count] < 0.75 * coin
    assert scores[16_000] < 8**0.75 * scores[2000]
    assert float(game.average[:, 0].mean()) > 0.2 and float(game.average[:, 3].mean()) > 0.45
