"""Tracked: its theorem in every game, its two points against plain NumPy, and its step rules against their formulas."""

import functools
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tracking_tools as tools
from jaxtyping import Array, Float
from slow_tools import slow_but

import cocoax as cx
from cocoax import theory
from cocoax.domains import Box, L2Ball, NuclearNormBall, ProbabilitySimplex
from cocoax.domains.matrices.span import OfRankOne
from cocoax.domains.vertices import RankOne
from cocoax.primal import Tracked, steps
from cocoax.primal.tracking import Tracker
from cocoax.testing import check_domain

GAMES, ROUNDS = 64, 250
LOWER, UPPER = np.array([-1.0, 0.0, 0.5]), np.array([1.0, 2.0, 0.75])
GROUNDS = {  # the domain; min_x <c, x>; what matters of a direction
    "simplex": (ProbabilitySimplex(5), lambda c: c.min(-1), lambda c: c - c.mean(-1, keepdims=True)),
    "box": (Box(LOWER, UPPER), lambda c: np.minimum(LOWER * c, UPPER * c).sum(-1), lambda c: c),
    "l2 ball": (L2Ball(3, radius=2.0), lambda c: -2 * np.linalg.norm(c, axis=-1), lambda c: c),
    "nuclear ball": (
        NuclearNormBall((3, 4), 1.5, method="exact"),
        lambda c: -1.5 * np.linalg.norm(c, 2, axis=(-2, -1)),
        lambda c: c,
    ),
}

with_atoms = pytest.mark.parametrize(
    "name, atoms",
    slow_but([("simplex", 0), ("simplex", 8)], itertools.product(GROUNDS, [0, 8])),
)


def linear_loss(x, r):
    return jnp.vdot(r, x)


class Foe(eqx.Module):
    """Linear losses: a table of directions with their sizes, and spite, which pushes along x_t - best so far."""

    directions: Float[Array, "T ..."]
    sizes: Float[Array, " T"]
    spite: Float[Array, ""]

    def answer(self, domain, t, total, decision):
        direction = self.directions[t] + self.spite * (decision - domain.lmo(total).dense())
        return self.sizes[t] * direction / jnp.maximum(jnp.sqrt(jnp.sum(direction**2)), 1e-9)


def foes(shape, seed=0):
    """Noise, one direction in noise, or one that switches; sizes of one, growing, falling, or of bursts from 1e-3 to
    1e3; a quarter of them without spite."""
    rng, t = np.random.default_rng(seed), np.arange(ROUNDS)
    kinds = np.arange(GAMES)
    noise = rng.normal(size=(GAMES, ROUNDS, *shape))
    one = rng.normal(size=(GAMES, 1, *shape))
    switch = np.where(np.log2(t + 1).astype(int) % 2, 1.0, -1.0).reshape(1, -1, *(1,) * len(shape))
    directions = np.stack([noise, one + 0.3 * noise, switch * one + 0.1 * noise])[kinds % 3, kinds]
    bursts = 10 ** (rng.uniform(-3, 3, (GAMES, ROUNDS)) * (rng.random((GAMES, ROUNDS)) < 0.1))
    sizes = np.stack([np.ones((GAMES, ROUNDS)), bursts, *np.broadcast_to(_ramps(t), (2, GAMES, ROUNDS))])
    sizes = sizes[kinds % 4, kinds] * 10 ** rng.uniform(-1, 1, (GAMES, 1))
    spite = rng.choice([0.0, 1.0, 10.0, 100.0], GAMES)
    return Foe(*map(jnp.asarray, (directions, sizes, spite)))


def _ramps(t):
    grows = np.geomspace(1e-3, 1e3, len(t))
    return np.stack([grows, grows[::-1]])[:, None]


@eqx.filter_jit
def played(domain, primals, foes):
    """One game of each primal and foe, everything of it kept: leaves are (games, rounds, ...)."""
    problem = cx.Problem(domain, linear_loss, regularity=cx.Regularity(lipschitz=1.0))

    def one(primal, foe):
        learner = cx.learners.PrimalDual(primal, cx.dual.RegularizedAscent(1.0, 0.1))

        def step(carry, t):
            state, total = carry
            cost = foe.answer(domain, t, total, learner.decision(state))
            tracker = state.primal.tracker
            state, outcome = learner.observe(problem, state, cost)
            kept = {"tracker": tracker, "cost": cost, "loss": outcome.loss, "lmo_calls": outcome.lmo_calls}
            return (state, total + cost), kept

        state = learner.init(problem, key=jax.random.key(0), horizon=ROUNDS, start=domain.vertex().dense())
        return jax.lax.scan(step, (state, jnp.zeros(domain.shape)), jnp.arange(ROUNDS))[1]

    return jax.vmap(one)(primals, foes)


