"""A domain with a few half-spaces: its LMO agrees with a generic solver, and proves its answers."""

import functools
import itertools

import cvxpy as cp
import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from domain_tools import Generic, batches, check_frank_wolfe, check_values, few_batches, trace_in_float32
from scipy.optimize import linprog
from slow_tools import slow_but

from cocoax import DomainError
from cocoax.domains import Box, Intersection, L2Ball, NuclearNormBall, ProbabilitySimplex, Product
from cocoax.domains.composed.column_generation import find_feasible
from cocoax.domains.composed.wrappers import Counted
from cocoax.errors import InfeasibleError
from cocoax.testing import check_domain

INNER = {
    "simplex": (ProbabilitySimplex(6), lambda x: [x >= 0, cp.sum(x) == 1]),
    "l2": (L2Ball(5, 2.0), lambda x: [cp.norm(x) <= 2]),
    "nuclear": (NuclearNormBall((3, 4), 2.0), lambda x: [cp.normNuc(x) <= 2]),
    "box": (Box(np.arange(-3.0, 3.0), np.arange(6.0) ** 2), lambda x: [x >= np.arange(-3, 3), x <= np.arange(6) ** 2]),
}
ROWS = ["one", "three", "slack", "parallel", "equal", "tight"]


@eqx.filter_jit
def _lmos(domain, directions):
    vertices = jax.vmap(domain.lmo)(directions)
    return jax.vmap(lambda vertex: vertex.dense())(vertices), jax.vmap(lambda v, d: v.dot(d))(vertices, directions)


def _answers(domain, directions):
    """The answers of an LMO, and their values."""
    return [np.asarray(each) for each in _lmos(domain, jnp.asarray(directions))]


@eqx.filter_jit
def _contained(domain, points, tol):
    return jax.vmap(lambda x: domain.contains(x, tol))(points)


@functools.cache
def cut(inner, kind):
    """The set, and what CVXPY needs to know of it; all rows leave room at some random mixture of vertices."""
    domain, describe = INNER[inner]
    rng = np.random.default_rng(3)
    A = rng.standard_normal((3, *domain.shape))
    ends = _answers(domain, rng.standard_normal((4, *domain.shape)))[0]
    inside = ends.mean(0)
    values = np.tensordot(A, inside, axes=inside.ndim)
    lowest = _answers(domain, A)[1]
    match kind:
        case "one":
            A, b = A[:1], values[:1] - 0.5 * (values - lowest)[:1]
        case "three":
            b = values + 0.05 * rng.random(3)
        case "slack":
            b = values + 100
        case "parallel":  # the second is implied by the first, the third is the first
            A = np.stack([A[0], 2 * A[0], A[0]])
            b = np.array([values[0], 2 * values[0] + 1, values[0]])
        case "equal":  # a hyperplane, and a third row
            A, b = np.stack([A[0], -A[0], A[1]]), np.array([values[0], -values[0], values[1] + 0.1])
        case "tight":  # almost nothing of the set is left
            A, b = A[:1], lowest[:1] + 1e-3
    rows = A.reshape(len(A), -1)

    def inside_all(x):
        return [*describe(x), rows @ cp.vec(x, order="C") <= b]

    return domain.intersect(A if len(A) > 1 else A[0], b if len(b) > 1 else b[0]), inside_all, A, b


def __getattr__(name):
    """CONTRACTS, for the list of all sets: made when asked for, since collecting tests should compile nothing."""
    if name == "CONTRACTS":
        return {"simplex, three": cut("simplex", "three")[0]}
    raise AttributeError(name)


@functools.cache
def generic(inner, kind):
    return Generic(*cut(inner, kind)[:2])


def with_rows(batch, A):
    """The directions, and some along the rows."""
    return np.concatenate([batch, A, -A, A + 1e-3 * batch[: 2 * len(A) : 2]])


@eqx.filter_jit
def proofs(domain, directions):
    def ask(direction):
        vertex = domain.lmo(direction)
        return vertex.dense(), vertex.gap, vertex.multiplier

    return jax.vmap(ask)(directions)


def cross(kinds):
    """All sets with all rows; in the fast run all rows with the simplex, and three rows with matrices."""
    cases = list(itertools.product(INNER, kinds))
    return slow_but([case for case in cases if case[0] == "simplex" or case == ("nuclear", "three")], cases)


