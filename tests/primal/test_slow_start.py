"""SlowStart against plain NumPy, through stops and resumptions; in other units; on sets that are much too large."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tracking_tools as tools
from slow_start_tools import Distances

import cocoax as cx
from cocoax.domains import Box, L2Ball
from cocoax.primal import SlowStart, Tracked

ROUNDS, MEMORIES = 60, [None, 50]
LOWER, UPPER = np.array([-1.0, 0.0, -3.0]), np.array([1.0, 4.0, 0.0])
SETS = {  # the domain, its widths, and the projection
    "l2 ball": (L2Ball(3, radius=2.0), 4.0, lambda y: y * min(1, 2 / np.linalg.norm(y))),
    "box": (Box(LOWER, UPPER), UPPER - LOWER, lambda y: np.clip(y, LOWER, UPPER)),
}
KNOWN = {
    "l2 ball": tools.Set(lambda c: -2 * c / np.linalg.norm(c), 4.0, np.zeros(3), 2.0, np.zeros(3)),
    "box": tools.box(LOWER, UPPER),
}
START = np.array([0.1, 0.5, -0.5])


def gradients(seed=0):
    """They alternate, so that growing does not pay, then lead somewhere, then alternate again."""
    rng, t = np.random.default_rng(seed), np.arange(ROUNDS)
    signs = np.where((t >= 15) & (t < 45), 1.0, np.where(t % 2, -1.0, 1.0))
    return signs[:, None] * rng.uniform(0.5, 1.5, (ROUNDS, 3)) * np.array([1.0, -2.0, 0.5])


def descended(rule, domain, start, costs):
    """(points, states) of projected descent with these steps."""
    return jax.tree.map(np.asarray, _descended(rule, domain, start, costs))


@eqx.filter_jit
def _descended(rule, domain, start, costs):
    def step(carry, cost):
        y, state = carry
        update, new = rule.update(domain, state, cost, domain.project(y))
        return (domain.project(y) + update, new), (domain.project(y), new)

    return jax.lax.scan(step, (start, rule.init(domain, start)), costs)[1]


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", SETS)
def test_steps_are_their_formula(name, memory):
    domain, widths, project = SETS[name]
    points, states = descended(SlowStart(memory=memory), domain, START, gradients())
    reference, x, expected, backs = Distances(START, widths, memory=memory), START, [], []
    for t, gradient in enumerate(gradients()):
        expected.append(x)
        step, back = reference.advance(gradient, x)
        x = project(x - step - back)
        backs.append(np.linalg.norm(back))
        assert states.growing[t] == reference.growing and states.patience[t] == 4**reference.stops
        np.testing.assert_allclose(states.far[t], reference.far, rtol=1e-10)
    np.testing.assert_allclose(points, expected, rtol=0, atol=1e-12)
    assert reference.stops >= 1 and reference.resumed >= 1 and max(backs) > 1e-3
    assert np.count_nonzero(backs) <= reference.stops


@pytest.mark.parametrize("name", SETS)
def test_powers_of_two_change_no_bit(name):
    points, _ = descended(SlowStart(), SETS[name][0], START, gradients())
    for size, of_costs in [(1.0, 2.0**30), (2.0**-17, 1.0), (2.0**9, 2.0**-20)]:
        domain = L2Ball(3, radius=2 * size) if name == "l2 ball" else Box(size * LOWER, size * UPPER)
        other, _ = descended(SlowStart(), domain, size * START, of_costs * gradients())
        np.testing.assert_array_equal(other, size * points)


def test_on_boxes_no_coordinate_has_a_unit():
    of_entries = np.array([2.0**10, 1.0, 2.0**-7])
    points, _ = descended(SlowStart(), Box(LOWER, UPPER), START, gradients())
    domain = Box(of_entries * LOWER, of_entries * UPPER)
    other, _ = descended(SlowStart(), domain, of_entries * START, gradients() / of_entries)
    np.testing.assert_array_equal(other, of_entries * points)


def played(domain, loss, rounds, start):
    learner = cx.learners.PrimalDual(Tracked(SlowStart()), cx.dual.RobustPI())
    game = cx.play(cx.Problem(domain, loss), learner, rounds, key=jax.random.key(0), start=start, keep_decisions=True)
    return np.asarray(game.decisions), float(game.loss.sum())


@pytest.mark.parametrize("name", SETS)
def test_a_tracked_target_takes_these_steps(name):
    domain, widths, _ = SETS[name]
    decisions, _ = played(domain, lambda x, r: jnp.vdot(r, x), gradients(), START)
    reference, follower = Distances(START, widths), tools.Follower(KNOWN[name], START, 0)
    for decision, gradient in zip(decisions, gradients()):
        np.testing.assert_allclose(decision, follower.x, rtol=0, atol=1e-10)
        step, back = reference.advance(gradient, follower.x)
        follower.follow(follower.y - step - back)
    assert (reference.stops >= 1 or name == "box") and np.ptp(decisions, axis=0).max() > 0.1


@pytest.mark.parametrize(
    "ahead, along, times",
    [
        (0.0, -1.0, 2),
        (1e9, -1.0, 8),
        (np.inf, -1.0, 8),
        (12.0, -1.0, 3),
        (12.0, -0.3, 3),
        (12.0, -0.2, 2),
        (1e9, 1.0, 1),
    ],
)
def test_distances_grow_towards_a_quarter_of_what_curvature_shows(ahead, along, times):
    """From 1, after a gradient of length 1 at a distance of 0.5; `along` is the cosine of the way and the gradient."""
    rule, domain = SlowStart(1e-3), L2Ball(2, 500.0)
    state = rule.init(domain, jnp.zeros(2))
    begun = eqx.tree_at(lambda state: state.total, state, jnp.ones(()))
    gradient, moved = jnp.array([along, (1 - along**2) ** 0.5]), jnp.array([0.5, 0.0])
    far = rule.advance(domain, begun, gradient, moved, ahead)[2].far
    np.testing.assert_allclose(far, times, rtol=1e-12)
    first = rule.advance(domain, state, gradient, moved, ahead)[2].far
    np.testing.assert_allclose(first, 1, rtol=1e-12)  # in the first round with a gradient, it stays as it is


@pytest.mark.parametrize("size", [1.0, 10.0, 1000.0])
def test_sets_that_are_much_too_large_cost_less_than_the_start(size):
    """Absolute regression with weights of length 1: steps of a tenth of the largest set would be 100 times too long."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(600, 5))
    weights = np.array([0.6, -0.6, 0.4, -0.3, 0.2])
    rounds = {"a": features, "b": features @ weights + 0.1 * rng.normal(size=600)}
    domain = Box(-size * np.ones(5), size * np.ones(5))
    _, loss = played(domain, lambda x, r: jnp.abs(r["a"] @ x - r["b"]), rounds, np.zeros(5))
    of_start, of_truth = np.abs(rounds["b"]).sum(), np.abs(features @ weights - rounds["b"]).sum()
    assert loss < of_truth + 0.5 * (of_start - of_truth)
