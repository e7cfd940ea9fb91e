"""The sets of vectors keep their contract, and agree with enumeration, with duality and with a generic solver."""

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

from cocoax import DomainError
from cocoax import _tree as tree
from cocoax.domains.balls import ZeroOneCube
from cocoax.domains.knapsacks import CappedSimplex, ReverseKnapsack
from cocoax.domains.matroids import PartitionMatroid, matroid
from cocoax.domains.norms import KNormBall, KSparse, LpBall, OWLBall
from cocoax.domains.selections import HyperSimplex, Permutahedron, UnitHyperSimplex
from cocoax.domains.simplices import UnitSimplex, onto_capped_simplex
from cocoax.domains.weighted import Diamond, Ellipsoid, GroupLassoBall
from cocoax.testing import check_domain
from test_domains import Generic, hard_directions

CAPS = np.array([0.5, 0.2, 0.9, 0.0, 3.0])
UPPER = np.array([1.0, 0.5, 2.0, 0.7])
VALUES = np.array([3.0, 1.0, -2.0, 1.0])
LOWER, HIGHER = np.array([-1.0, 0.0, 2.0]), np.array([1.0, 3.0, 2.0])
CENTRE, HALF = (LOWER + HIGHER) / 2, (HIGHER - LOWER) / 2
WEIGHTS = np.array([2.0, 1.0, 0.5, 0.0])
GROUPS = [[0, 3], [1, 2, 4]]
MATRIX = np.array([[2.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 4.0]])
SHIFT = np.array([1.0, -2.0, 0.5])
EDGES = [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)]


def is_forest(chosen):
    """Whether the edges have no cycle: the rank of their incidence matrix is their number."""
    incidence = np.zeros((4, len(EDGES)))
    for column, (tail, head) in enumerate(EDGES):
        incidence[[tail, head], column] = -1, 1
    return np.linalg.matrix_rank(incidence[:, chosen]) == len(chosen)


def rows(vectors):
    return np.array(list(vectors), float)


def subsets(n, sizes):
    return rows(v for v in itertools.product([0, 1], repeat=n) if sum(v) in sizes)


def signed(vectors):
    """Every vector with every choice of signs."""
    signs = rows(itertools.product([-1, 1], repeat=np.shape(vectors)[1]))
    return (rows(vectors)[:, None] * signs).reshape(-1, signs.shape[1])


def cap_corners(caps, total):
    """The points with every entry but one at 0 or its cap, and that one such that the sum is the total."""
    found = []
    for picks, free in itertools.product(itertools.product([0, 1], repeat=len(caps)), range(len(caps))):
        point = caps * picks
        point[free] += total - point.sum()
        if -1e-12 <= point[free] <= caps[free] + 1e-12:
            found.append(point)
    return rows(found)


def cover_corners(upper, total):
    box = upper * subsets(len(upper), range(len(upper) + 1))
    return np.concatenate([cap_corners(upper, total), box[box.sum(1) >= total]])


def owl_corners():
    sums = np.cumsum(WEIGHTS)
    return np.concatenate([signed(3.0 / sums[j - 1] * subsets(4, [j])) for j in range(1, 5)])


def hull(vertices):
    def inside(x):
        weights = cp.Variable(len(vertices), nonneg=True)
        return [cp.sum(weights) == 1, x == vertices.T @ weights]

    return inside


def in_permutahedron(x):
    tops = np.cumsum(np.sort(VALUES)[::-1])
    return [cp.sum(x) == tops[-1], *(cp.sum_largest(x, k) <= tops[k - 1] for k in range(1, 4))]


def in_owl(x):
    drops = WEIGHTS - np.append(WEIGHTS[1:], 0)
    return [sum(drop * cp.sum_largest(cp.abs(x), k) for k, drop in enumerate(drops, 1)) <= 3]


TREES = subsets(5, [3])[[is_forest(np.flatnonzero(row)) for row in subsets(5, [3])]]
EYE3, EYE4 = np.eye(3), np.eye(4)