@functools.cache
def default_games(name, atoms):
    domain, _, _ = GROUNDS[name]
    primals = jax.vmap(lambda power: Tracked(steps.Norm(power), atoms=atoms))(jnp.full(GAMES, 4 / 3))
    return played(domain, primals, foes(domain.shape))


def regrets(name, game):
    _, best, tangent = GROUNDS[name]
    cost = np.asarray(game["cost"])
    sizes = np.sqrt((tangent(cost) ** 2).reshape(GAMES, ROUNDS, -1).sum(-1))
    return np.cumsum(game["loss"], axis=1) - best(np.cumsum(cost, axis=1)), sizes


@with_atoms
def test_regret_is_below_its_bound_after_every_round(name, atoms):
    regret, sizes = regrets(name, default_games(name, atoms))
    diameter = float(GROUNDS[name][0].diameter(2))
    bound = theory.regret.tracked(diameter=diameter, powers=np.cumsum(sizes ** (4 / 3), axis=1))
    assert sizes.max() / sizes.min() > 1e5
    assert np.max(regret / bound) <= 1 + 1e-9
    assert np.max(regret / bound) > 0.1  # the games are hard: the target alone loses up to 0.37 of the bound


@with_atoms
def test_constant_steps_keep_their_bound(name, atoms):
    domain, _, _ = GROUNDS[name]
    diameter, sizes = float(domain.diameter(2)), np.geomspace(1e-4, 10, GAMES)
    primals = jax.vmap(lambda size: Tracked(steps.Constant(size), atoms=atoms))(jnp.asarray(diameter * sizes))
    regret, norms = regrets(name, played(domain, primals, foes(domain.shape, seed=1)))
    bound = theory.regret.tracked_constant(
        diameter=diameter,
        step=diameter * sizes[:, None],
        powers=np.cumsum(norms ** (4 / 3), axis=1),
        squares=np.cumsum(norms**2, axis=1),
    )
    assert np.max(regret / bound) <= 1 + 1e-9
    assert np.max(regret / bound) > 0.1


@with_atoms
def test_the_decision_is_never_half_a_diameter_from_its_target(name, atoms):
    tracker = default_games(name, atoms)["tracker"]
    lag = np.sqrt(((tracker.point - tracker.target) ** 2).reshape(GAMES, ROUNDS, -1).sum(-1))
    assert lag.max() <= float(GROUNDS[name][0].diameter(2)) / 2 * (1 + 1e-12)
    assert lag.max() > 0


@pytest.mark.parametrize("name", slow_but(["simplex", "nuclear ball"], GROUNDS))
def test_a_round_asks_one_lmo(name):
    assert np.all(default_games(name, 8)["lmo_calls"] == 1)


@pytest.mark.parametrize("name", slow_but(["simplex", "nuclear ball"], GROUNDS))
def test_decisions_are_the_combinations_that_are_kept(name):
    domain, _, _ = GROUNDS[name]
    tracker = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), default_games(name, 8)["tracker"])
    axes = range(1, tracker.point.ndim)
    sums = jax.vmap(lambda atoms, weights: atoms.combine(weights))(tracker.atoms, tracker.weights)
    left = np.asarray(tracker.left)
    rest = np.expand_dims(left, tuple(axes)) * tracker.rest
    np.testing.assert_allclose(rest + sums, tracker.point, rtol=0, atol=1e-12)
    assert tracker.weights.min() >= -1e-15
    np.testing.assert_allclose(left + tracker.weights.sum(-1), 1, rtol=0, atol=1e-12)
    assert left.min() >= -1e-12
    assert np.all(jax.jit(jax.vmap(lambda x: domain.contains(x, 1e-8)))(jnp.asarray(tracker.rest)))
    assert np.all(jax.jit(jax.vmap(lambda x: domain.contains(x, 1e-10)))(tracker.point))
    assert (left <= 1e-6).mean() < 1  # a rest was there to be tested