CHECKED = [("simplex", "three"), ("l2", "one"), ("nuclear", "three"), ("box", "equal"), ("l2", "slack")]
IN_BOTH = [(*case, dtype) for case in CHECKED for dtype in ("float64", "float32")]


@pytest.mark.parametrize("inner, kind, dtype", slow_but(IN_BOTH[:1], IN_BOTH))  # float32 is traced, and proven below
def test_every_intersection_keeps_its_contract(inner, kind, dtype):
    check_domain(cut(inner, kind)[0], key=jax.random.key(1), directions=12, dtypes=[dtype])
    trace_in_float32(cut(inner, kind)[0])


@pytest.mark.parametrize("inner, kind", cross(ROWS))
@hypothesis.settings(few_batches, max_examples=2)
@hypothesis.given(data=st.data())
def test_every_answer_is_proven_and_agrees_with_a_generic_solver(inner, kind, data):
    domain, _, A, _ = cut(inner, kind)
    asked = with_rows(data.draw(batches(domain.shape, scales=20)), A)
    found = proofs(domain, jnp.asarray(asked))
    check_values(domain, asked, found[0], generic(inner, kind).minimum, Generic.tol)
    check_proofs(inner, kind, asked, found, 1e-9)


IN_FLOAT32 = list(itertools.product(INNER, ["three", "equal", "tight"]))


@pytest.mark.parametrize("inner, kind", slow_but(IN_FLOAT32[:3], IN_FLOAT32))  # all on the simplex
@hypothesis.settings(few_batches, max_examples=2)
@hypothesis.given(data=st.data())
def test_every_answer_in_float32_is_proven(inner, kind, data):
    domain, _, A, _ = cut(inner, kind)
    asked = jnp.asarray(with_rows(data.draw(batches(domain.shape, scales=20)), A), jnp.float32)
    check_proofs(inner, kind, asked, proofs(domain, asked), 2e-5)


def check_proofs(inner, kind, directions, found, tol):
    """Points are feasible, and their values are the gap above what the multipliers prove."""
    domain, _, A, b = cut(inner, kind)
    directions = np.asarray(directions, float)
    points, gaps, multipliers = (np.asarray(each, float) for each in found)
    sizes = np.linalg.norm(directions.reshape(len(directions), -1), axis=1)
    reach = np.linalg.norm(points.reshape(len(points), -1), axis=1).max() + float(domain.diameter(2))
    assert np.all(_contained(domain, jnp.asarray(points), tol))
    assert np.all(multipliers >= 0)
    if kind != "tight":  # whose multipliers are large, and so is their rounding
        assert np.all(gaps <= tol * sizes * reach)
    # what the multiplier proves, found anew in float64 by X's own LMO
    tilted = directions + np.tensordot(multipliers, A, axes=1)
    tilted = tilted / np.where(sizes > 0, sizes, 1).reshape(-1, *[1] * (A.ndim - 1))
    lowest = _answers(INNER[inner][0], tilted)[1] * np.where(sizes > 0, sizes, 1)
    bounds = lowest - multipliers @ b
    values = np.sum((directions * points).reshape(len(points), -1), axis=1)
    weight = sizes * reach + multipliers @ (np.abs(b) + reach * np.linalg.norm(A.reshape(len(A), -1), axis=1))
    np.testing.assert_array_less(np.abs(values - bounds - gaps), tol * np.where(weight > 0, weight, 1))


def test_the_gap_of_an_answer_that_was_cut_short_is_proven(monkeypatch):
    """After 4 calls of the LMO, of which this ball and these rows need more."""
    rng = np.random.default_rng(0)
    A, b, radius = rng.standard_normal((3, 7)), np.full(3, -0.5), 2.0
    domain = L2Ball(7, radius).intersect(A, b)
    monkeypatch.setattr("cocoax.domains.composed.column_generation.MOST_CALLS", 1)
    generic = Generic(domain, lambda x: [cp.norm(x) <= radius, A @ x <= b])
    gaps = []
    for direction in 100 * rng.standard_normal((5, 7)):
        vertex = domain.lmo(jnp.asarray(direction))
        value, multiplier = direction @ np.asarray(vertex.dense()), np.asarray(vertex.multiplier)  # pyright: ignore[reportAttributeAccessIssue]
        bound = -radius * np.linalg.norm(direction + multiplier @ A) - multiplier @ b
        gaps.append(float(vertex.gap))  # pyright: ignore[reportAttributeAccessIssue]
        assert gaps[-1] == pytest.approx(value - bound, rel=1e-8)
        assert value - gaps[-1] <= generic.minimum(direction) + 1e-4 <= value + 2e-4
    assert max(gaps) > 1