# the set, the set as CVXPY knows it, and all its vertices
POLYTOPES = {
    "unit simplex": (
        UnitSimplex(4, 2.0),
        lambda x: [x >= 0, cp.sum(x) <= 2],
        np.concatenate([2 * EYE4, np.zeros((1, 4))]),
    ),
    "interval": (UnitSimplex(1), lambda x: [x >= 0, x <= 1], rows([[0], [1]])),
    "capped": (
        CappedSimplex(CAPS, 1.2),
        lambda x: [x >= 0, x <= CAPS, cp.sum(x) == 1.2],
        cap_corners(CAPS, 1.2),
    ),
    "equally capped": (
        CappedSimplex(np.full(5, 0.5)),
        lambda x: [x >= 0, x <= 0.5, cp.sum(x) == 1],
        0.5 * subsets(5, [2]),
    ),
    "exactly 2 of 5": (
        HyperSimplex(5, 2, 1.5),
        lambda x: [x >= 0, x <= 1.5, cp.sum(x) == 3],
        1.5 * subsets(5, [2]),
    ),
    "exactly 4 of 5": (HyperSimplex(5, 4), lambda x: [x >= 0, x <= 1, cp.sum(x) == 4], subsets(5, [4])),
    "all of 3": (HyperSimplex(3, 3, 2.0), lambda x: [x == 2], rows([[2, 2, 2]])),
    "at most 2 of 5": (
        UnitHyperSimplex(5, 2, 1.5),
        lambda x: [x >= 0, x <= 1.5, cp.sum(x) <= 3],
        1.5 * subsets(5, [0, 1, 2]),
    ),
    "at most 3 of 4": (
        UnitHyperSimplex(4, 3),
        lambda x: [x >= 0, x <= 1, cp.sum(x) <= 3],
        subsets(4, range(4)),
    ),
    "knapsack": (
        ReverseKnapsack(UPPER, 2.5),
        lambda x: [x >= 0, x <= UPPER, cp.sum(x) >= 2.5],
        cover_corners(UPPER, 2.5),
    ),
    "permutahedron": (Permutahedron(VALUES), in_permutahedron, rows(itertools.permutations(VALUES))),
    "partition": (
        PartitionMatroid(GROUPS, [1, 2]),
        lambda x: [x >= 0, x <= 1, cp.sum(x[[0, 3]]) == 1, cp.sum(x[[1, 2, 4]]) == 2],
        rows(v for v in subsets(5, [3]) if v[0] + v[3] == 1),
    ),
    "spanning trees": (matroid(5, is_forest), hull(TREES), TREES),
    "cube": (ZeroOneCube(3), lambda x: [x >= 0, x <= 1], subsets(3, range(4))),
    "diamond": (
        Diamond(LOWER, HIGHER),
        lambda x: [cp.sum(cp.abs(x - CENTRE)[:2] / HALF[:2]) <= 1, x[2] == 2],
        CENTRE + np.concatenate([HALF * EYE3, -HALF * EYE3]),
    ),
    "k-sparse": (
        KSparse(4, 2, 1.5),
        lambda x: [cp.norm1(x) <= 3, cp.norm_inf(x) <= 1.5],
        signed(1.5 * subsets(4, [2])),
    ),
    "k-norm": (
        KNormBall(4, 2, 1.5),
        lambda x: [cp.sum_largest(cp.abs(x), 2) <= 1.5],
        np.concatenate([signed(1.5 * EYE4), signed(np.full((1, 4), 0.75))]),
    ),
    "k-norm of nearly all": (
        KNormBall(4, 3, 1.5),
        lambda x: [cp.sum_largest(cp.abs(x), 3) <= 1.5],
        np.concatenate([signed(1.5 * EYE4), signed(np.full((1, 4), 0.5))]),
    ),
    "owl": (OWLBall(WEIGHTS, 3.0), in_owl, owl_corners()),
}


def lp(p):
    return lambda x: [cp.pnorm(cp.vec(x, order="C"), p, approx=False) <= 1.5]


def dual_norm(p):
    q = np.inf if p == 1 else 1 if p == np.inf else p / (p - 1)
    return lambda d: -1.5 * np.array([np.linalg.norm(row.ravel(), q) for row in d])


def in_groups(x):
    return [sum(cp.norm(x[group]) for group in GROUPS) <= 2]


def ellipsoid_minimum(d):
    return d @ SHIFT - np.sqrt(1.7 * np.sum(d * np.linalg.solve(MATRIX, d.T).T, axis=1))