# The pull


@functools.partial(jax.jit, static_argnames="atoms")
def pulled(domain, starts, targets, slack, atoms):
    """Targets after one round, from x = starts."""
    return jax.vmap(lambda x, y: Tracker.begin(domain, x, atoms).follow(domain, y - x, slack).target)(starts, targets)


@pytest.mark.parametrize(
    "name, slack",
    slow_but([("simplex", 0.0), ("simplex", 0.1), ("nuclear ball", 0.0)], itertools.product(GROUNDS, [0.0, 0.1])),
)
def test_no_point_of_the_set_loses_by_a_pull(name, slack):
    domain, _, _ = GROUNDS[name]
    rng, count = np.random.default_rng(2), 300
    answer = jax.jit(jax.vmap(lambda direction: domain.lmo(direction).dense()))
    vertices = np.asarray(answer(rng.normal(size=(60, *domain.shape))))
    points = np.concatenate([vertices, np.tensordot(rng.dirichlet(np.full(60, 0.05), 200), vertices, axes=1)])
    starts = points[rng.integers(len(points), size=count)]
    far = 10 ** rng.uniform(-2, 1, (count, *(1,) * len(domain.shape)))
    targets = starts + far * rng.normal(size=(count, *domain.shape))
    after = pulled(domain, starts, targets, slack, 0)

    def distances(y):
        return np.linalg.norm((np.asarray(y)[:, None] - points[None]).reshape(count, len(points), -1), axis=-1)

    moved = np.linalg.norm(np.asarray(after - targets).reshape(count, -1), axis=-1)
    gain = distances(targets) ** 2 - distances(after) ** 2 - moved[:, None] ** 2  # >= 0 after a projection, or less
    assert gain.min() >= -1e-12 * distances(targets).max() ** 2
    assert 0.1 < np.mean(moved > 1e-6) < 1


def test_a_target_in_the_set_is_not_pulled_but_would_be_with_the_old_vertex_at_the_new_point():
    domain, x, y = Box(np.zeros(2), np.ones(2)), np.zeros(2), np.array([1.0, 0.5])
    tracker = Tracker.begin(domain, jnp.asarray(x), 0)
    for _ in range(5):
        tracker = tracker.follow(domain, y - tracker.target)
        np.testing.assert_allclose(tracker.target, y, rtol=0, atol=1e-15)

    vertex = np.ones(2)
    x = x + (y - x) @ (vertex - x) / ((vertex - x) @ (vertex - x)) * (vertex - x)
    away = x - y
    gap, square = away @ (x - vertex), away @ away
    wrong = y + (square - gap) / square * away
    assert abs(np.linalg.norm(wrong - y) - 0.125**0.5) < 1e-12


# Against NumPy


def transcription(domain, start, costs, atoms, power=4 / 3):
    follower, total, plays = tools.Follower(domain, start, atoms), 0.0, [start]
    for cost in costs:
        gradient = domain.tangent(cost)
        total += np.linalg.norm(gradient) ** power
        follower.follow(follower.y - domain.diameter * total ** (-1 / power) * gradient)
        plays.append(follower.x)
    return np.array(plays)


TRANSCRIBED = {"simplex": tools.simplex(5), "box": tools.box(LOWER, UPPER)}


def one_game(domain, primal, costs, **options):
    problem = cx.Problem(domain, linear_loss, **options)
    learner = cx.learners.PrimalDual(primal, cx.dual.RegularizedAscent(1.0, 0.1))
    return cx.play(problem, learner, jnp.asarray(costs), key=jax.random.key(0), keep_decisions=True)


@pytest.mark.parametrize("atoms", [0, 8])
@pytest.mark.parametrize("name", TRANSCRIBED)
def test_tracked_is_its_transcription(name, atoms):
    domain = GROUNDS[name][0]
    costs = np.random.default_rng(3).normal(size=(50, *domain.shape)) + np.linspace(-1, 1, domain.dimension)
    game = one_game(domain, Tracked(atoms=atoms), costs)
    plays = transcription(TRANSCRIBED[name], np.asarray(domain.start()), costs, atoms)
    np.testing.assert_allclose(game.decisions, plays[:50], rtol=0, atol=1e-10)
    np.testing.assert_allclose(game.decision, plays[50], rtol=0, atol=1e-10)
    assert np.ptp(plays, axis=0).max() > 0.3