def test_the_least_excess_is_proven_by_multipliers_that_sum_to_1_at_most():
    """Weak duality needs it: the excess is one column, and may not pay for itself."""
    rng = np.random.default_rng(0)
    vertices = np.eye(5)
    for _ in range(40):
        rows, bound = rng.standard_normal((3, 5)), rng.uniform(-3, 0.5, 3)
        found = find_feasible(ProbabilitySimplex(5), jnp.asarray(rows), jnp.asarray(bound))
        multiplier = np.asarray(found.multiplier)
        assert multiplier.min() >= 0 and multiplier.sum() <= 1 + 1e-12
        excess = linprog(
            np.r_[np.zeros(5), 1.0],
            A_ub=np.c_[rows @ vertices.T, -np.ones(3)],
            b_ub=bound,
            A_eq=[[1.0] * 5 + [0.0]],
            b_eq=[1.0],
        ).fun
        assert float(found.value) == pytest.approx(excess, abs=1e-9)
        assert float(found.lower) == pytest.approx(np.min(vertices @ rows.T @ multiplier) - multiplier @ bound)
        assert float(found.lower) <= excess + 1e-9


REACHED = [("simplex", "three"), ("l2", "equal"), ("nuclear", "one"), ("box", "three")]


@pytest.mark.parametrize("inner, kind", slow_but(REACHED[:1], REACHED))
def test_frank_wolfe_reaches_the_optimum(inner, kind):
    domain, describe, _, _ = cut(inner, kind)
    check_frank_wolfe(domain, describe)


@pytest.mark.parametrize("inner, kind", cross(ROWS))
def test_start_is_a_point_of_the_set(inner, kind):
    domain = cut(inner, kind)[0]
    assert bool(domain.contains(domain.start(), 1e-9))
    if kind == "slack":  # X's own, where that is possible: of the simplex and the box to rounding
        exact = inner in ("l2", "nuclear")
        np.testing.assert_allclose(domain.start(), INNER[inner][0].start(), rtol=0, atol=0 if exact else 1e-12)


def test_members_are_told_from_others():
    domain = Box(0.0, np.ones(3)).intersect(jnp.ones(3), 1.0)
    assert bool(domain.contains(jnp.full(3, 1 / 3)))
    assert not bool(domain.contains(jnp.full(3, 0.34)))
    assert not bool(domain.contains(jnp.array([1.1, -0.1, 0.0])))
    assert not bool(domain.contains(jnp.array([0.1, jnp.nan, 0.0])))