# the set, the set as CVXPY knows it, and min <d, x> for a batch of directions by duality
CURVED = {
    "l1": (LpBall((2, 2), 1.5, 1), lp(1), dual_norm(1)),
    "l1.5": (LpBall((2, 2), 1.5, 1.5), lp(1.5), dual_norm(1.5)),
    "l2": (LpBall((2, 2), 1.5, 2), lp(2), dual_norm(2)),
    "l3": (LpBall(4, 1.5, 3), lp(3), dual_norm(3)),
    "linf": (LpBall((2, 2), 1.5, np.inf), lp("inf"), dual_norm(np.inf)),
    "groups": (
        GroupLassoBall(GROUPS, 2.0),
        in_groups,
        lambda d: -2 * np.hypot(d[:, 0], d[:, 3]).clip(np.linalg.norm(d[:, [1, 2, 4]], axis=1)),
    ),
    "ellipsoid": (
        Ellipsoid(MATRIX, SHIFT, 1.7),
        lambda x: [cp.quad_form(x - SHIFT, MATRIX) <= 1.7],
        ellipsoid_minimum,
    ),
}
DOMAINS = {name: case[:2] for name, case in (POLYTOPES | CURVED).items()}
WITHOUT_PROJECTION = {"l1.5", "l3", "ellipsoid", "k-norm", "k-norm of nearly all", "owl", "spanning trees"}
PROJECTABLE = [name for name in DOMAINS if name not in WITHOUT_PROJECTION]
# those that differ from another one by numbers only, or answer through a class that has its own test
ALIKE = {"equally capped", "exactly 4 of 5", "at most 3 of 4", "k-norm of nearly all", "l2", "l3", "linf", "cube"}


@functools.cache
def generic(name):
    return Generic(*DOMAINS[name])


@functools.cache
def batched(name, method):
    domain = DOMAINS[name][0]
    return eqx.filter_jit(lambda asked: jax.vmap(getattr(domain, method))(asked))


