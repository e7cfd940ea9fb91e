"""Polytopes agree with the list of their vertices, found by brute force, and with independent solvers."""

import itertools

import cvxpy as cp
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog

from cocoax import DomainError
from cocoax import _tree as tree
from cocoax.domains._host import LinearProgram, needs
from cocoax.domains.couplings import Birkhoff, Transport
from cocoax.domains.polytopes import ConvexHull, Polytope
from cocoax.testing import check_domain
from test_domains_vectors import hull, many_directions


def corners(A, b, C, d, lower, upper):
    """The vertices of {Ax <= b, Cx = d, l <= x <= u}: the feasible points where n constraints meet."""
    n = len(lower)
    A, b = np.r_[A, -np.eye(n), np.eye(n)], np.r_[b, -lower, upper]
    A, b = A[np.isfinite(b)], b[np.isfinite(b)]
    free = n - np.linalg.matrix_rank(C) if len(C) else n
    found = set()
    for active in itertools.combinations(range(len(A)), free):
        matrix, side = np.r_[C, A[list(active)]], np.r_[d, b[list(active)]]
        if np.linalg.matrix_rank(matrix) == n:
            x = np.linalg.lstsq(matrix, side)[0]
            if np.all(A @ x <= b + 1e-9) and np.allclose(matrix @ x, side):
                found.add(tuple(x.round(9)))
    return np.array(sorted(found))


def sums(m, n):
    return np.r_[np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))]


RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((7, 2, 2)) + 3
A, B = RNG.standard_normal((5, 4)), RNG.uniform(0.5, 1.5, 5)
C, D = np.array([[1.0, 1.0, 0.0, -1.0]]), np.array([0.3])
LOWER, UPPER = np.array([-1.0, 0.0, -2.0, -1.0]), np.array([1.0, 2.0, 0.5, 1.0])
NONE = np.zeros((0, 4)), np.zeros(0)
SUPPLY, DEMAND = np.array([1.0, 2.5]), np.array([0.5, 1.0, 2.0])
TRIANGLE = np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 2.0]]), np.array([1.0, 1.0, 2.0])
DOMAINS = {
    "hull": (ConvexHull(POINTS), POINTS.reshape(7, 4)),
    "hull of one": (ConvexHull([[1.0, 2.0]]), np.array([[1.0, 2.0]])),
    "inequalities": (Polytope(A, B, lower=LOWER, upper=UPPER), corners(A, B, *NONE, LOWER, UPPER)),
    "equalities": (
        Polytope(sparse.csr_array(A), B, sparse.coo_array(C), D, lower=LOWER, upper=UPPER),
        corners(A, B, C, D, LOWER, UPPER),
    ),
    "no bounds": (Polytope(*TRIANGLE), np.array([[-1.0, -1.0], [4.0, -1.0], [-1.0, 1.5]])),
    "large": (
        Polytope(1e5 * A, 1e12 * B, lower=1e7 * LOWER, upper=1e7 * UPPER),
        1e7 * corners(A, B, *NONE, LOWER, UPPER),
    ),
    "one point": (Polytope(C=np.eye(2), d=[1.0, -2.0]), np.array([[1.0, -2.0]])),
    "transport": (
        Transport(SUPPLY, DEMAND),
        corners(np.zeros((0, 6)), [], sums(2, 3), np.r_[SUPPLY, DEMAND], np.zeros(6), np.full(6, np.inf)),
    ),
    "birkhoff": (Birkhoff(4), np.array([np.eye(4)[list(p)].ravel() for p in itertools.permutations(range(4))])),
    "birkhoff of one": (Birkhoff(1), np.ones((1, 1))),
}
EXACT_DIAMETERS = {"hull", "hull of one", "one point", "birkhoff", "birkhoff of one"}


def batched_lmo(domain):
    return eqx.filter_jit(jax.vmap(lambda direction: domain.lmo(direction).dense()))


def check_against_vertices(domain, vertices, *, exact_diameters):
    """Minima and diameters are those of the listed vertices."""
    asked = many_directions(domain.shape)
    flat = asked.reshape(len(asked), -1)
    reach = np.linalg.norm(vertices, axis=1).max()
    points = np.asarray(batched_lmo(domain)(jnp.asarray(asked))).reshape(flat.shape)
    excess = np.abs(np.sum(points * flat, axis=1) - np.min(flat @ vertices.T, axis=1))
    assert np.all(excess <= 1e-8 * reach * np.linalg.norm(flat, axis=1))
    for ord in (1, 2):
        widest = max(np.linalg.norm(vertices - vertex, ord, axis=1).max() for vertex in vertices)
        found = float(domain.diameter(ord))
        assert found >= widest * (1 - 1e-8)
        assert found <= 1.2 * widest + 1e-9 * reach  # the bounds were at most 1.11 times the truth on these sets
        if exact_diameters:
            assert found == pytest.approx(widest, abs=1e-8 * reach)


def is_mixture(x, vertices):
    """Whether x is a convex combination of the vertices, as SciPy's HiGHS sees it."""
    matrix, side = np.r_[vertices.T, np.ones((1, len(vertices)))], np.r_[x, 1.0]
    return linprog(np.zeros(len(vertices)), A_eq=matrix, b_eq=side).status == 0


