"""What the tests of domains share: directions to ask, solvers to compare with, and sets given by their vertices."""

import contextlib
import itertools
import math
import warnings

import cvxpy as cp
import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog
from slow_tools import first_of_each, slow_but

from cocoax import DomainError
from cocoax.core import tree
from cocoax.testing import check_domain

COUNT = 48  # directions in a batch
few_batches = hypothesis.settings(
    max_examples=5,
    phases=[hypothesis.Phase.generate],
    suppress_health_check=[hypothesis.HealthCheck.large_base_example, hypothesis.HealthCheck.data_too_large],
)


@st.composite
def batches(draw, shape, scales=30):
    """A stack of directions, or a tree of stacks: entries from few numbers, so that many tie or are zero; one
    direction is zero, one constant, and of matrices one is the identity and some have rank one. Sizes are from
    10**-scales to 10**scales."""
    numbers = st.floats(-1, 1).map(lambda x: round(x, 6)) | st.integers(-2, 2).map(float)

    def stack(shape):
        pool = np.array(draw(st.lists(numbers, min_size=3, max_size=40)))
        size = COUNT * math.prod(shape)
        picks = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
        drawn = pool[picks % len(pool)].reshape(COUNT, *shape)
        if len(shape) == 2:
            drawn[::6] = drawn[::6, :, :1] * drawn[::6, :1, :]
            drawn[1] = np.eye(*shape)
        drawn[2], drawn[3] = 0, pool[0]
        return drawn

    stacks = jax.tree.map(stack, shape, is_leaf=tree.is_shape)
    powers = draw(st.lists(st.integers(-scales, scales), min_size=COUNT, max_size=COUNT))
    sizes = np.where(np.arange(COUNT) % 2, 10.0 ** np.array(powers), 1.0)
    return jax.tree.map(lambda leaf: leaf * sizes.reshape(-1, *[1] * (leaf.ndim - 1)), stacks)


def some_directions(shape, count=14):
    """A stack as `batches` draws them, always the same and of size 1: random, tied, zero, constant, of low rank."""
    rng = np.random.default_rng(0)

    def stack(shape):
        drawn = rng.standard_normal((count, *shape))
        drawn[::3] = np.round(drawn[::3])
        drawn[1::6] *= rng.random(drawn[1::6].shape) < 0.5
        drawn[1:4] = np.zeros(shape), np.ones(shape), -np.ones(shape)
        if len(shape) == 2:
            drawn[4:7] = np.eye(*shape), -np.eye(*shape), np.outer(np.arange(shape[0]), np.ones(shape[1]))
        return drawn

    return jax.tree.map(stack, shape, is_leaf=tree.is_shape)


def unstacked(stack):
    """The directions of a stack, one by one."""
    leaves, structure = jax.tree.flatten(stack)
    return [jax.tree.unflatten(structure, parts) for parts in zip(*leaves)]


@eqx.filter_jit
def answers(domain, asked):
    """The LMO's points for a stack of directions."""
    return jax.vmap(lambda direction: domain.lmo(direction).dense())(asked)


def check_every(contracts, directions=16):
    """A test that every domain of a dict keeps its contract. The fast run has the first domain of each class in
    float64, and the first with each base class in float32; in float32 it only traces the others."""
    fast = [(name, "float64") for name in first_of_each(type, contracts)]
    fast += [(name, "float32") for name in first_of_each(lambda domain: type(domain).__base__, contracts)]

    @pytest.mark.parametrize("name, dtype", slow_but(fast, itertools.product(contracts, ("float64", "float32"))))
    def test_every_domain_keeps_its_contract(name, dtype):
        check_domain(contracts[name], key=jax.random.key(1), directions=directions, dtypes=[dtype])
        if dtype == "float64":
            trace_in_float32(contracts[name])

    return test_every_domain_keeps_its_contract


def trace_in_float32(domain):
    """All that is asked of a domain stays in float32; nothing is computed."""

    def asked(x):
        vertex = domain.lmo(x)
        warm = domain.lmo(x, vertex)
        parts = [vertex.dense(), warm.dense(), vertex.mix(x, 0.5), vertex.dot(x), domain.tangent(x), domain.support(x)]
        for method in (domain.contains, domain.project):
            with contextlib.suppress(DomainError):  # not all domains can
                parts.append(method(x))
        return parts

    given = jax.eval_shape(lambda: tree.astype(domain.start(), jnp.float32))
    dtypes = {leaf.dtype for leaf in jax.tree.leaves(jax.eval_shape(asked, given))}
    assert dtypes <= {np.dtype("float32"), np.dtype(bool)}


def check_minima(domain, asked, minimum, tol=1e-9, most=None):
    """The LMO attains what `minimum` says for each direction of a stack, or the first ones, and refuses NaN."""
    with pytest.raises(DomainError, match="must be finite, got NaN"):
        domain.lmo(jax.tree.map(lambda leaf: np.full_like(leaf[0], np.nan), asked))
    check_values(domain, asked, answers(domain, jax.tree.map(jnp.asarray, asked)), minimum, tol, most)


def check_minima_by_a_solver(domain, asked, generic):
    """Where a formula checks all directions: some of each kind, because a solver takes milliseconds for one."""
    check_minima(domain, asked, generic.minimum, generic.tol, most=12)


