"""Exponentiated gradient and online Newton: their regret is below their bounds, after every round."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import primal, theory
from cocoax.dual.base import Weights
from cocoax.learners.reveal import Reveal

ASSETS, ROUNDS = 4, 250
SIMPLEX = cx.domains.ProbabilitySimplex(ASSETS, 2.0)


def growth(kind, seed=0):
    rng = np.random.default_rng(seed)
    steps = np.exp(0.3 * rng.normal(size=(ROUNDS, ASSETS)))
    if kind == "one is better":
        steps[:, 1] *= 1.2
    elif kind == "leaders change":
        steps = np.where(np.arange(ROUNDS)[:, None] % ASSETS == np.arange(ASSETS), 2.0, 0.5)
    return jnp.asarray(steps)


PROBLEM = cx.Problem(SIMPLEX, lambda x, r: -jnp.log(jnp.vdot(r, x) / 2))


def run(method, problem, rounds):
    """(decisions, losses, gradients, states), alone: no dual, no constraint."""

    @jax.jit
    def played(rounds):
        start = problem.domain.start()
        state = method.init(problem.domain, None, start=start, key=jax.random.key(0))

        def one(state, r):
            x = method.decision(state)
            loss, _, pull = problem.linearize(x, r)
            weights = Weights(jnp.ones(()), jnp.zeros((0,)))
            new, _ = method.step(problem.domain, state, Reveal(problem, r, weights, x, pull), None, key=None)
            return new, (x, loss, pull(jnp.ones(()), jnp.zeros((0,))), new)

        return jax.lax.scan(one, state, rounds)[1]

    return jax.tree.map(np.asarray, played(rounds))


def best_so_far(problem, rounds, ends):
    """A lower bound on the loss of the best fixed point after each of these rounds."""
    return {end: cx.hindsight(problem, rounds[:end], progress=False).lower_bound for end in ends}


@pytest.mark.parametrize("kind", ["noise", "one is better", "leaders change"])
def test_adahedges_regret_is_below_its_bound(kind):
    """Against the best vertex for the gradients at the decisions, which is at least the regret."""
    x, _, gradients, _ = run(primal.ExponentiatedGradient(), PROBLEM, growth(kind))
    shares = x / 2
    mean = (shares * gradients).sum(1)
    regret = 2 * (np.cumsum(mean) - np.cumsum(gradients, 0).min(1))
    variance = np.cumsum((shares * (gradients - mean[:, None]) ** 2).sum(1))
    spans = np.maximum.accumulate(gradients.max(1) - gradients.min(1))
    bounds = [2 * theory.regret.mixture(count=ASSETS, variance=v, span=s) for v, s in zip(variance, spans)]
    assert np.all(regret <= np.array(bounds))
    np.testing.assert_allclose(x.sum(1), 2)


@pytest.mark.parametrize("step", [0.05, 0.5])
def test_regret_with_a_step_is_below_its_bound(step):
    x, _, gradients, _ = run(primal.ExponentiatedGradient(step), PROBLEM, growth("leaders change"))
    regret = 2 * (np.cumsum((x / 2 * gradients).sum(1)) - np.cumsum(gradients, 0).min(1))
    spans = gradients.max(1) - gradients.min(1)
    for end in (1, 10, ROUNDS):
        bound = 2 * theory.regret.exponentiated_gradient(dimension=ASSETS, step=step, spans=spans[:end])
        assert regret[end - 1] <= bound


def test_exponentiated_gradient_has_no_unit():
    rounds = growth("noise")
    other = cx.Problem(SIMPLEX, lambda x, r: -1e5 * jnp.log(jnp.vdot(r, x)))
    one, two = (run(primal.ExponentiatedGradient(), problem, rounds)[0] for problem in (PROBLEM, other))
    np.testing.assert_allclose(one, two, atol=1e-9)


@pytest.mark.parametrize("kind", ["noise", "one is better", "leaders change"])
def test_online_newtons_regret_is_below_its_bound_and_its_projections_are_exact(kind):
    rounds, ends = growth(kind), (1, 20, ROUNDS)
    damping = 4.0 if kind == "noise" else 1.0  # the bound holds for every one
    _, losses, _, states = run(primal.OnlineNewton(damping=damping), PROBLEM, rounds)
    best = best_so_far(PROBLEM, rounds, ends)
    epsilon = damping / (states.rate[0] * float(SIMPLEX.diameter(2))) ** 2
    for end in ends:
        log_ratio = np.linalg.slogdet(states.metric[end - 1] / epsilon)[1]
        bound = theory.regret.online_newton(
            first_rate=states.rate[0],
            rate=states.rate[end - 1],
            log_ratio=log_ratio,
            errors=states.errors[end - 1],
            damping=damping,
        )
        assert losses[:end].sum() - best[end] <= bound
    assert states.errors[-1] <= 0.01 * np.pi**2 / 6  # every projection was as exact as promised
    assert np.all(np.diff(states.rate) <= 0)


def test_online_newton_is_the_update_of_the_paper_where_nothing_is_projected():
    """x - A^-1 grad / gamma, with gamma = 1/2 min(alpha, 1/M), as near as the promised gap says: in NumPy."""
    problem = cx.Problem(cx.domains.L2Ball(2, 50.0), lambda x, r: jnp.vdot(r, x) ** 2 / 2 + x[0])
    rounds = jnp.asarray(np.random.default_rng(1).normal(size=(8, 2)))
    x, _, gradients, states = run(primal.OnlineNewton(1e-4), problem, rounds)
    rate, metric = np.inf, None
    for t in range(7):
        far = np.abs(gradients[t] @ x[t]) + 50 * np.linalg.norm(gradients[t])
        rate = min(rate, 0.5 * min(1e-4, 1 / far))
        metric = np.eye(2) / (rate * 100) ** 2 if metric is None else metric
        metric = metric + np.outer(gradients[t], gradients[t])
        np.testing.assert_allclose(states.metric[t], metric, rtol=1e-12)
        goal = x[t] - np.linalg.solve(metric, gradients[t]) / rate
        assert np.linalg.norm(goal) < 50
        assert (x[t + 1] - goal) @ metric @ (x[t + 1] - goal) <= 0.01 / (rate * (t + 1) ** 2)
