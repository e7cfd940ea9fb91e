"""Hints: regret is below the bound with them and without, whatever they are; good ones help, bad ones hardly hurt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import theory
from cocoax.learners import Hinted
from cocoax.testing import check_learner

KEY, ROUNDS = jax.random.key(0), 400
SETS = {"ball": cx.domains.L2Ball(3, 1.0), "simplex": cx.domains.ProbabilitySimplex(3)}
LEARNER = Hinted(lambda request: {"cost": request["forecast"]})


def problem(domain):
    return cx.Problem(domain, lambda x, r: jnp.vdot(r["cost"], x), request="forecast")


def costs(kind, seed=0):
    rng, t = np.random.default_rng(seed), np.arange(ROUNDS)[:, None]
    if kind == "noise":
        return rng.normal(size=(ROUNDS, 3)) + np.array([0.2, 0.0, -0.1])
    return np.where(t % 2 == 0, 1.0, -1.0) * np.array([1.0, -1.0, 0.5]) + (t > 200) * np.array([0.0, 1.0, 0.0])


HINTS = {
    "perfect": lambda cost, rng: cost,
    "good": lambda cost, rng: cost + 0.1 * rng.normal(size=cost.shape),
    "useless": lambda cost, rng: rng.normal(size=cost.shape),
    "wrong": lambda cost, rng: -cost,
    "none": lambda cost, rng: 0 * cost,
    "good, then wrong": lambda cost, rng: np.where(np.arange(ROUNDS)[:, None] < 150, cost, -3 * cost),
}


@jax.jit
def plays(problem, rounds):
    """Of every round: the loss, the share of the bet, and its scale after the round."""

    def one(state, round):
        new, outcome = LEARNER.observe(problem, state, round)
        return new, (outcome.loss, state.bet.share, new.bet.scale)

    return jax.lax.scan(one, LEARNER.init(problem, key=KEY), rounds)[1]


def played(name, cost, hint):
    """The same, in NumPy."""
    rounds = {"cost": jnp.asarray(cost), "forecast": jnp.asarray(hint)}
    return [np.asarray(column) for column in plays(problem(SETS[name]), rounds)]


def regrets(domain, cost, loss):
    """After every round, against the best point so far."""
    totals = jnp.asarray(np.cumsum(cost, 0))
    return np.cumsum(loss) - (totals * jax.vmap(lambda total: domain.lmo(total).dense())(totals)).sum(1)


def lengths(domain, vectors):
    return np.linalg.norm(np.asarray(jax.vmap(domain.tangent)(jnp.asarray(vectors))), axis=1)


def unhinted(domain, cost):
    """Losses of the leader that sees no hints, in NumPy."""
    start = np.asarray(domain.start())
    tangent = np.asarray(jax.vmap(domain.tangent)(jnp.asarray(cost)))
    total, squares = np.cumsum(tangent, 0), np.cumsum(np.square(tangent).sum(1))
    aims = start - float(domain.diameter(2)) * total / np.sqrt(squares)[:, None]
    points = np.concatenate([start[None], np.asarray(jax.vmap(domain.project)(jnp.asarray(aims)))[:-1]])
    return (points * cost).sum(1)


@pytest.mark.parametrize("kind", ["noise", "flips"])
@pytest.mark.parametrize("name", SETS)
def test_regret_is_below_the_bound_of_a_learner_without_hints(name, kind):
    """With |z| <= R |cost|, for gradients in the affine hull."""
    domain, cost = SETS[name], costs(kind)
    sizes = float(domain.diameter(2)) * lengths(domain, cost)
    last = {}
    for label, make in HINTS.items():
        found = regrets(domain, cost, played(name, cost, make(cost, np.random.default_rng(1)))[0])
        squares, span = np.cumsum(sizes**2), np.maximum.accumulate(sizes)
        bound = theory.regret.optimistic(diameter=1.0, squares=squares) + theory.regret.favourite(span=span)
        assert np.all(found <= bound), label
        last[label] = found[-1]
    assert last["perfect"] < last["good"] < last["none"]
    assert last["good"] < 0  # better than any fixed point, which knows no forecasts


@pytest.mark.parametrize("kind", ["noise", "flips"])
@pytest.mark.parametrize("name", SETS)
def test_the_loss_is_that_of_believing_hints_and_what_mixing_and_betting_cost(name, kind):
    """z is what the bet gained over its share; the variance of two costs is at most a quarter of their difference."""
    domain, cost = SETS[name], costs(kind)
    sizes, alone = float(domain.diameter(2)) * lengths(domain, cost), unhinted(domain, cost)
    mixing = theory.regret.mixture(count=2, variance=np.square(sizes).sum() / 4, span=sizes.max())
    bounds = {}
    for label, make in HINTS.items():
        hint = make(cost, np.random.default_rng(1))
        loss, shares, scales = played(name, cost, hint)
        gains = (alone - loss) / shares
        betting = sum(
            theory.regret.challenger(scale=scale, squares=np.square(gains[scales == scale]).sum())
            for scale in np.unique(scales[scales > 0])
        )
        believing = (jax.vmap(lambda m: domain.lmo(domain.tangent(m)).dense())(jnp.asarray(hint)) * cost).sum()
        bounds[label] = float(believing) + mixing + betting
        assert loss.sum() <= bounds[label], label
    assert bounds["perfect"] < alone.sum()  # where hints are right, the bound says more than the one without


@pytest.mark.parametrize("name", SETS)
def test_no_hint_costs_more_than_a_constant_compared_with_none(name):
    """Losses are linear, so that the one without hints sees the same gradients: 3 times the largest difference."""
    domain, cost = SETS[name], costs("noise")
    span = float(domain.diameter(2)) * lengths(domain, cost).max()
    alone = np.cumsum(unhinted(domain, cost))
    for label, make in HINTS.items():
        worse = np.cumsum(played(name, cost, make(cost, np.random.default_rng(1)))[0]) - alone
        assert worse.max() <= theory.regret.favourite(span=span), label
        assert worse.max() < span, label  # measured: far below


def test_units_far_from_1_do_not_matter_in_float32():
    """Squared gradients leave float32's range. Without them each decision is the leader's, or the start."""
    with jax.enable_x64(False):
        asked = problem(cx.domains.L2Ball(3, 1.0))
        cost = costs("noise").astype(np.float32)[:50]

        def decided(power):
            rounds = {"cost": jnp.asarray(2.0**power * cost), "forecast": jnp.asarray(2.0**power * (cost + 0.5))}
            return cx.play(asked, LEARNER, rounds, key=KEY, keep_decisions=True).decisions

        usual, others = decided(0), [decided(-90), decided(90)]
    np.testing.assert_allclose(others, np.stack([usual] * 2), atol=1e-4)


@pytest.mark.slow
def test_it_keeps_the_contract():
    small = cx.testing.problems.simplex(key=KEY, rounds=20)
    asked = cx.Problem(
        small.problem.domain, small.problem.loss, small.problem.constraint, request=("target", "cost", "use", "budget")
    )
    check_learner(Hinted(), key=KEY, problem=asked, rounds=small.rounds, random=False)


def test_a_budget_is_kept():
    limited = cx.Problem(
        SETS["simplex"], lambda x, r: jnp.vdot(r["cost"], x), lambda x, r: x[2] - 0.3, request="forecast"
    )
    cost = costs("noise") + np.array([0.0, 0.0, -1.0])
    rounds = {"cost": jnp.asarray(cost), "forecast": jnp.asarray(cost + 0.1)}
    game = cx.play(limited, LEARNER, rounds, key=KEY)
    assert game.constraint.mean() <= 0.03


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: cx.Problem(SETS["ball"], lambda x, r: jnp.vdot(r["cost"], x)), "decides after a forecast"),
        (
            lambda: cx.Problem(SETS["ball"], lambda x, r, previous: jnp.vdot(r["cost"], x - previous), request=True),
            "does not count movement",
        ),
    ],
)
def test_other_problems_are_refused(make, sentence):
    with pytest.raises(cx.errors.LearnerError, match=sentence):
        cx.play(make(), LEARNER, {"cost": jnp.ones((3, 3))}, key=KEY)


def test_without_predict_a_forecast_must_show_what_the_loss_reads():
    problem = cx.Problem(SETS["ball"], lambda x, r: jnp.vdot(r["cost"], x), request="forecast")
    with pytest.raises(cx.errors.LearnerError, match=r"more than the request shows .*; give predict="):
        cx.play(problem, cx.learners.Hinted(), {"cost": jnp.ones((3, 3)), "forecast": jnp.ones((3, 3))}, key=KEY)