def check_values(domain, asked, points, minimum, tol, most=None):
    """Relative to the largest value that a direction of its length could have."""
    points = unstacked(jax.tree.map(np.asarray, points))
    reach = max(map(_length, points)) + _length(jax.tree.map(np.asarray, domain.start()))
    for direction, point in zip(unstacked(asked)[:most], points):
        largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(direction)) or 1.0
        unit = jax.tree.map(lambda leaf, size=largest: leaf / size, direction)
        pairs = list(zip(jax.tree.leaves(unit), jax.tree.leaves(point)))
        length = _length(unit)
        found = sum(np.vdot(one, other) for one, other in pairs)
        assert found == pytest.approx(minimum(unit), rel=0, abs=tol * reach * (length or 1)), direction


def _length(x):
    return sum(np.sum(leaf.astype(float) ** 2) for leaf in jax.tree.leaves(x)) ** 0.5


class Generic:
    """min <direction, x> and min |x - target|^2 over a set that CVXPY knows, solved by Clarabel."""

    tol = 1e-6

    def __init__(self, domain, describe):
        shapes, self.structure = jax.tree.flatten(domain.shape, is_leaf=tree.is_shape)
        self.given = [cp.Parameter(shape) for shape in shapes]
        self.found = [cp.Variable(shape) for shape in shapes]
        inside = describe(jax.tree.unflatten(self.structure, self.found))
        pairs = list(zip(self.given, self.found))
        linear = sum(cp.sum(cp.multiply(direction, x)) for direction, x in pairs)
        distance = sum(cp.sum_squares(x - target) for target, x in pairs)
        self.linear = cp.Problem(cp.Minimize(linear), inside)
        self.nearest = cp.Problem(cp.Minimize(distance), inside)

    def solve(self, problem, given):
        for parameter, value in zip(self.given, jax.tree.leaves(given)):
            parameter.value = np.asarray(value, float)
        with warnings.catch_warnings():  # on degenerate sets it misses its 1e-10, but not our tolerance
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)

    def minimum(self, direction):
        return self.solve(self.linear, direction)

    def project(self, x):
        self.solve(self.nearest, x)
        return jax.tree.unflatten(self.structure, [variable.value for variable in self.found])


def check_projections(domain, generic, project=None):
    """Projections are the solver's. `project` answers a stack of `COUNT`; by default it is compiled here."""
    project = eqx.filter_jit(lambda stack: jax.vmap(domain.project)(stack)) if project is None else project
    given = jax.tree.map(lambda leaf: np.resize(leaf, (COUNT, *leaf.shape[1:])), some_directions(domain.shape))
    found = project(jax.tree.map(jnp.asarray, given))
    for x, nearest in list(zip(unstacked(given), unstacked(jax.tree.map(np.asarray, found))))[:14]:
        expected = generic.project(x)
        pairs = list(zip(*map(jax.tree.leaves, (x, nearest, expected))))
        away = sum(np.sum((a - c) ** 2) for a, _, c in pairs) ** 0.5
        # |nearest - expected|^2 is at most the solver's gap and infeasibility, 1e-10 (1 + away^2 + 2 away)
        for _, one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * (1 + away))


def check_frank_wolfe(domain, describe, steps=1000):
    """Frank-Wolfe with line search finds the optimum of a quadratic that CVXPY finds over the set."""
    size = domain.dimension
    rng = np.random.default_rng(2)
    factor = np.eye(size) + 0.3 * rng.standard_normal((size, size)) / size**0.5
    target = float(domain.diameter(2) + 1) * rng.standard_normal(size)

    def loss(x):
        return jnp.sum((factor @ x.reshape(-1) - target) ** 2)

    def step(state, _):
        x, guess = state
        gradient = jax.grad(loss)(x)
        vertex = domain.lmo(gradient, guess)
        move = vertex.dense() - x
        bend = jnp.sum((factor @ move.reshape(-1)) ** 2)
        best = jnp.clip(-tree.dot(gradient, move) / jnp.where(bend > 0, 2 * bend, 1), 0, 1)
        return (vertex.mix(x, best), vertex), None

    start = domain.start(), domain.vertex()
    found = loss(eqx.filter_jit(lambda: jax.lax.scan(step, start, length=steps)[0][0])())
    x = cp.Variable(domain.shape)
    distance = cp.sum_squares(factor @ cp.vec(x, order="C") - target)
    optimum = cp.Problem(cp.Minimize(distance), describe(x)).solve(solver=cp.CLARABEL)
    assert optimum * (1 - 1e-6) <= float(found) <= optimum * (1 + 1e-3)


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


def lowest(vertices):
    """min <direction, v> over the vertices, the rows."""
    return lambda direction: np.min(vertices @ direction.ravel())


def hull(vertices):
    """The mixtures of the vertices, for CVXPY."""

    def inside(x):
        weights = cp.Variable(len(vertices), nonneg=True)
        return [cp.sum(weights) == 1, cp.vec(x, order="C") == vertices.T @ weights]

    return inside


def check_diameters(domain, vertices, *, exact):
    """Diameters are those of the listed vertices, or not much larger."""
    reach = np.linalg.norm(vertices, axis=1).max()
    for ord in (1, 2, np.inf):
        widest = max(np.linalg.norm(vertices - vertex, ord, axis=1).max() for vertex in vertices)
        found = float(domain.diameter(ord))
        assert found >= widest * (1 - 1e-8)
        assert found <= 1.2 * widest + 1e-9 * reach  # the bounds were at most 1.11 times the truth on these sets
        if exact or ord == np.inf:
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
