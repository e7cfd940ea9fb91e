"""AutoGrowth: a slow target traded within bands; limits that are not overspent change nothing, others are kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import theory
from cocoax.learners import AutoGrowth
from cocoax.problems.real import portfolio
from cocoax.testing import check_learner, problems

KEY, DAYS, STOCKS = jax.random.key(0), 1500, 8
LEARNER = AutoGrowth()
BANDS = np.array([float(band) for band in LEARNER.bands])


def market(bounce, seed=0):
    """Stocks with one common part, each as wild as its number; prices bounce by so much around what they are worth."""
    rng = np.random.default_rng(seed)
    wild = np.linspace(0.5, 1.5, STOCKS)
    worth = 3e-4 + 0.008 * rng.normal(size=(DAYS, 1)) * wild + 0.012 * rng.normal(size=(DAYS, STOCKS)) * wild
    return np.exp(worth + np.diff(bounce * rng.normal(size=(DAYS + 1, STOCKS)), axis=0))


def played(problem, growth, learner=LEARNER):
    before = np.concatenate([np.ones_like(growth[:1]), growth[:-1]])
    rounds = {"growth": jnp.asarray(growth), "before": jnp.asarray(before)}
    return cx.play(problem, learner, rounds, key=KEY, keep_decisions=True)


def replay(growth, fee, step=0.05):
    """The paths of all bands and their losses, in NumPy."""
    target, paths, losses = np.full(STOCKS, 1 / STOCKS), np.full((len(BANDS), STOCKS), 1 / STOCKS), []
    held, seen = paths, []
    for returns in growth:
        seen.append(paths)
        losses.append(-np.log(paths @ returns) + fee * np.abs(paths - held).sum(1))
        target = target * np.exp(step * returns / (target @ returns))
        target /= target.sum()
        held = paths * returns / (paths @ returns)[:, None]
        paths = target * np.clip(held / target, 1 - BANDS[:, None], 1 + BANDS[:, None])
        paths /= paths.sum(1, keepdims=True)
    return np.array(seen), np.array(losses)


def test_regret_without_fees_is_that_of_each_path_and_what_adahedge_adds():
    """The path with the band 0 is exponentiated gradient, with its bound against the best fixed shares."""
    growth = market(0.005)[:300] ** 3
    problem = portfolio(data=growth, fee=0.0).problem
    game = played(problem, growth)
    loss = np.cumsum(game.loss)
    paths, losses = replay(growth, 0.0)
    assert np.all(game.decisions >= paths.min(1) - 1e-9) and np.all(game.decisions <= paths.max(1) + 1e-9)
    span = np.maximum.accumulate(losses.max(1) - losses.min(1))
    mixing = [theory.regret.mixture(count=len(BANDS), variance=s**2 * (t + 1) / 4, span=s) for t, s in enumerate(span)]
    assert np.all(loss[:, None] <= np.cumsum(losses, 0) + np.array(mixing)[:, None] + 1e-12)
    gradients = growth / (growth * paths[:, 0]).sum(1, keepdims=True)
    spans = gradients.max(1) - gradients.min(1)
    bound = theory.regret.exponentiated_gradient(dimension=STOCKS, step=0.05, spans=spans)
    best = cx.hindsight(cx.Problem(problem.domain, lambda x, r: -jnp.log(jnp.vdot(r, x))), jnp.asarray(growth))
    assert losses[:, 0].sum() <= best.lower_bound + bound


@pytest.mark.parametrize("bounce, least", [(0.0, 0.004), (0.002, 0.002), (0.005, -0.002)])
def test_wealth_after_fees_beside_that_of_exponentiated_gradient(bounce, least):
    """Where prices bounce much, trading pays, and AdaHedge costs a little; else bands save fees.

    Gains in log-wealth on 3 seeds each: 0.008 to 0.011, 0.005 to 0.008, -0.0008 to -0.0004; without bands 3e-5.
    """
    for seed in range(3):
        growth = market(bounce, seed)
        instance = portfolio(data=growth)
        gained = instance.baseline("EG").value - played(instance.problem, growth).loss.sum()
        assert gained > least


def test_a_limit_that_is_not_overspent_changes_nothing():
    """By single days it is."""
    growth = market(0.005)
    free = played(portfolio(data=growth).problem, growth)
    loose = played(portfolio(data=growth, volatility=0.011, turnover=0.5).problem, growth)
    assert np.cumsum(loose.constraint, 0).max() <= 0 < (loose.constraint[:, 0] > 0).mean()
    np.testing.assert_allclose(loose.decisions, free.decisions, atol=1e-12)


def test_shares_are_the_same_whatever_the_total_is_and_whatever_falls():
    """In dollars or in parts of a fortune; one stock goes bankrupt, one falls to a millionth in a day."""
    growth = market(0.005)[:60]
    growth[20:, 0], growth[40, 1:4] = 0.0, 1e-6

    def loss(x, r):
        return -jnp.log(jnp.vdot(r["growth"], x))

    def risk(x, r):
        return (jnp.vdot(r["growth"], x) / jnp.sum(x) - 1) ** 2 / 1e-4 - 1

    def shares(total):
        problem = cx.Problem(cx.domains.ProbabilitySimplex(STOCKS, total), loss, risk)
        return played(problem, growth).decisions / total

    usual = shares(1.0)
    np.testing.assert_allclose(shares(1e6), usual, atol=1e-9)
    np.testing.assert_allclose(usual.sum(1), 1, atol=1e-12)
    assert usual.min() >= 0 and usual[-1, 0] < 0.5 * usual[20, 0]


def test_a_band_of_1_that_keeps_nothing_goes_to_the_target():
    """So large a step leaves a share of 0, which prices never move; then all of the target lies there."""
    growth = np.array([[2.0, 1.0]] + [[1.0, 4.0]] * 4)
    problem = cx.Problem(cx.domains.ProbabilitySimplex(2), lambda x, r: -jnp.log(jnp.vdot(r["growth"], x)))
    game = played(problem, growth, AutoGrowth(step=1e6, bands=[1.0]))
    np.testing.assert_allclose(np.asarray(game.decisions)[[1, -1]], [[1.0, 0.0], [0.0, 1.0]], atol=1e-9)


class Traded:
    """What is traded, prices having moved the shares since, over a limit."""

    def __call__(self, x, r, previous):
        held = previous * r["before"]
        return jnp.abs(x - held / held.sum()).sum() / 2 / 0.001 - 1


def limited(kind, growth):
    if kind == "traded":
        base = portfolio(data=growth).problem
        return cx.Problem(base.domain, base.loss, Traded())
    limits = {"risk": {"volatility": 0.0085, "cvar": 0.018}, "turnover": {"turnover": 0.001}}
    return portfolio(data=growth, **limits[kind]).problem


@pytest.mark.parametrize("kind, most", [("risk", 0.03), ("turnover", 0.05), ("traded", 0.05)])
def test_limits_that_bind_are_kept_within_per_cents(kind, most):
    """Decisions without limits are 10% and more above each."""
    growth = market(0.005)
    problem = limited(kind, growth)
    before = np.concatenate([np.ones_like(growth[:1]), growth[:-1]])
    rounds = {"growth": jnp.asarray(growth), "before": jnp.asarray(before)}
    free = jnp.asarray(played(portfolio(data=growth).problem, growth).decisions)
    assert cx.Comparator.path(problem, rounds, free).constraint.mean(0).min() > 0.1
    assert played(problem, growth, AutoGrowth(dual=cx.dual.RobustPI())).constraint.mean(0).max() <= most


@pytest.mark.slow
def test_it_keeps_the_contract_of_learners():
    problem, rounds = problems.tracking(cx.domains.ProbabilitySimplex(4), key=jax.random.key(1), rounds=20)
    check_learner(LEARNER, key=KEY, problem=problem, rounds=rounds, random=False)
