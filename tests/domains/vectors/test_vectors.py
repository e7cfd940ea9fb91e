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
from domain_tools import (
    Generic,
    batches,
    check_every,
    check_frank_wolfe,
    check_minima,
    check_minima_by_a_solver,
    check_projections,
    few_batches,
    hull,
    lowest,
    some_directions,
)
from slow_tools import one_of_each_class, slow_but

from cocoax import DomainError
from cocoax.core import tree
from cocoax.domains import (
    Box,
    CappedSimplex,
    Diamond,
    Ellipsoid,
    GroupLassoBall,
    GroupMaxBall,
    HyperSimplex,
    KNormBall,
    KSparse,
    LinfBall,
    LpBall,
    OWLBall,
    PartitionMatroid,
    Permutahedron,
    ReverseKnapsack,
    UnitHyperSimplex,
    UnitSimplex,
    ZeroOneCube,
    matroid,
)
from cocoax.domains.vectors.simplices import onto_capped_simplex

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
    "matroid of trees": (matroid(5, is_forest), hull(TREES), TREES),
    "ZeroOneCube": (ZeroOneCube(3), lambda x: [x >= 0, x <= 1], subsets(3, range(4))),
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
    return lambda d: -1.5 * np.linalg.norm(d.ravel(), q)


def in_groups(x):
    return [sum(cp.norm(x[group]) for group in GROUPS) <= 2]


def ellipsoid_minimum(d):
    return d @ SHIFT - np.sqrt(1.7 * d @ np.linalg.solve(MATRIX, d))


# the set, the set as CVXPY knows it, and min <d, x> by duality
CURVED = {
    "l1": (LpBall((2, 2), 1.5, 1), lp(1), dual_norm(1)),
    "l1.5": (LpBall((2, 2), 1.5, 1.5), lp(1.5), dual_norm(1.5)),
    "l2": (LpBall((2, 2), 1.5, 2), lp(2), dual_norm(2)),
    "l3": (LpBall(4, 1.5, 3), lp(3), dual_norm(3)),
    "linf": (LpBall((2, 2), 1.5, np.inf), lp("inf"), dual_norm(np.inf)),
    "groups": (
        GroupLassoBall(GROUPS, 2.0),
        in_groups,
        lambda d: -2 * max(np.linalg.norm(d[group]) for group in GROUPS),
    ),
    "groups, p=1.5": (
        GroupLassoBall(GROUPS, 2.0, p=1.5),
        lambda x: [sum(cp.pnorm(x[group], 1.5, approx=False) for group in GROUPS) <= 2],
        lambda d: -2 * max(np.linalg.norm(d[group], 3) for group in GROUPS),
    ),
    "largest group": (
        GroupMaxBall(GROUPS, 2.0),
        lambda x: [cp.norm(x[group]) <= 2 for group in GROUPS],
        lambda d: -2 * sum(np.linalg.norm(d[group]) for group in GROUPS),
    ),
    "largest group, p=1": (
        GroupMaxBall(GROUPS, 2.0, p=1),
        lambda x: [cp.norm1(x[group]) <= 2 for group in GROUPS],
        lambda d: -2 * sum(np.abs(d[group]).max() for group in GROUPS),
    ),
    "ellipsoid": (
        Ellipsoid(MATRIX, SHIFT, 1.7),
        lambda x: [cp.quad_form(x - SHIFT, MATRIX) <= 1.7],
        ellipsoid_minimum,
    ),
}
DOMAINS = {name: case[:2] for name, case in (POLYTOPES | CURVED).items()}
WITHOUT_PROJECTION = {"l1.5", "l3", "ellipsoid", "k-norm", "k-norm of nearly all", "owl", "matroid of trees"}
WITHOUT_PROJECTION |= {"groups, p=1.5", "largest group, p=1"}
PROJECTABLE = [name for name in DOMAINS if name not in WITHOUT_PROJECTION]
# those that differ from another one by numbers only
ALIKE = {"equally capped", "exactly 4 of 5", "at most 3 of 4", "k-norm of nearly all", "l2", "l3", "linf"}
ALIKE |= {"groups, p=1.5", "largest group, p=1"}
CONTRACTS = {name: domain for name, (domain, _) in DOMAINS.items() if name not in ALIKE}
# of those, the ones that have no other exponent either
SAME = {"equally capped", "exactly 4 of 5", "at most 3 of 4", "k-norm of nearly all"}


def but_the_same(names):
    return slow_but([name for name in names if name not in SAME], names)


@functools.cache
def generic(name):
    return Generic(*DOMAINS[name])


@functools.cache
def batched(name, method):
    domain = DOMAINS[name][0]
    return eqx.filter_jit(lambda asked: jax.vmap(getattr(domain, method))(asked))