def many_directions(shape, scales=20):
    """Random, tied, with zeros, all zero, constant; of sizes from 1e-20 to 1e20."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((300, *shape))
    drawn[::3] = np.round(drawn[::3])
    drawn[1::6] *= rng.random((50, *shape)) < 0.5
    drawn[:3] = np.stack([np.zeros(shape), np.ones(shape), -np.ones(shape)])
    sizes = 10.0 ** rng.uniform(-scales, scales, len(drawn)) * (rng.random(len(drawn)) < 0.5)
    return drawn * np.where(sizes > 0, sizes, 1).reshape(-1, *[1] * len(shape))


@pytest.mark.parametrize("name", [name for name in DOMAINS if name not in ALIKE])
def test_every_domain_keeps_its_contract(name):
    check_domain(DOMAINS[name][0], key=jax.random.key(1), directions=16)


@pytest.mark.parametrize("name", DOMAINS)
def test_lmo_agrees_with_enumeration_or_duality(name):
    domain, _, known = (POLYTOPES | CURVED)[name]
    asked = many_directions(domain.shape)
    expected = known(asked) if callable(known) else np.min(asked @ known.T, axis=1)
    points = np.asarray(jax.vmap(lambda vertex: vertex.dense())(batched(name, "lmo")(jnp.asarray(asked))))
    found = np.sum((points * asked).reshape(len(asked), -1), axis=1)
    reach = np.max(np.linalg.norm(points.reshape(len(points), -1), axis=1))
    size = reach * np.linalg.norm(asked.reshape(len(asked), -1), axis=1)
    assert np.all(np.abs(found - expected) <= 1e-12 * size)


@pytest.mark.parametrize("name", DOMAINS)
def test_lmo_agrees_with_a_generic_solver(name):
    asked = hard_directions(DOMAINS[name][0])
    found = jax.vmap(lambda v, d: v.dot(d))(batched(name, "lmo")(jnp.stack(asked)), jnp.stack(asked))
    for direction, value in zip(asked, found):
        assert float(value) == pytest.approx(generic(name).minimum(direction), abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("name", PROJECTABLE)
def test_projection_agrees_with_a_generic_solver(name):
    given = jnp.stack(hard_directions(DOMAINS[name][0]))
    for x, found in zip(given, batched(name, "project")(given)):
        np.testing.assert_allclose(found, generic(name).project(x), atol=2e-4)


@pytest.mark.parametrize("name", PROJECTABLE)
def test_projections_are_certified_by_the_lmo(name):
    """p is nearest to x iff <p - x, p - v> <= 0 for all v in X; also for x far away and with ties."""
    domain = DOMAINS[name][0]

    @jax.vmap
    def certify(x):
        p = domain.project(x)
        away = p - x
        length = jnp.maximum(tree.norm(away), 1e-300)
        gap = tree.dot(away / length, p) - domain.lmo(away).dot(away / length)
        return gap, tree.norm(domain.project(p) - p), domain.contains(p, 1e-9)

    gaps, moved, inside = eqx.filter_jit(certify)(jnp.asarray(many_directions(domain.shape)))
    reach = float(domain.diameter(1)) + float(tree.norm(domain.start()))
    assert np.all(np.asarray(gaps) <= 1e-9 * reach)
    assert np.all(np.asarray(moved) <= 1e-9 * reach)
    assert np.all(inside)


@pytest.mark.parametrize("name", POLYTOPES)
@pytest.mark.parametrize("ord", [1, 2])
def test_diameter_is_that_of_the_vertices(name, ord):
    domain, _, vertices = POLYTOPES[name]
    widest = np.max(np.linalg.norm(vertices[:, None] - vertices, ord, axis=-1))
    assert float(domain.diameter(ord)) == pytest.approx(widest)


@pytest.mark.parametrize("ord", [1, 2])
def test_diameters_under_caps_are_upper_bounds(ord):
    rng = np.random.default_rng(0)
    for _ in range(25):
        upper = np.round(rng.random(4), 1) + 0.1
        total = rng.uniform(0.1, 1.0) * upper.sum()
        capped, covering = cap_corners(upper, total), cover_corners(upper, total)
        for domain, vertices in ((CappedSimplex(upper, total), capped), (ReverseKnapsack(upper, total), covering)):
            widest = np.max(np.linalg.norm(vertices[:, None] - vertices, ord, axis=-1))
            assert widest <= float(domain.diameter(ord)) + 1e-9
    # three equal parts cannot be shared out into two halves
    assert float(CappedSimplex(np.ones(3), 1.5).diameter(1)) == 3


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
@pytest.mark.parametrize("ord", [1, 2])
def test_lp_diameter_is_attained_at_a_coordinate_or_a_diagonal(p, ord):
    unit = np.stack([np.eye(5)[0], np.ones(5)])
    ends = 2 * 1.5 * unit / np.linalg.norm(unit, p, axis=1, keepdims=True)
    widest = np.max(np.linalg.norm(ends, ord, axis=1))
    assert float(LpBall(5, 1.5, p).diameter(ord)) == pytest.approx(widest)


def test_group_and_ellipsoid_diameters_are_attained():
    ball = GroupLassoBall(GROUPS, 2.0)
    assert float(ball.diameter(2)) == pytest.approx(4)
    assert float(ball.diameter(1)) == pytest.approx(2 * np.linalg.norm(2 / 3**0.5 * np.ones(3), 1))
    smallest = np.linalg.eigvalsh(MATRIX)[0]
    found = Ellipsoid(MATRIX, SHIFT, 1.7)
    assert float(found.diameter(2)) == pytest.approx(2 * (1.7 / smallest) ** 0.5)
    signs = rows(itertools.product([-1, 1], repeat=3))
    widest = 2 * np.sqrt(1.7 * np.max(np.sum(signs * np.linalg.solve(MATRIX, signs.T).T, axis=1)))
    assert widest <= float(found.diameter(1)) <= 1.05 * widest
    diagonal = Ellipsoid(np.diag([1.0, 4.0]), radius=9.0)
    assert float(diagonal.diameter(1)) == pytest.approx(2 * 3 * 1.25**0.5)


@pytest.mark.parametrize("p", [1 + 1e-12, 1 + 1e-6, 1.001, 1.1, 30.0, 1e4, 1e12, 1e300])
@pytest.mark.parametrize("dtype, tol", [(jnp.float32, 1e-5), (jnp.float64, 1e-13)])
def test_lp_is_safe_near_1_and_for_large_p(p, dtype, tol):
    domain = LpBall(4, 1.0, p)
    asked = jnp.asarray(many_directions((4,), scales=15)[:100], dtype)
    points = np.asarray(jax.vmap(lambda d: domain.lmo(d).dense())(asked), float)
    largest = np.max(np.abs(asked), axis=1, keepdims=True)
    asked = np.asarray(asked, float) / np.where(largest > 0, largest, 1)
    with np.errstate(under="ignore"):
        expected = -(np.sum(np.abs(asked) ** (p / (p - 1)), axis=1) ** (1 - 1 / p))
        sizes = np.sum(np.abs(points) ** p, axis=1) ** (1 / p)
    np.testing.assert_allclose(np.sum(points * asked, axis=1), expected, rtol=tol, atol=tol)
    np.testing.assert_allclose(sizes, 1, rtol=tol)
    assert bool(jnp.all(jax.vmap(domain.contains)(jnp.asarray(points, dtype))))


@pytest.mark.parametrize("name", DOMAINS)
def test_frank_wolfe_reaches_the_optimum(name):
    domain = DOMAINS[name][0]
    size = domain.dimension
    rng = np.random.default_rng(2)
    factor = np.eye(size) + 0.3 * rng.standard_normal((size, size)) / size**0.5
    target = float(domain.diameter(2) + 1) * rng.standard_normal(size)

    def loss(x):
        return jnp.sum((factor @ x.reshape(-1) - target) ** 2)

    def step(x, _):
        vertex = domain.lmo(jax.grad(loss)(x))
        move = vertex.dense() - x
        bend = jnp.sum((factor @ move.reshape(-1)) ** 2)
        best = jnp.clip(-tree.dot(jax.grad(loss)(x), move) / jnp.where(bend > 0, 2 * bend, 1), 0, 1)
        return vertex.mix(x, best), None

    found = loss(eqx.filter_jit(lambda: jax.lax.scan(step, domain.start(), length=1000)[0])())
    x = cp.Variable(domain.shape)
    distance = cp.sum_squares(factor @ cp.vec(x, order="C") - target)
    optimum = cp.Problem(cp.Minimize(distance), DOMAINS[name][1](x)).solve(solver=cp.CLARABEL)
    assert optimum * (1 - 1e-6) <= float(found) <= optimum * (1 + 1e-3)


@pytest.mark.parametrize("name", [name for name in DOMAINS if name != "spanning trees"])
def test_nan_lies_in_no_set(name):
    domain = DOMAINS[name][0]
    one = domain.start().reshape(-1).at[0].set(jnp.nan).reshape(domain.shape)
    assert not bool(domain.contains(one))
    assert not bool(domain.contains(jnp.full(domain.shape, jnp.nan)))
    assert not bool(domain.contains(domain.start() + 2 * domain.diameter(2) + 1))


@hypothesis.settings(max_examples=25)
@hypothesis.given(st.integers(0, 2**31), st.integers(-15, 15), st.integers(-6, 6))
def test_capped_projections_keep_the_total_at_any_scale(seed, scale, spread):
    """What is taken off is at most theta below the caps, and at least theta above zero."""
    rng = np.random.default_rng(seed)
    x = 10.0**scale * np.round(3 * rng.standard_normal((20, 6)), 1)
    caps = rng.random((20, 6)) * 10.0 ** rng.uniform(-abs(spread), 0, (20, 6))
    totals = rng.uniform(0.05, 1.0, 20) * caps.sum(1)
    caps = np.minimum(caps, totals[:, None])
    totals = np.minimum(totals, caps.sum(1))
    found = np.asarray(project_many(x, caps, totals))
    np.testing.assert_allclose(found.sum(1), totals, rtol=1e-10)
    rounding = 1e-12 * totals[:, None]
    lower = np.max(np.where(found < caps - rounding, x - found, -np.inf), axis=1)
    upper = np.min(np.where(found > rounding, x - found, np.inf), axis=1)
    assert np.all(lower <= upper + 1e-10 * (totals + np.abs(x).max(1)))


project_many = jax.jit(jax.vmap(onto_capped_simplex))


def test_sparse_vertices_combine_like_dense_ones():
    vertices = batched("exactly 2 of 5", "lmo")(jnp.asarray(many_directions((5,))))
    points = jax.vmap(lambda vertex: vertex.dense())(vertices)
    weights = jnp.linspace(-1, 1, len(points))
    np.testing.assert_allclose(vertices.combine(weights), weights @ points, atol=1e-10)


def test_sets_of_one_shape_share_a_compilation():
    traces = []

    @eqx.filter_jit
    def ask(domain, direction):
        traces.append(type(domain))
        return domain.lmo(direction).dense()

    direction = jnp.array([1.0, -2.0, 0.5])
    for scale in (1.0, 2.0):
        for domain in (
            CappedSimplex([0.5 * scale, 1.0, 1.0]),
            ReverseKnapsack([scale, 1.0, 2.0], 2.0),
            Permutahedron([scale, 0.0, 5.0]),
            PartitionMatroid([[0, 1], [2]], [int(scale), 0]),
            OWLBall([scale, 1.0, 0.0], scale),
            GroupLassoBall([[0, 1], [2]], scale),
            Ellipsoid(scale * np.eye(3), scale, scale),
            LpBall(3, scale, 1.5),
        ):
            ask(domain, direction)
    assert len(traces) == 8


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: UnitSimplex(0), "at least one coordinate, got n=0"),
        (lambda: CappedSimplex([0.3, 0.3]), "sum of caps must reach total=1.0, got 0.6"),
        (lambda: CappedSimplex([0.3, -1.0]), "caps must not be negative, got -1.0"),
        (lambda: CappedSimplex(0.5), r"caps must be a vector with one number per coordinate, got shape \(\)"),
        (lambda: CappedSimplex([1.0], total=-1.0), "total must be positive, got -1.0"),
        (lambda: HyperSimplex(3, 4), "k must lie between 1 and n=3, got 4"),
        (lambda: UnitHyperSimplex(3, 0), "k must lie between 1 and n=3, got 0"),
        (lambda: HyperSimplex(3, 1, value=0.0), "value must be positive, got 0.0"),
        (lambda: ReverseKnapsack([1.0, 1.0], 3.0), "sum of upper must reach total=3.0, got 2.0"),
        (lambda: Permutahedron(np.eye(2)), r"values must be a vector.*got shape \(2, 2\)"),
        (lambda: Permutahedron([1.0, np.inf]), "values must be finite"),
        (lambda: PartitionMatroid([[0, 1], [1, 2]], [1, 1]), "exactly once, got"),
        (lambda: PartitionMatroid([[0, 1], []], [1, 0]), "must be nonempty"),
        (lambda: PartitionMatroid([[0, 1], [2]], [1, 2]), "rank of group 1 must lie between 0 and its size 1, got 2"),
        (lambda: PartitionMatroid([[0, 1], [2]], [1]), r"one whole number for each of 2 groups, got \[1\]"),
        (lambda: PartitionMatroid([[0, 1]], [0.5]), r"one whole number for each of 1 groups, got \[0.5\]"),
        (lambda: matroid(0, bool), "at least one element, got n=0"),
        (lambda: matroid(2, lambda chosen: True), "one base only is a point, got rank 2 of n=2"),
        (lambda: ZeroOneCube(0), "every size in a shape must be at least 1"),
        (lambda: Diamond([1.0], [0.0]), "lower must not exceed upper, got 1.0 > 0.0"),
        (lambda: KSparse(3, 5, 1.0), "k must lie between 1 and n=3, got 5"),
        (lambda: KNormBall(3, 1, -1.0), "radius must be positive, got -1.0"),
        (lambda: OWLBall([1.0, 2.0], 1.0), r"weights must not increase.*got \[1.0, 2.0\]"),
        (lambda: OWLBall([0.0, 0.0], 1.0), "and the first be positive"),
        (lambda: OWLBall([1.0, -1.0], 1.0), "or be negative"),
        (lambda: OWLBall(1.0, 1.0), r"weights must be a vector with one number per rank, got shape \(\)"),
        (lambda: LpBall(3, 1.0, 0.5), "p must be at least 1, got 0.5"),
        (lambda: LpBall(3, 1.0, np.nan), "p must be at least 1, got nan"),
        (lambda: LpBall(3, 1.0, 3).project(jnp.ones(3)), "LpBall has no cheap exact projection"),
        (lambda: GroupLassoBall([[0], [2]], 1.0), r"exactly once, got \[\[0\], \[2\]\]"),
        (lambda: Ellipsoid(np.ones((2, 3))), r"matrix must be square, got shape \(2, 3\)"),
        (lambda: Ellipsoid(np.eye(2), np.zeros(3)), r"centre must have shape \(2,\), or be a number, got shape \(3,\)"),
        (lambda: Ellipsoid(-np.eye(2)), "must be positive definite, got the eigenvalue -1.0"),
        (lambda: Ellipsoid(np.array([[1.0, 0.5], [0.0, 1.0]])), "must be symmetric, got one that is off by 0.5"),
        (lambda: HyperSimplex(3, 1).diameter(3), "ord must be 1 or 2, got 3"),
    ],
)
def test_bad_sets_are_refused_in_one_sentence(build, message):
    with pytest.raises(DomainError, match=message):
        build()