def check_membership(domain, vertices, more=()):
    """Points on lines from inside to a vertex and beyond are members just when they are mixtures; NaN is not one."""
    rng = np.random.default_rng(1)
    mixtures = rng.dirichlet(np.ones(len(vertices)), 24) @ vertices
    ends = vertices[rng.integers(len(vertices), size=24)]
    points = mixtures + rng.uniform(0.5, 1.5, (24, 1)) * (ends - mixtures)
    size = np.abs(vertices).max()
    points = np.concatenate([points, mixtures, mixtures + 0.01 * size * rng.standard_normal(mixtures.shape), *more])
    expected = [is_mixture(x / size, vertices / size) for x in points]
    contains = eqx.filter_jit(jax.vmap(lambda x: domain.contains(x)))
    stacked = jnp.asarray(points).reshape(-1, *domain.shape)
    np.testing.assert_array_equal(contains(stacked), expected)
    assert not np.any(contains(jnp.full_like(stacked, jnp.nan)))
    one = domain.start().reshape(-1).at[0].set(jnp.nan).reshape(domain.shape)
    assert bool(domain.contains(domain.start())) and not bool(domain.contains(one))


def check_frank_wolfe(domain, vertices, steps=1000):
    """Frank-Wolfe with line search finds the optimum of a quadratic that CVXPY finds over the listed vertices."""
    size = domain.dimension
    rng = np.random.default_rng(2)
    factor = np.eye(size) + 0.3 * rng.standard_normal((size, size)) / size**0.5
    target = float(domain.diameter(2) + 1) * rng.standard_normal(size)

    def loss(x):
        return jnp.sum((factor @ x.reshape(-1) - target) ** 2)

    def step(x, _):
        gradient = jax.grad(loss)(x)
        vertex = domain.lmo(gradient)
        move = vertex.dense() - x
        bend = jnp.sum((factor @ move.reshape(-1)) ** 2)
        best = jnp.clip(-tree.dot(gradient, move) / jnp.where(bend > 0, 2 * bend, 1), 0, 1)
        return vertex.mix(x, best), None

    found = loss(eqx.filter_jit(lambda: jax.lax.scan(step, domain.start(), length=steps)[0])())
    x = cp.Variable(size)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(factor @ x - target)), hull(vertices)(x))
    optimum = problem.solve(solver=cp.CLARABEL)
    assert optimum * (1 - 1e-6) <= float(found) <= optimum * (1 + 1e-3)


@pytest.mark.parametrize("name", [name for name in DOMAINS if name != "birkhoff of one"])  # compiles for long
def test_every_domain_keeps_its_contract(name):
    check_domain(DOMAINS[name][0], key=jax.random.key(1), directions=16)


@pytest.mark.parametrize("name", DOMAINS)
def test_minima_and_diameters_are_those_of_the_vertices(name):
    check_against_vertices(*DOMAINS[name], exact_diameters=name in EXACT_DIAMETERS)


@pytest.mark.parametrize("name", DOMAINS)
def test_members_are_mixtures_of_vertices(name):
    check_membership(*DOMAINS[name])


@pytest.mark.parametrize("name", ["hull", "inequalities", "equalities", "transport", "birkhoff"])
def test_frank_wolfe_reaches_the_optimum(name):
    check_frank_wolfe(*DOMAINS[name])


def test_larger_assignments_and_transports_agree_with_scipy():
    directions = np.random.default_rng(0).standard_normal((6, 20, 30))
    supply = np.random.default_rng(1).dirichlet(np.ones(20))
    plans = batched_lmo(Transport(supply, np.full(30, 1 / 30)))(jnp.asarray(directions))
    for direction, plan in zip(directions, plans):
        found = linprog(direction.ravel(), A_eq=sums(20, 30)[:-1], b_eq=np.r_[supply, np.full(29, 1 / 30)])
        assert float(np.vdot(direction, plan)) == pytest.approx(found.fun, abs=1e-9)
    square = directions[:, :, :20]
    for direction, point in zip(square, batched_lmo(Birkhoff(20))(jnp.asarray(square))):
        assert float(np.vdot(direction, point)) == pytest.approx(direction[linear_sum_assignment(direction)].sum())


def test_a_batch_reaches_the_host_once(monkeypatch):
    batches = []

    def counted(self, directions, minimise=LinearProgram.minimise):
        batches.append(directions.shape)
        return minimise(self, directions)

    monkeypatch.setattr(LinearProgram, "minimise", counted)
    domain = Polytope(A, B, lower=LOWER, upper=UPPER)
    jax.block_until_ready(jax.vmap(jax.vmap(domain.lmo))(jnp.ones((3, 5, 4))))
    assert batches == [(3, 5, 4)]