# Steps


def sequence(seed=4, rounds=40, n=3):
    rng = np.random.default_rng(seed)
    return 10 ** rng.uniform(-2, 2, (rounds, 1)) * rng.normal(size=(rounds, n)), rng.uniform(size=(rounds, n))


def run(rule, gradients, points, scale=None):
    """What a rule adds to the target, round after round."""
    domain = Box(np.zeros(3), np.array([1.0, 2.0, 3.0]))

    def update(state, given):
        update, state = rule.update(domain, state, *given, scale)
        return state, update

    return np.asarray(jax.lax.scan(update, rule.init(domain, domain.start()), (gradients, points))[1])


DIAMETER = 14**0.5


@pytest.mark.parametrize("power", [1.0, 4 / 3, 2.0])
def test_norm_steps(power):
    gradients, points = sequence()
    sums = np.cumsum(np.linalg.norm(gradients, axis=1) ** power)
    expected = -DIAMETER * sums[:, None] ** (-1 / power) * gradients
    np.testing.assert_allclose(run(steps.Norm(power), gradients, points), expected, rtol=1e-12)


def test_constant_steps_are_the_number_or_come_from_the_scale():
    gradients, points = sequence()
    np.testing.assert_array_equal(run(steps.Constant(0.25), gradients, points), -0.25 * gradients)
    scale = cx.primal.RoundBounds(jnp.asarray(3.0), jnp.asarray(0.0), jnp.asarray(16), 16)
    expected = -DIAMETER / (3 * 16**0.75) * gradients
    np.testing.assert_allclose(run(steps.Constant(), gradients, points, scale), expected, rtol=1e-12)


@pytest.mark.parametrize("memory", [None, 5])
@pytest.mark.parametrize("weighted", [True, False])
def test_distance_steps(weighted, memory):
    gradients, points = sequence()
    start, keep = np.array([0.5, 1.0, 1.5]), 1.0 if memory is None else 1 - 1 / memory
    far, total, expected = 0.02 * DIAMETER, 0.0, []
    for gradient, point in zip(gradients, points):
        far = max(far, np.linalg.norm(point - start))
        total = keep * total + (far**2 if weighted else 1) * gradient @ gradient
        expected.append(-(far**2 / (2 * total) ** 0.5 if weighted else far / total**0.5) * gradient)
    found = run(steps.Distance(0.02, weighted=weighted, memory=memory), gradients, points)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("rule", [steps.Norm(), steps.Distance(), steps.Constant(0.1)], ids=lambda r: type(r).__name__)
def test_no_gradient_makes_no_step(rule):
    assert not run(rule, np.zeros((3, 3)), np.full((3, 3), 0.5)).any()


@pytest.mark.usefixtures("free_promotion")  # Optax mixes int32 and float
def test_any_optimiser_of_optax_is_a_step():
    optax = pytest.importorskip("optax")
    domain, costs = GROUNDS["simplex"][0], np.random.default_rng(5).normal(size=(60, 5))
    ours, theirs = (one_game(domain, Tracked(step, atoms=8), costs) for step in (0.1, optax.sgd(0.1)))
    np.testing.assert_allclose(ours.decisions, theirs.decisions, rtol=0, atol=1e-12)
    adam = one_game(domain, Tracked(optax.adam(0.1)), costs)
    assert np.all(jax.jit(jax.vmap(lambda x: domain.contains(x)))(adam.decisions))
    assert np.abs(adam.decisions - ours.decisions).max() > 0.1