def test_a_set_built_in_float32_answers_in_float64():
    with jax.enable_x64(False):
        domain = ProbabilitySimplex(3).intersect(jnp.array([1.0, 0.0, 0.0]), 0.25)
    vertex = domain.lmo(jnp.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(vertex.dense(), [0.25, 0.75, 0.0])
    assert vertex.dense().dtype == jnp.float64


def test_intersections_compose():
    simplex, (at_once, _, rows, b) = INNER["simplex"][0], cut("simplex", "three")
    in_turn = simplex.intersect(rows[0], b[0]).intersect(rows[1:], b[1:])
    assert eqx.tree_equal(at_once, in_turn)
    assert in_turn.domain is simplex  # pyright: ignore[reportAttributeAccessIssue]


def test_decisions_may_be_trees():
    pair = Product({"a": ProbabilitySimplex(3), "b": L2Ball((2, 2), 1.0)})
    A = {"a": np.array([1.0, 2.0, 3.0]), "b": np.ones((2, 2))}
    domain = pair.intersect(A, 0.5)

    def in_set(a, b):
        total = A["a"] @ a + cp.sum(b)
        return [a >= 0, cp.sum(a) == 1, cp.norm(b, "fro") <= 1, total <= 0.5]

    rng = np.random.default_rng(0)
    for _ in range(5):
        direction = {"a": jnp.asarray(rng.standard_normal(3)), "b": jnp.asarray(rng.standard_normal((2, 2)))}
        a, b = cp.Variable(3), cp.Variable((2, 2))
        costs = {name: np.asarray(leaf) for name, leaf in direction.items()}
        objective = cp.Minimize(costs["a"] @ a + cp.sum(cp.multiply(costs["b"], b)))
        expected = cp.Problem(objective, in_set(a, b)).solve(solver=cp.CLARABEL)
        vertex = domain.lmo(direction)
        assert float(vertex.dot(direction)) == pytest.approx(expected, abs=1e-6)
        assert bool(domain.contains(vertex.dense(), 1e-9))


@pytest.mark.parametrize("inner, most", slow_but([("l2", 22)], [("simplex", 4), ("box", 10), ("l2", 22)]))
def test_one_half_space_takes_a_handful_of_calls(inner, most):
    _, _, A, b = cut(inner, "one")
    counted = Counted(INNER[inner][0])
    domain = counted.intersect(A[0], b[0])
    directions = np.random.default_rng(1).standard_normal((20, *domain.shape))
    asked = eqx.filter_jit(lambda direction, guess: domain.lmo(direction, guess))

    def calls(guess_of):
        counted.reset()
        for direction in directions:
            asked(jnp.asarray(direction), guess_of(direction))
        return counted.calls / len(directions)

    cold = calls(lambda direction: domain.vertex())
    assert cold <= most
    known = {direction.tobytes(): domain.lmo(jnp.asarray(direction)) for direction in directions}
    assert calls(lambda direction: known[direction.tobytes()]) < 1.5  # the guess is the answer: one call proves it


def test_emptiness_is_proven():
    A, b = np.array([[1.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]), np.array([0.5, -0.4, -0.3])
    simplex = ProbabilitySimplex(3)
    simplex.intersect(A[:2], b[:2])
    with pytest.raises(InfeasibleError, match=r"no point of the set meets all half-spaces: with the weights") as raised:
        simplex.intersect(A, b)
    multiplier, bound = raised.value.multiplier, raised.value.bound
    assert np.all(multiplier >= 0) and bound == pytest.approx(0.2 / 3)
    corners = np.eye(3)
    assert np.min((corners @ A.T - b) @ multiplier) >= bound - 1e-12
    with pytest.raises(InfeasibleError, match=r"weights \(1\) .* at least 1 everywhere"):
        L2Ball(4, 1.0).intersect(jnp.array([0.0, 3.0, 4.0, 0.0]), -6.0)


def test_a_round_set_may_be_touched():
    touched = L2Ball(3, 1.0).intersect(jnp.array([0.0, 0.6, 0.8]), -1.0)
    np.testing.assert_allclose(touched.start(), [0.0, -0.6, -0.8], atol=1e-4)
    vertex = touched.lmo(jnp.array([1.0, 1.0, 1.0]))
    assert bool(touched.contains(vertex.dense(), 1e-8))


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda ball: ball.intersect(jnp.ones(3), 1.0), r"the domain's shape \(4,\).* got \(3,\)"),
        (lambda ball: ball.intersect(jnp.ones((2, 4)), jnp.ones(3)), r"each of the 2 rows of A, got shape \(3,\)"),
        (lambda ball: ball.intersect(jnp.full(4, jnp.nan), 1.0), "A must be finite"),
        (lambda ball: ball.intersect(jnp.ones(4), float("inf")), "b must be finite"),
        (lambda ball: Product({"a": ball}).intersect(jnp.ones(4), 1.0), "A must be a tree like the domain's shape"),
        (lambda ball: ball.intersect(jnp.zeros((0, 4)), []), "A must have at least one row, got none"),
        (lambda ball: ball.intersect([1, 0], 1.0), r"got \(2,\)"),
    ],
)
def test_bad_half_spaces_are_refused_in_one_sentence(build, message):
    with pytest.raises(DomainError, match=message):
        build(L2Ball(4, 1.0))


def test_the_lowest_value_of_a_thin_set_is_not_too_high_in_float32():
    """Multipliers are in the thousands: without an allowance, rounding put it 22 last bits above the minimum."""
    rng = np.random.default_rng(320)
    A, direction = rng.uniform(size=6).astype(np.float32), rng.normal(size=6).astype(np.float32)
    with jax.enable_x64(False):
        domain = Intersection(ProbabilitySimplex(6), A, np.float32(A.min() + 1e-5))
        lowest = float(eqx.filter_jit(lambda domain: domain.lowest(jnp.asarray(direction)))(domain))
    rows, bound = np.asarray(domain.rows, float), np.asarray(domain.bound, float)
    exact = linprog(direction.astype(float), rows, bound, [np.ones(6)], [1.0], bounds=(0, 1)).fun
    assert exact - 1e-2 <= lowest <= exact + 1e-9
