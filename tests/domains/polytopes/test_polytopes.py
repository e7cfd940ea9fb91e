"""Polytopes agree with the list of their vertices, found by brute force, and with independent solvers."""

import itertools

import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from domain_tools import (
    answers,
    batches,
    check_diameters,
    check_every,
    check_frank_wolfe,
    check_membership,
    check_minima,
    corners,
    few_batches,
    hull,
    lowest,
)
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog

from cocoax import DomainError
from cocoax.domains.polytopes.couplings import Birkhoff, Transport
from cocoax.domains.polytopes.linear_program import LinearProgram, needs
from cocoax.domains.polytopes.polytopes import ConvexHull, Polytope


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
KNAPSACK, MOST = np.array([[2.0, 2.0, 1.0]]), np.array([2.0, 2.0, 2.5])
INTEGER = {
    name: (
        Polytope(KNAPSACK[0], 5.0, lower=0.0, upper=MOST, integer=integer),
        np.array([x for x in itertools.product(range(3), range(3), last) if KNAPSACK[0] @ x <= 5], float),
    )
    for name, integer, last in [("integer", True, (0, 1, 2)), ("mixed", [True, True, False], (0, 1, 2.5))]
}
DOMAINS |= INTEGER
EXACT_DIAMETERS = {"hull", "hull of one", "one point", "birkhoff", "birkhoff of one"}


ALIKE = {"hull of one", "inequalities", "no bounds", "integer", "birkhoff of one"}  # up to numbers; contracts are slow
CONTRACTS = {name: DOMAINS[name][0] for name in DOMAINS if name not in ALIKE}


test_every_domain_keeps_its_contract = check_every(CONTRACTS)


@pytest.mark.parametrize("name", DOMAINS)
@few_batches
@hypothesis.given(data=st.data())
def test_minima_are_those_of_the_vertices(name, data):
    domain, vertices = DOMAINS[name]
    check_minima(domain, data.draw(batches(domain.shape)), lowest(vertices), 1e-8)


@pytest.mark.parametrize("name", DOMAINS)
def test_diameters_are_those_of_the_vertices(name):
    check_diameters(*DOMAINS[name], exact=name in EXACT_DIAMETERS)


@pytest.mark.parametrize("name", [name for name in DOMAINS if name not in INTEGER])
def test_members_are_mixtures_of_vertices(name):
    check_membership(*DOMAINS[name])


@pytest.mark.parametrize("name", ["hull", "inequalities", "equalities", "transport", "birkhoff"])
def test_frank_wolfe_reaches_the_optimum(name):
    domain, vertices = DOMAINS[name]
    check_frank_wolfe(domain, hull(vertices))


def test_larger_assignments_and_transports_agree_with_scipy():
    directions = np.random.default_rng(0).standard_normal((6, 20, 30))
    supply = np.random.default_rng(1).dirichlet(np.ones(20))
    plans = answers(Transport(supply, np.full(30, 1 / 30)), jnp.asarray(directions))
    for direction, plan in zip(directions, plans):
        found = linprog(direction.ravel(), A_eq=sums(20, 30)[:-1], b_eq=np.r_[supply, np.full(29, 1 / 30)])
        assert float(np.vdot(direction, plan)) == pytest.approx(found.fun, abs=1e-9)
    square = directions[:, :, :20]
    for direction, point in zip(square, answers(Birkhoff(20), jnp.asarray(square))):
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
    first, second = answers(domain, jnp.asarray(tied)), answers(domain, jnp.asarray(tied[order]))
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
    nan = jnp.ones((1, 4, 4)).at[0, 1, 2].set(jnp.nan)  # in compiled code, where nothing can be refused
    assert np.isfinite(answers(Birkhoff(4), nan)).all()
    assert np.isnan(answers(Transport(np.ones(4), np.ones(4)), nan)).all()


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
        (lambda: Birkhoff(0), "n must be at least 1, got 0"),
        (lambda: Birkhoff(3).diameter(3), "ord must be 1, 2 or inf, got 3"),
        (lambda: Birkhoff(3).project(jnp.eye(3)), "no cheap exact projection"),
        (lambda: Birkhoff(2.5), "n must be a whole number, got 2.5"),
        (lambda: Polytope("a", [1.0]), "A must be a number, got 'a'"),
        (lambda: Polytope([[1.0, 2.0], [1.0]], [1.0, 1.0]), "A must be a number"),
        (lambda: Polytope(lower=[0.2, 0.2], upper=0.8, integer=True), "no point whose integer variables are whole"),
        (lambda: Polytope(lower=[0.0, 0.0], upper=1.5, integer=[True]), "integer must be True, False, or 2 of them"),
        (lambda: Polytope(lower=[0.0], upper=1.5, integer=True).contains(jnp.ones(1)), "hull of whole numbers is hard"),
        (lambda: jax.jit(lambda x: Polytope(lower=x, upper=1.0).start())(jnp.zeros(2)), "must be built outside jit"),
    ],
)
def test_bad_sets_are_refused_in_one_sentence(build, message):
    with pytest.raises(DomainError, match=message):
        build()