@pytest.mark.usefixtures("free_promotion")  # Optax mixes dtypes
@pytest.mark.parametrize("name", ["lbfgs", "polyak_sgd"])
def test_optimisers_that_need_losses_are_told_so(name):
    optax = pytest.importorskip("optax")
    domain, costs = ProbabilitySimplex(3), np.ones((4, 3))
    with pytest.raises(cx.LearnerError, match=r"no more than gradients and parameters, but TypeError: .*; give"):
        one_game(domain, Tracked(getattr(optax, name)()), costs)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: Tracked("fast"), "step must be one of primal.steps, a number, or an Optax optimiser, got 'fast'"),
        (lambda: Tracked(-1.0), "size must be positive and finite, got -1.0"),
        (lambda: Tracked(atoms=-1), "atoms must be"),
        (lambda: Tracked(atoms=1.5), "atoms must be"),
        (lambda: steps.Norm(3.0), r"power must lie in \[1, 2\], got 3.0"),
        (lambda: steps.Distance(0.0), r"first must lie in \[1e-09, 1\], got 0.0"),
        (lambda: steps.Distance(memory=1.0), "memory must be more than 1 round, or None for all of them, got 1.0"),
        (lambda: Tracked(0.1).constants(ProbabilitySimplex(3)), "Tracked has constants for its default steps only"),
        (
            lambda: one_game(ProbabilitySimplex(3), Tracked(steps.Constant()), np.ones((2, 3))),
            "Tracked needs lipschitz",
        ),
    ],
)
def test_bad_arguments_are_told_so(make: Any, sentence):
    with pytest.raises(cx.CocoaxError, match=sentence):
        make()


# What domains tell about their shape


class Bent(ProbabilitySimplex):
    """A tangent that forgets a coordinate."""

    def tangent(self, direction):
        return direction.at[0].set(0)


class Long(ProbabilitySimplex):
    """A tangent that is right, but longer than the direction."""

    def tangent(self, direction):
        return direction + 3


class Wide(ProbabilitySimplex):
    """A ball that sticks out."""

    def inradius(self):
        return 1.1 * super().inradius()


class Flat(Box):
    """A ball that sticks out by the longest side, not the shortest."""

    def inradius(self):
        return jnp.max(self.upper - self.lower) / 2


@pytest.mark.parametrize(
    "domain, sentence",
    [
        (Bent(4), "tangent changes a product with a difference of points"),  # pyright: ignore[reportCallIssue]
        (Long(4), "tangent is longer than the direction"),  # pyright: ignore[reportCallIssue]
        (Wide(4), "a point of the inner ball lies outside"),  # pyright: ignore[reportCallIssue]
        (Flat(LOWER, UPPER), "a point of the inner ball lies outside"),
    ],
    ids=["bent", "long", "wide", "flat"],
)
def test_a_wrong_tangent_or_inradius_is_found(domain, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_domain(domain, key=jax.random.key(0), directions=16)


def test_squares_by_a_table_are_never_too_small():
    """By rounding, where a sum nearly cancels: a line search over such a square would go too far."""
    rng, short = np.random.default_rng(0), 0
    for _ in range(50):
        left, right = (each / np.linalg.norm(each) for each in rng.normal(size=(2, 40)))
        matrix = np.asarray(5 * np.outer(left, right) + 1e-5 * rng.normal(size=(40, 40)), np.float32)
        vertices = RankOne(*(jnp.asarray(each, jnp.float32) for each in (left[None], right[None], [5.0])))
        span = OfRankOne((jnp.asarray(matrix), jnp.zeros((40, 40), jnp.float32)), vertices)
        difference = jnp.array([1.0, 0.0, -1.0], jnp.float32)
        exact = np.sum(
            (matrix - np.float64(5) * np.outer(*(np.float64(np.float32(each)) for each in (left, right)))) ** 2  # pyright: ignore[reportCallIssue]
        )
        assert float(span.square(difference)) >= exact
        short += float(span.dot(difference, difference)) < exact
    assert short > 5


class Sorting(Box):
    """A box whose LMO, for no good reason, sorts."""

    def lmo(self, direction, guess=None):
        ranks = jnp.argsort(jnp.argsort(direction))
        return super().lmo(jnp.sort(direction)[ranks], guess)


def test_a_subclass_may_do_what_no_kernel_can():
    """On boxes a move is one kernel of a call, and XLA ends the process where it finds a sort in one."""
    rounds = jnp.tile(jnp.array([1.0, -1.0]), (20, 1))
    learner = cx.learners.PrimalDual(Tracked(steps.Constant(0.5), atoms=0), cx.dual.VirtualQueue())
    plain, sorting = (
        cx.play(cx.Problem(made([-1.0, -1.0], [1.0, 1.0]), lambda x, r: r @ x), learner, rounds, key=jax.random.key(0))
        for made in (Box, Sorting)
    )
    np.testing.assert_allclose(plain.decision, [-1, 1], atol=1e-6)
    np.testing.assert_allclose(sorting.decision, plain.decision, atol=1e-12)