test_every_domain_keeps_its_contract = check_every(CONTRACTS)


@pytest.mark.parametrize("name", but_the_same(DOMAINS))
@few_batches
@hypothesis.given(data=st.data())
def test_lmo_agrees_with_enumeration_or_duality_and_a_generic_solver(name, data):
    domain, _, known = (POLYTOPES | CURVED)[name]
    asked = data.draw(batches(domain.shape))
    check_minima(domain, asked, known if callable(known) else lowest(known), 1e-12)
    check_minima_by_a_solver(domain, asked, generic(name))


@eqx.filter_jit
@functools.partial(jax.vmap, in_axes=(None, 0))
def certify(domain, x):
    """The projection of x, and what proves it."""
    p = domain.project(x)
    away = p - x
    length = jnp.maximum(tree.norm(away), 1e-300)
    gap = tree.dot(away / length, p) - domain.lmo(away).dot(away / length)
    rounded = 4 * jnp.finfo(float).eps * (tree.norm(x) + tree.norm(p)) / length  # what of the direction is rounding
    return p, gap, rounded, tree.norm(domain.project(p) - p), domain.contains(p, 1e-9)


@pytest.mark.parametrize("name", but_the_same(PROJECTABLE))
def test_projection_agrees_with_a_generic_solver(name):
    domain = DOMAINS[name][0]
    check_projections(domain, generic(name), lambda stack: certify(domain, stack)[0])


@pytest.mark.parametrize("name", but_the_same(PROJECTABLE))
@few_batches
@hypothesis.given(data=st.data())
def test_projections_are_certified_by_the_lmo(name, data):
    """p is nearest to x iff <p - x, p - v> <= 0 for all v in X; also for x far away and with ties."""
    domain = DOMAINS[name][0]
    _, gaps, rounded, moved, inside = certify(domain, jnp.asarray(data.draw(batches(domain.shape, scales=20))))
    reach = float(domain.diameter(1)) + float(tree.norm(domain.start()))
    assert np.all(np.asarray(gaps) <= (1e-9 + np.asarray(rounded)) * reach)
    assert np.all(np.asarray(moved) <= 1e-9 * reach)
    assert np.all(inside)


@pytest.mark.parametrize("name", POLYTOPES)
@pytest.mark.parametrize("ord", [1, 2, np.inf])
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
    assert float(CappedSimplex(np.ones(4), 3.0).diameter(ord)) == pytest.approx(2 ** (1 / ord))  # one cap is not full
    # three equal parts cannot be shared out into two halves
    assert float(CappedSimplex(np.ones(3), 1.5).diameter(1)) == 3


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
@pytest.mark.parametrize("ord", [1, 2, np.inf])
def test_lp_diameter_is_attained_at_a_coordinate_or_a_diagonal(p, ord):
    unit = np.stack([np.eye(5)[0], np.ones(5)])
    ends = 2 * 1.5 * unit / np.linalg.norm(unit, p, axis=1, keepdims=True)
    widest = np.max(np.linalg.norm(ends, ord, axis=1))
    assert float(LpBall(5, 1.5, p).diameter(ord)) == pytest.approx(widest)


def test_groups_may_be_given_as_labels():
    assert eqx.tree_equal(GroupLassoBall([0, 1, 1, 0, 1], 2.0), GroupLassoBall(GROUPS, 2.0))


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
@pytest.mark.parametrize("ord", [1, 2, np.inf])
def test_group_diameters_are_attained_at_a_coordinate_or_a_diagonal(p, ord):
    ends = [[np.eye(len(group))[0], np.ones(len(group)) / np.linalg.norm(np.ones(len(group)), p)] for group in GROUPS]
    longest = [max(np.linalg.norm(end, ord) for end in each) for each in ends]
    assert float(GroupLassoBall(GROUPS, 2.0, p).diameter(ord)) == pytest.approx(4 * max(longest))
    assert float(GroupMaxBall(GROUPS, 2.0, p).diameter(ord)) == pytest.approx(4 * np.linalg.norm(longest, ord))


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
    sizes = 10.0 ** np.random.default_rng(1).uniform(-15, 15, (100, 1))
    asked = jnp.asarray(sizes * some_directions((4,), 100), dtype)
    points = np.asarray(jax.vmap(lambda d: domain.lmo(d).dense())(asked), float)
    largest = np.max(np.abs(asked), axis=1, keepdims=True)
    asked = np.asarray(asked, float) / np.where(largest > 0, largest, 1)
    with np.errstate(under="ignore"):
        expected = -(np.sum(np.abs(asked) ** (p / (p - 1)), axis=1) ** (1 - 1 / p))
        sizes = np.sum(np.abs(points) ** p, axis=1) ** (1 / p)
    np.testing.assert_allclose(np.sum(points * asked, axis=1), expected, rtol=tol, atol=tol)
    np.testing.assert_allclose(sizes, 1, rtol=tol)
    assert bool(jnp.all(jax.vmap(domain.contains)(jnp.asarray(points, dtype))))


