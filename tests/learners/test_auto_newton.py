"""AutoNewton: damped means, whatever the units; AdaGrad without curvature; the best of its scales; within budgets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import learners, primal, theory
from cocoax.domains import Box

KEY = jax.random.key(0)
SIDES = np.array([2.0, 4.0, 1.0])


def single(method):
    return learners.PrimalDual(method, cx.dual.RobustPI())


def played(problem, learner, rounds):
    return cx.play(problem, learner, rounds, key=KEY, keep_decisions=True)


def biases(unit=1.0, loss_unit=1.0):
    """Three parameters, each seen in some rounds."""
    box = Box(-unit * SIDES / 2, unit * SIDES / 2)
    return cx.Problem(box, lambda x, r: loss_unit * (x[r["item"]] / unit - r["rating"]) ** 2)


def seen(count, seed=0):
    rng = np.random.default_rng(seed)
    item = rng.integers(3, size=count)
    rating = np.array([0.4, -0.7, 0.1])[item] + 0.3 * rng.normal(size=count)
    return {"item": jnp.asarray(item), "rating": jnp.asarray(rating)}


def test_units_of_the_loss_and_of_the_parameters_do_not_matter():
    rounds = seen(60)
    usual = played(biases(), learners.AutoNewton(), rounds).decisions
    for unit, loss_unit in ((100.0, 1.0), (1.0, 1e-4)):
        other = played(biases(unit, loss_unit), learners.AutoNewton(), rounds).decisions
        np.testing.assert_allclose(other / unit, usual, atol=1e-9)


def test_a_parameter_is_a_mean_of_what_it_saw_and_of_a_few_at_the_start():
    """The step of the n-th sight is 1/(n + damping), up to AdaGrad's share, as a replay in NumPy says."""
    rounds, tau = seen(80), 0.25
    x, squares, counts = np.zeros(3), np.zeros(3), np.zeros(3)
    path = []
    for item, rating in zip(np.asarray(rounds["item"]), np.asarray(rounds["rating"])):
        path.append(x.copy())
        gradient = 2 * (x[item] - rating)
        squares[item] += gradient**2
        counts[item] += 2
        prior = squares.sum() / counts.sum() / (tau * SIDES[item]) ** 2
        x[item] -= gradient / (prior + counts[item] + np.sqrt(squares[item]) / SIDES[item])
        x = np.clip(x, -SIDES / 2, SIDES / 2)
    found = played(biases(), single(primal.DiagonalNewton(tau)), rounds).decisions
    np.testing.assert_allclose(found, path, atol=1e-9)


@pytest.mark.parametrize("kind", ["noise", "adversary", "sparse"])
def test_regret_without_curvature_is_below_adagrads_bound(kind):
    rng, count = np.random.default_rng(0), 300
    costs = rng.normal(size=(count, 3)) + 0.2
    if kind == "adversary":
        costs = np.where(np.arange(count)[:, None] % 2 == 0, 1.0, -1.0) * np.array([1.0, 3.0, 0.1])
        costs[: count // 3] = 1.0
    elif kind == "sparse":
        costs *= rng.uniform(size=costs.shape) < 0.05
    problem = cx.Problem(Box(-SIDES / 2, SIDES / 2), lambda x, r: jnp.vdot(r, x))
    game = played(problem, single(primal.DiagonalNewton()), jnp.asarray(costs))
    total = np.cumsum(costs, 0)
    regret = np.cumsum(game.loss) + (np.abs(total) * SIDES / 2).sum(1)
    squares = np.cumsum(costs**2, 0)
    bounds = [theory.regret.adagrad_by_coordinate(widths=SIDES, squares=each) for each in squares]
    assert np.all(regret <= np.array(bounds))


@pytest.mark.parametrize("seed", range(3))
def test_a_mixture_is_nearly_as_good_as_its_best_primal(seed):
    """By AdaHedge's bound, with the variance at its largest, S^2 / 4 a round."""
    scales, rounds = (0.5, 0.05, 1e-4), seen(200, seed)
    parts = [primal.DiagonalNewton(scale) for scale in scales]
    losses = np.stack([played(biases(), single(part), rounds).loss for part in parts])
    mixed = np.asarray(played(biases(), single(primal.Mixture(parts)), rounds).loss)
    span = (losses.max(0) - losses.min(0)).max()
    for end in (20, 200):
        bound = theory.regret.mixture(count=3, variance=span**2 * end / 4, span=span)
        assert mixed[:end].sum() <= losses[:, :end].sum(1).min() + bound
    assert mixed.sum() < losses.mean(0).sum()  # better than equal shares


def test_a_budget_is_kept():
    box = Box([-2.0] * 3, [2.0] * 3)
    problem = cx.Problem(box, lambda x, r: (x[r["item"]] - r["rating"]) ** 2, lambda x, r: x[0] - 0.2)
    game = played(problem, learners.AutoNewton(), seen(1500))
    assert game.constraint.mean() <= 0.002  # 1 per cent of the limit
    np.testing.assert_allclose(game.decision[1:], [-0.7, 0.1], atol=0.1)
