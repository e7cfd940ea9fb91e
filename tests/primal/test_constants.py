"""Numbers that a theorem prescribes, recomputed by hand: inequalities alone do not see all of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx

LIPSCHITZ, HORIZON = 3.0, 50
COSTS = jax.random.uniform(jax.random.key(0), (20, 3), minval=-1.0, maxval=1.0)


def decisions(method):
    """The first ones on a simplex with linear losses. The weight of the constraint is tiny: the bound is D."""
    problem = cx.Problem(
        cx.domains.ProbabilitySimplex(3),
        lambda x, cost: jnp.vdot(cost, x),
        regularity=cx.Regularity(lipschitz=LIPSCHITZ, smoothness=0.0),
    )
    learner = cx.learners.PrimalDual(method, cx.dual.RegularizedAscent(1.0, 0.1))
    return cx.play(problem, learner, COSTS, key=jax.random.key(0), horizon=HORIZON, keep_decisions=True).decisions


def frank_wolfe(eta, sigma):
    """v = argmin <eta * sum of gradients + x - x_1, v>, x <- (1 - sigma) x + sigma v, from the centre."""
    points = [np.full(3, 1 / 3)]
    for t in range(len(COSTS) - 1):
        direction = eta * np.asarray(COSTS[: t + 1]).sum(0) + points[-1] - points[0]
        points.append((1 - sigma) * points[-1] + sigma * np.eye(3)[np.argmin(direction)])
    return np.stack(points)


@pytest.mark.parametrize("rate, mixing", [(None, None), (0.3, 2.0)])
def test_ofw_takes_the_steps_of_its_theorem(rate, mixing):
    a, b = (0.5 * 3**0.75, 3**0.5) if rate is None else (rate, mixing)
    eta, sigma = a * 2**0.5 / (LIPSCHITZ * HORIZON**0.75), min(1, b / HORIZON**0.5)
    np.testing.assert_allclose(decisions(cx.primal.OFW(rate, mixing)), frank_wolfe(eta, sigma), atol=1e-12)


def test_ofw_with_steps_of_its_own_has_their_constant():
    """Regret <= RD (1/(2a) + a/b + sqrt(b/2)) T^(3/4), and at least RD sqrt(b), which short games need."""
    domain = cx.domains.ProbabilitySimplex(3)
    for a, b in ((0.3, 2.0), (2.0, 40.0)):
        expected = 2**0.5 * max(1 / (2 * a) + a / b + (b / 2) ** 0.5, b**0.5)
        np.testing.assert_allclose(cx.primal.OFW(a, b).constants(domain).c1, expected, rtol=1e-6)


def test_sampled_morgfw_perturbs_by_what_its_gradients_can_be():
    """sqrt(2) (D + L R): a recursive estimate is at most a gradient and a difference of two."""
    bounds = cx.primal.RoundBounds(jnp.asarray(3.0), jnp.asarray(5.0), jnp.asarray(10), 10)
    method = cx.primal.MORGFW(lambda round, key: round)
    found = method.perturbation_bound(cx.domains.L2Ball(2, radius=1.0), bounds)
    np.testing.assert_allclose(found, 2**0.5 * (3 + 5 * 2))