@pytest.mark.parametrize("name", one_of_each_class({name: domain for name, (domain, _) in DOMAINS.items()}))
def test_frank_wolfe_reaches_the_optimum(name):
    check_frank_wolfe(*DOMAINS[name])


@pytest.mark.parametrize("name", [name for name in DOMAINS if name != "matroid of trees"])
def test_no_other_points_lie_in_a_set(name):
    """Nor NaN; a millionth is allowed, and a thousandth of the way beyond a vertex is too far."""
    domain = DOMAINS[name][0]
    start, vertex = np.asarray(domain.start()), np.asarray(domain.vertex().dense())
    one = np.where(np.arange(start.size) == 0, np.nan, start.reshape(-1)).reshape(start.shape)
    far, way = start + 2 * float(domain.diameter(2)) + 1, vertex - start
    points = np.stack([one, np.full_like(start, np.nan), far, vertex + 1e-3 * way, vertex + 1e-8 * way, start])
    is_point = not way.any()
    assert batched(name, "contains")(points).tolist() == [False, False, False, is_point, True, True]


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
        (lambda: UnitSimplex(0), "n must be at least 1, got 0"),
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
        (lambda: Box([0.0], [1e308]), "upper is too large for float64"),
        (lambda: PartitionMatroid([[0, 1], [1, 2]], [1, 1]), "exactly once, got"),
        (lambda: PartitionMatroid([[0, 1], []], [1, 0]), "must be nonempty"),
        (lambda: PartitionMatroid([[0, 1], [2]], [1, 2]), "rank of group 1 must lie between 0 and its size 1, got 2"),
        (lambda: PartitionMatroid([[0, 1], [2]], [1]), r"one whole number for each of 2 groups, got \[1\]"),
        (lambda: PartitionMatroid([[0, 1]], [0.5]), r"one whole number for each of 1 groups, got \[0.5\]"),
        (lambda: matroid(0, bool), "n must be at least 1, got 0"),
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
        (lambda: HyperSimplex(3, 1).diameter(3), "ord must be 1, 2 or inf, got 3"),
        (lambda: HyperSimplex(5, 2.9), "k must be a whole number, got 2.9"),
        (lambda: KSparse(4, 2.5, 1.0), "k must be a whole number, got 2.5"),
        (lambda: Diamond(0, []), "at least one coordinate"),
        (lambda: LpBall(3, 1.0, "2"), "p must be a number, got '2'"),
        (lambda: LpBall(3, 1.0, None), "p must be a number, got None"),
        (lambda: LpBall(3, 1.0, [2]), r"p must be one number, got \[2\]"),
        (lambda: GroupLassoBall([["a"], [0]], 1.0), "must be a whole number, got 'a'"),
        (lambda: GroupLassoBall([[0.5], [0]], 1.0), "must be a whole number, got 0.5"),
        (lambda: GroupLassoBall([[0, 1]], 1.0, p=0.5), "p must be at least 1, got 0.5"),
        (lambda: GroupMaxBall([[0, 1]], -1.0), "radius must be positive, got -1.0"),
        (lambda: matroid(3, 5), "must be a function of a list of elements, got 5"),
        (lambda: matroid(2.5, bool), "n must be a whole number, got 2.5"),
        (lambda: matroid(3, lambda chosen: 1 / 0), "independent fails for the elements .*ZeroDivisionError"),
        (
            lambda: matroid(3, lambda chosen: len(chosen) < 2).contains(jnp.ones(3)),
            "cannot decide membership in a Matroid",
        ),
        (lambda: jax.jit(lambda k: HyperSimplex(3, k).start())(2), "k must be a whole number"),
    ],
)
def test_bad_sets_are_refused_in_one_sentence(build, message):
    with pytest.raises(DomainError, match=message):
        build()


def test_a_huge_exponent_is_the_largest_entrys_norm_in_short_numbers_too():
    huge, largest = LpBall(3, 1.0, 1e300), LinfBall(3, 1.0)
    x = jnp.array([1.0, -1.0, 0.5], jnp.float32)
    assert bool(huge.contains(x)) and not bool(huge.contains(1.01 * x))
    assert huge.lmo(x).dense().tolist() == largest.lmo(x).dense().tolist() == [-1.0, 1.0, -1.0]
    assert huge.project(3 * x).tolist() == largest.project(3 * x).tolist() == [1.0, -1.0, 1.0]
