"""The price of violation: what the score charges, and that ignoring a constraint never pays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_tools import slow_but

import cocoax as cx
from cocoax import Comparator, problems

KEY = jax.random.key(0)


def fixed(domain, loss, constraint, rounds, x):
    problem = cx.Problem(domain, loss, constraint, constraints=2)
    return Comparator.fixed(problem, rounds, np.asarray(x))


def test_a_constraint_without_multiplier_costs_a_tenth_of_its_natural_unit():
    """By hand: gradients of the loss (3, 4) and 0, of the constraints (1, 0) and nothing."""
    best = fixed(
        cx.domains.L2Ball(2, 3.0),
        lambda x, r: jnp.vdot(r, x),
        lambda x, r: jnp.stack([x[0] - 1, 0 * x[1] - 1]),
        jnp.array([[3.0, 4.0], [0.0, 0.0]]),
        [0.5, 0.5],
    )
    np.testing.assert_allclose(best.price, [12.5**0.5 / 10, 0])


def test_gradients_count_within_the_affine_hull_and_only_where_they_are_finite():
    """On the simplex a constant in all entries is no gradient; a root has none at 0, in the second round."""
    best = fixed(
        cx.domains.ProbabilitySimplex(2),
        lambda x, r: r[0] * x[0] + 5 * jnp.sum(x) - jnp.sqrt(x[1] + 1 - r[1]),
        lambda x, r: jnp.stack([x[0] - 0.5, 2 * jnp.sum(x)]),
        jnp.array([[2.0, 0.0], [2.0, 1.0]]),
        [1.0, 0.0],
    )
    np.testing.assert_allclose(best.price, [2.5 / 10, 0], atol=1e-12)


def test_the_price_is_twice_the_multiplier_where_that_is_more_and_may_differ_by_round():
    instance = problems.simplex(KEY, n=4, constraints=2)
    rounds = instance.rounds(60, KEY)
    best = instance.comparator(rounds)
    floor = Comparator.fixed(instance.problem, rounds, jnp.asarray(best.x)).price
    np.testing.assert_allclose(best.price, np.maximum(2 * best.multiplier, floor), rtol=1e-6)
    assert best.price.max() == 2 * best.multiplier.max() and floor.min() > 0
    loose = cx.Problem(instance.problem.domain, instance.problem.loss, lambda x, r: r["use"] @ x - 1.1, constraints=2)
    each = cx.hindsight(loose, rounds, benchmark="every_round")
    assert each.price.shape == each.multiplier.shape == (60, 2)
    assert np.all(each.price >= 2 * each.multiplier) and each.price.min() > 0
    game = cx.play(loose, cx.learners.Stay(), rounds, key=KEY)
    charge = np.cumsum((each.price * np.maximum(game.constraint, 0)).sum(1))
    np.testing.assert_allclose(game.score(each), game.regret(each) + charge, rtol=1e-6)


def test_a_comparator_made_by_hand_charges_twice_its_multiplier():
    best = Comparator(np.zeros(2), np.zeros(3), np.zeros((3, 2)), *map(np.asarray, (0.0, 0.0, [1.5, 0.0])))
    np.testing.assert_array_equal(best.price, [3.0, 0.0])


@pytest.mark.parametrize(
    "make", slow_but([problems.simplex, problems.pacing], [problems.simplex, problems.pacing, problems.shortest_path])
)
def test_ignoring_the_constraint_never_pays_on_linear_losses(make):
    """At the price of the multiplier itself, every minimiser of the Lagrangian scores 0, also a greedy one."""
    instance = make(jax.random.key(1))
    rounds = instance.rounds(300, KEY)
    best = instance.comparator(rounds)
    total = jax.tree.map(lambda leaf: leaf.mean(0), rounds)
    slope = instance.problem.gradients(instance.problem.domain.start(), total)[0]
    greedy = Comparator.fixed(instance.problem, rounds, instance.problem.domain.lmo(slope).dense())
    charge = best.price @ np.maximum(greedy.constraint.sum(0), 0)
    saved = best.value - greedy.value
    assert saved > 0 and charge > 1.5 * saved


@pytest.mark.parametrize("length, slope", slow_but([("l1", 0.5 * 2**0.5)], [("l1", 0.5 * 2**0.5), ("l2", 1.0)]))
def test_a_limit_on_movement_has_a_price_although_it_has_no_gradient_at_rest(length, slope):
    """By hand: from corner to corner of the simplex, half of the l1 norm rises by 1 over sqrt(2)."""
    costs = jnp.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    norms = {"l1": lambda step: 0.5 * jnp.abs(step).sum(), "l2": jnp.linalg.norm}
    problem = cx.Problem(
        cx.domains.ProbabilitySimplex(2), jnp.vdot, lambda x, r, previous: norms[length](x - previous) - 0.01
    )
    expected = (2.0 / 2) ** 0.5 / slope / 10  # mean squares of the costs within the hull: 1/2, 1/2 and 2
    inside, path = jnp.array([0.25, 0.75]), jnp.array([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25]])
    np.testing.assert_allclose(Comparator.fixed(problem, costs, inside).price, [expected])
    np.testing.assert_allclose(Comparator.path(problem, costs, path).price, [expected])
    best = cx.hindsight(problem, costs)  # at a corner, to which there is one way only
    np.testing.assert_allclose(best.price, [expected], rtol=1e-4)
    jumps = cx.play(problem, cx.learners.TrackedPI(), costs, key=KEY)  # which knows nothing of movement
    charged = jumps.score(best) - jumps.regret(best)
    np.testing.assert_allclose(charged, best.price[0] * jumps.violation()[:, 0].clip(0))
    assert charged.max() > 0
