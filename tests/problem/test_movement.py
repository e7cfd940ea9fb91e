"""Losses and constraints with a third argument: the decision that was played in the round before."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_tools import slow_but

import cocoax as cx
from cocoax.domains import NuclearNormBall, ProbabilitySimplex, Product

SIMPLEX = ProbabilitySimplex(4)
ROUND = jnp.array([1.0, 2.0, 3.0, 4.0])
FAR = jnp.array([1.0, 0.0, 0.0, 0.0])
COSTS = jnp.asarray(np.random.default_rng(0).uniform(0, 1, (5, 4)))
POINTS = {
    "equal": [0.25] * 4,
    "inside": [0.1, 0.2, 0.3, 0.4],
    "face": [0.5, 0.5, 0.0, 0.0],
    "vertex": [0.0, 0.0, 1.0, 0.0],
}
POINTS |= {"zero": [0.0] * 4, "tiny": [1e-15, 0.0, 0.0, 1e-30]}  # of a ball


def turnover(x, round, previous):
    return 0.5 * jnp.abs(x - previous).sum()


MOVEMENTS = {
    "l1": turnover,
    "l2": lambda x, r, previous: jnp.linalg.norm(x - previous),
    "linf": lambda x, r, previous: jnp.abs(x - previous).max(),
    "groups": lambda x, r, previous: jnp.linalg.norm((x - previous).reshape(2, 2), axis=1).sum(),
    "increments": lambda x, r, previous: jnp.linalg.norm(jnp.diff(x) - jnp.diff(previous)),
    "sums": lambda x, r, previous: jnp.linalg.norm(jnp.cumsum(x) - jnp.cumsum(previous)),
    "squares": lambda x, r, previous: ((x - previous) ** 2).sum(),
    "purchases": lambda x, r, previous: jnp.maximum(x - previous, 0).sum(),
}


class Fees(eqx.Module):
    rate: jax.Array

    def __call__(self, x, round, previous):
        return self.rate * turnover(x, round, previous)


@functools.wraps(turnover)
def wrapped(*given):
    return turnover(*given)


def by_hand(x, previous):
    """The cost, and the turnover less 0.3."""
    return float(ROUND @ x), 0.5 * float(np.abs(np.asarray(x) - np.asarray(previous)).sum()) - 0.3


def problem(**options):
    constraint = lambda x, r, previous: turnover(x, r, previous) - 0.3  # noqa: E731
    return cx.Problem(SIMPLEX, lambda x, r: jnp.vdot(r, x), constraint, **options)


def test_values_depend_on_what_was_played_before():
    x = SIMPLEX.start()
    for on, previous in ((problem(), FAR), (problem().after(FAR), None)):
        loss, constraint = on.values(x, ROUND, previous)
        np.testing.assert_allclose((float(loss), float(constraint[0])), by_hand(x, FAR))
    for on in (problem(), problem().after(FAR)):  # a decision that stays
        loss, constraint = on.values(x, ROUND, x)
        np.testing.assert_allclose((float(loss), float(constraint[0])), (2.5, -0.3))
    assert float(problem().values(x, ROUND)[1][0]) == -0.3
    loss, constraint = problem().movement(x, ROUND, FAR)
    np.testing.assert_allclose((float(loss), float(constraint[0])), (0, 0.75))


def test_what_was_played_is_found_by_the_problem_alone():
    assert problem().previous is None and problem().has_movement
    np.testing.assert_array_equal(problem().after(FAR).after(SIMPLEX.start()).previous, SIMPLEX.start())
    pair = cx.Problem(Product((SIMPLEX, SIMPLEX)), lambda x, r, previous: turnover(x[1], r, previous[1]))
    start = pair.domain.start()
    assert float(pair.after((start[0], FAR)).values(start, ROUND)[0]) == 0.75


@pytest.mark.parametrize(
    "loss",
    [
        turnover,
        jax.jit(turnover),
        eqx.filter_jit(turnover),
        jax.tree_util.Partial(turnover),
        functools.partial(lambda rate, x, r, previous: rate * turnover(x, r, previous), 1.0),
        wrapped,
        Fees(jnp.ones(())),
        Fees(jnp.ones(())).__call__,
    ],
    ids=["function", "jit", "filter_jit", "Partial", "partial", "wrapper", "PyTree", "method"],
)
def test_three_arguments_are_recognised(loss):
    on = cx.Problem(SIMPLEX, loss)
    assert on.has_movement and float(on.values(SIMPLEX.start(), ROUND, FAR)[0]) == 0.75
    again = cx.Problem(on.domain, on.loss)
    assert jax.tree.structure(again) == jax.tree.structure(on)


@pytest.mark.parametrize(
    "loss", [jnp.vdot, lambda x, r, scale=1.0: scale * (r @ x), lambda *both: jnp.vdot(*both)], ids=range(3)
)
def test_other_losses_have_no_movement(loss):
    on = cx.Problem(SIMPLEX, loss)
    assert not on.has_movement
    assert [float(part) for part in on.after(FAR).values(SIMPLEX.start(), ROUND, FAR)[:1]] == [2.5]
    loss, constraint = on.movement(SIMPLEX.start(), ROUND, FAR)
    assert float(loss) == 0 and constraint.shape == (0,)


@pytest.mark.parametrize(
    "loss, why",
    [
        (lambda x, r, previous=None: 0.0, "previous has a default; leave that out"),
        (lambda x, r, *, previous: 0.0, "missing a required argument: 'previous'"),
        (lambda x, r, previous, more: 0.0, "missing a required argument: 'previous'"),
        (lambda x: 0.0, "too many positional arguments"),
    ],
    ids=["default", "keyword", "four", "one"],
)
def test_a_loss_with_wrong_arguments_is_refused(loss, why):
    sentence = f"loss must be callable as loss(x, round) or loss(x, round, previous), but {why}"
    with pytest.raises(cx.ProblemError) as caught:
        cx.Problem(SIMPLEX, loss)
    assert str(caught.value) == sentence
    with pytest.raises(cx.ProblemError, match=r"^constraint must be callable as constraint\(x, round\) or"):
        cx.Problem(SIMPLEX, jnp.vdot, loss)


def derivatives(on, x, round):
    """Gradients of the loss and the constraint, the gradient pulled back from the constraint, a Hessian times round."""
    zero, one = jnp.zeros((), x.dtype), jnp.ones((), x.dtype)
    pull, hessian = on.linearize(x, round)[2], on.curvature(x, round, one, one[None])
    return *on.gradients(x, round), pull(zero, one[None]), hessian(round)


def require_that_it_stays(found, round):
    of_loss, of_constraint, pulled, curved = found
    np.testing.assert_allclose(of_loss, round, rtol=2 * float(jnp.finfo(round.dtype).eps))
    np.testing.assert_array_equal(of_constraint, np.zeros((1, 4)))
    np.testing.assert_array_equal(pulled, np.zeros(4))
    np.testing.assert_array_equal(curved, np.zeros(4))


def with_movement(movement):
    return cx.Problem(SIMPLEX, lambda x, r, previous: jnp.vdot(r, x) + movement(x, r, previous), movement)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("movement", MOVEMENTS.values(), ids=MOVEMENTS)
def test_a_decision_that_stays_has_no_gradient_of_movement(movement, dtype):
    on, round = with_movement(movement), ROUND.astype(dtype)

    @jax.jit
    def both_ways(x, round):
        return derivatives(on, x, round), derivatives(on.after(FAR.astype(dtype)), x, round)

    for point in POINTS.values():
        for found in both_ways(np.asarray(point, dtype), round):
            require_that_it_stays(found, round)


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_it_has_none_operation_by_operation(point):
    for each in (with_movement(turnover), with_movement(turnover).after(FAR)):
        require_that_it_stays(derivatives(each, jnp.asarray(point), ROUND), ROUND)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64], ids=["float32", "float64"])
def test_small_entries_are_compared_with_themselves(dtype):
    x = jnp.asarray([1e-12, 0.5, 0.5, 1e-10], dtype)
    on = cx.Problem(SIMPLEX, lambda x, r, previous: jnp.sum(x * jnp.log(x / previous)))
    np.testing.assert_allclose(on.gradients(x, ROUND)[0], jnp.zeros(4), atol=1e-6)


def test_values_of_linearize_are_those_of_the_true_movement():
    on, x = problem().after(FAR), SIMPLEX.start()
    for found, expected in zip(on.linearize(x, ROUND)[:2], on.values(x, ROUND)):
        np.testing.assert_array_equal(found, expected)


def drift(x, r, previous):
    """Turnover after prices have moved the weights."""
    grown = previous * r
    return 0.5 * jnp.abs(x - grown / grown.sum()).sum()


def test_the_gradient_is_that_of_what_a_decision_that_stays_pays():
    on, x = cx.Problem(SIMPLEX, drift), jnp.asarray(POINTS["inside"])
    expected = jax.grad(lambda x: drift(x, ROUND, x))(x)
    assert jnp.abs(expected).min() > 1e-3
    np.testing.assert_allclose(on.gradients(x, ROUND)[0], expected, rtol=1e-10)


def test_with_a_given_decision_before_the_gradient_is_of_the_way_from_there():
    x = SIMPLEX.start()
    for on in (problem(), problem().after(x)):
        of_constraint = on.gradients(x, ROUND, FAR)[1]
        np.testing.assert_array_equal(of_constraint, [[-0.5, 0.5, 0.5, 0.5]])
        _, constraint, pull = on.linearize(x, ROUND, FAR)
        np.testing.assert_allclose(constraint, [0.45])
        np.testing.assert_array_equal(pull(jnp.zeros(()), jnp.ones(1)), of_constraint[0])
    squares = cx.Problem(SIMPLEX, MOVEMENTS["squares"])
    hessian = squares.curvature(x, ROUND, jnp.ones(()), jnp.zeros(0), FAR)
    np.testing.assert_array_equal(hessian(ROUND), 2 * ROUND)


def test_own_gradients_are_those_of_a_decision_that_stays():
    on = problem(constraint_grad=lambda x, r: jnp.zeros(4))
    _, constraint, pull = on.after(FAR).linearize(SIMPLEX.start(), ROUND)
    np.testing.assert_allclose(constraint, [0.45])
    np.testing.assert_array_equal(pull(jnp.ones(()), jnp.ones(1)), ROUND)
    with pytest.raises(cx.ProblemError, match=r"^loss_grad= and constraint_grad= are for decisions that stay; leave"):
        on.gradients(SIMPLEX.start(), ROUND, FAR)


def test_a_factored_matrix_knows_no_movement():
    ball = NuclearNormBall((6, 5), radius=1.0, factored=True, entries=(np.array([0, 1]), np.array([2, 3])))
    on = cx.Problem(ball, lambda x, r, previous: x.entries().sum())
    with pytest.raises(cx.ProblemError, match=r"^a factored matrix knows no movement; write"):
        cx.play(on, cx.learners.Auto(), jnp.zeros(3), key=jax.random.key(0))


@functools.cache
def best_without_movement(benchmark):
    return cx.hindsight(cx.Problem(SIMPLEX, jnp.vdot, lambda x, r: x[0] - 0.5), COSTS, benchmark=benchmark)


# which of both benchmarks is asked for is of no importance to which of the movements
@pytest.mark.parametrize(
    "name, benchmark",
    slow_but(
        [*((name, "mean") for name in MOVEMENTS), ("l1", "every_round")],
        itertools.product(MOVEMENTS, ["mean", "every_round"]),
    ),
)
def test_the_best_fixed_decision_does_not_move(name, benchmark):
    movement = MOVEMENTS[name]
    moving = cx.Problem(
        SIMPLEX, lambda x, r, p: jnp.vdot(r, x) + movement(x, r, p), lambda x, r, p: x[0] - 0.5 + movement(x, r, p)
    )
    found, expected = cx.hindsight(moving, COSTS, benchmark=benchmark), best_without_movement(benchmark)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
    np.testing.assert_allclose(found.multiplier, expected.multiplier, atol=1e-6)
    assert 0 <= found.gap + 1e-9 <= 1e-6 + 1e-9


def test_the_certificate_closes_where_a_fixed_decision_pays_for_drift():
    growth = jnp.asarray(np.random.default_rng(1).uniform(0.8, 1.2, (30, 4)))
    on = cx.Problem(SIMPLEX, lambda x, r, p: ((x - p * r) ** 2).sum() - 0.01 * (r @ x))
    best = cx.hindsight(on, growth)
    diagonal = cx.Problem(SIMPLEX, lambda x, r: ((x - x * r) ** 2).sum() - 0.01 * (r @ x))
    np.testing.assert_allclose(best.x, cx.hindsight(diagonal, growth).x, atol=1e-5)
    assert best.gap < 1e-6


def test_a_path_pays_for_its_way_but_not_for_its_beginning():
    path, rounds = jnp.eye(4)[jnp.array([0, 0, 1, 2, 2])], jnp.tile(ROUND, (5, 1))
    along = cx.Comparator.path(problem(), rounds, path)
    np.testing.assert_allclose(along.constraint[:, 0], np.array([0, 0, 1, 1, 0]) - 0.3)
    np.testing.assert_allclose(along.loss, [1, 1, 2, 3, 3])
    fixed = cx.Comparator.fixed(problem(), rounds, path[0])
    np.testing.assert_allclose(fixed.constraint[:, 0], np.full(5, -0.3))