def test_the_same_set_is_traced_once():
    traces = []

    @eqx.filter_jit
    def minimum(domain, direction):
        traces.append(domain)
        return domain.lmo(direction).dense()

    domain = Polytope(A, B, lower=LOWER, upper=UPPER)
    for seed in range(3):
        minimum(domain, jnp.asarray(np.random.default_rng(seed).standard_normal(4)))
    assert len(traces) == 1
    for seed in range(3):
        minimum(ConvexHull(np.random.default_rng(seed).standard_normal((5, 4))), jnp.ones(4))
    assert len(traces) == 2


def test_answers_do_not_depend_on_what_was_asked_before():
    domain = Transport(np.ones(4), np.ones(4))
    tied = np.random.default_rng(0).integers(0, 2, (60, 4, 4)).astype(float)
    order = np.random.default_rng(1).permutation(60)
    first, second = batched_lmo(domain)(jnp.asarray(tied)), batched_lmo(domain)(jnp.asarray(tied[order]))
    np.testing.assert_array_equal(first[order], second)


def test_a_batch_of_hulls_is_a_batch_of_sets():
    corners = jnp.asarray(np.random.default_rng(0).standard_normal((3, 4, 2)))
    hulls = jax.vmap(ConvexHull)(corners)
    inside = jax.vmap(lambda hull, x: hull.contains(x))(hulls, corners.mean(axis=1))
    outside = jax.vmap(lambda hull, x: hull.contains(x))(hulls, corners.max(axis=1) + 0.1)
    assert np.all(inside) and not np.any(outside)
    widths = jax.vmap(lambda hull: hull.diameter(2))(hulls)
    assert float(widths[1]) == pytest.approx(float(ConvexHull(corners[1]).diameter(2)))


def test_nan_is_answered_and_not_waited_for():
    nan = jnp.ones((4, 4)).at[1, 2].set(jnp.nan)
    assert np.isfinite(Birkhoff(4).lmo(nan).dense()).all()
    assert np.isnan(Transport(np.ones(4), np.ones(4)).lmo(nan).dense()).all()


def test_float32_hulls_answer_at_any_scale():
    points = jnp.asarray(POINTS, jnp.float32)
    for scale in (1e-30, 1e30):
        hull = ConvexHull(np.asarray(scale * points))
        assert float(hull.diameter(2)) == pytest.approx(scale * float(ConvexHull(points).diameter(2)), rel=1e-5)
        expected = scale * np.min(POINTS.reshape(7, 4).sum(axis=1))
        direction = jnp.ones((2, 2), jnp.float32)
        assert float(hull.lmo(scale * direction).dot(direction)) == pytest.approx(expected, rel=1e-5)


def test_a_missing_package_is_named():
    with pytest.raises(DomainError, match=r"needs no_such_package: pip install 'cocoax\[lp\]'"):
        needs("no_such_package.part", "lp")


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: ConvexHull([1.0, 2.0]), r"points of shape \(k, ...\), got shape \(2,\)"),
        (lambda: ConvexHull(np.zeros((0, 3))), r"got shape \(0, 3\)"),
        (lambda: ConvexHull([[np.nan, 1.0]]), "points must be finite"),
        (lambda: Polytope([[1.0, 1.0]], [-1.0], lower=0.0), "polytope is empty"),
        (lambda: Polytope(lower=[0.0, 2.0], upper=1.0), "polytope is empty"),
        (lambda: Polytope([[1.0, 1.0]], [1.0], lower=[0.0, -np.inf]), "unbounded: entry 1 has no lower bound"),
        (lambda: Polytope(C=[[1.0, -1.0]], d=[0.0], lower=0.0), "unbounded: entry 0 has no upper bound"),
        (lambda: Polytope(C=np.ones((1, 300)), d=[0.0]), "unbounded: entry 0"),
        (lambda: Polytope([[1.0, 1.0]]), "A and b belong together"),
        (lambda: Polytope([[1.0, 1.0]], [1.0, 2.0]), r"one entry for each row of A, got \(2,\) and \(1, 2\)"),
        (lambda: Polytope([[1.0, 1.0]], [np.inf]), "A and b must be finite"),
        (lambda: Polytope([[1.0, 1.0]], [1.0], lower=np.zeros(3)), r"one number of variables, got \[2, 3\]"),
        (lambda: Polytope(lower=0.0, upper=1.0), r"one number of variables, got \[\]"),
        (lambda: Polytope(lower=[np.nan], upper=1.0), "got NaN"),
        (lambda: Transport([1.0, 2.0], [1.0, 1.0]), "one positive total, got 3.0 and 2.0"),
        (lambda: Transport([-1.0, 2.0], [1.0]), r"supply must be a vector with no negative entry, got \[-1.0, 2.0\]"),
        (lambda: Transport([1.0], 1.0), "demand must be a vector"),
        (lambda: Transport([0.0], [0.0]), "one positive total"),
        (lambda: Birkhoff(0), "at least one row, got n=0"),
        (lambda: Birkhoff(3).diameter(3), "ord must be 1 or 2, got 3"),
        (lambda: Birkhoff(3).project(jnp.eye(3)), "no cheap exact projection"),
    ],
)
def test_bad_sets_are_refused_in_one_sentence(build, message):
    with pytest.raises(DomainError, match=message):
        build()
