"""Every domain keeps its contract, and agrees with a generic solver."""

import functools
import importlib
import inspect
import pkgutil
from pathlib import Path

import cvxpy as cp
import equinox as eqx
import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax.domains
from cocoax import DomainError
from cocoax import _tree as tree
from cocoax.domains import (
    Box,
    L1Ball,
    L2Ball,
    LinfBall,
    NuclearNormBall,
    ProbabilitySimplex,
    Product,
    Spectraplex,
    from_lmo,
)
from cocoax.domains.base import AbstractDomain
from cocoax.testing import check_domain

LOWER, UPPER = np.array([-1.0, 0.0, 2.0]), np.array([1.0, 3.0, 2.0])
CORNERS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 3.0]])


def best_corner(numpy, direction):
    corners = numpy.asarray(CORNERS)
    return corners[numpy.argmin(corners @ direction)]


def polygon(numpy, host):
    return from_lmo(
        functools.partial(best_corner, numpy), start=CORNERS.mean(0), diameter={1: 5.0, 2: 13**0.5}, host=host
    )


def in_polygon(x):
    weights = cp.Variable(len(CORNERS), nonneg=True)
    return [cp.sum(weights) == 1, x == CORNERS.T @ weights]


def in_spectraplex(x):
    return [x >> 0, x == x.T, cp.trace(x) == 1.5]


DOMAINS = {
    "simplex": (ProbabilitySimplex(5, 2.0), lambda x: [x >= 0, cp.sum(x) == 2]),
    "point": (ProbabilitySimplex(1), lambda x: [x == 1]),
    "l1": (L1Ball((2, 3), 1.5), lambda x: [cp.sum(cp.abs(x)) <= 1.5]),
    "l2": (L2Ball((2, 2), 0.5), lambda x: [cp.norm(x, "fro") <= 0.5]),
    "linf": (LinfBall(4, 3.0), lambda x: [cp.norm(x, "inf") <= 3]),
    "box": (Box(LOWER, UPPER), lambda x: [x >= LOWER, x <= UPPER]),
    "nuclear": (NuclearNormBall((3, 4), 2.0), lambda x: [cp.normNuc(x) <= 2]),
    "nuclear exact": (NuclearNormBall((4, 2), 2.0, method="exact"), lambda x: [cp.normNuc(x) <= 2]),
    "nuclear krylov": (NuclearNormBall((3, 4), 2.0, method="krylov"), lambda x: [cp.normNuc(x) <= 2]),
    "spectraplex": (Spectraplex(3, 1.5), in_spectraplex),
    "spectraplex krylov": (Spectraplex(4, 1.5, method="krylov"), in_spectraplex),
    "product": (
        Product({"matrix": NuclearNormBall((2, 3), 2.0), "weights": ProbabilitySimplex(3)}),
        {"matrix": lambda x: [cp.normNuc(x) <= 2], "weights": lambda x: [x >= 0, cp.sum(x) == 1]},
    ),
    "oracle": (polygon(jnp, host=False), in_polygon),
    "oracle on the host": (polygon(np, host=True), in_polygon),
}
PROJECTABLE = [name for name in DOMAINS if "oracle" not in name]
SPECTRAL = {
    "nuclear": NuclearNormBall((3, 3), 1.0),
    "nuclear krylov": NuclearNormBall((3, 3), 1.0, method="krylov"),
    "spectraplex": Spectraplex(3),
    "spectraplex krylov": Spectraplex(3, method="krylov"),
}


def public_domains():
    """The concrete classes of `cocoax.domains` and its public modules."""
    found = set()
    for info in pkgutil.iter_modules(cocoax.domains.__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"cocoax.domains.{info.name}")
            found |= {
                each
                for name, each in vars(module).items()
                if inspect.isclass(each) and issubclass(each, AbstractDomain) and not name.startswith(("_", "Abstract"))
            }
    return found


def test_every_public_domain_is_checked():
    """In the `DOMAINS` of this file, or of another `test_domains_*.py`: name -> (domain, what it is compared with)."""
    files = sorted(path.stem for path in Path(__file__).parent.glob("test_domains*.py"))
    checked = {type(case[0]) for file in files for case in importlib.import_module(file).DOMAINS.values()}
    missing = {cls.__name__ for cls in public_domains() - checked}
    assert not missing, f"no test checks {sorted(missing)}"


class Generic:
    """min <direction, x> and min |x - target|^2 over a set that CVXPY knows, solved by Clarabel."""

    def __init__(self, domain, describe):
        shapes, self.structure = jax.tree.flatten(domain.shape, is_leaf=tree.is_shape)
        describes = self.structure.flatten_up_to(describe)
        self.given = [cp.Parameter(shape) for shape in shapes]
        self.found = [cp.Variable(shape) for shape in shapes]
        inside = [rule for block, x in zip(describes, self.found) for rule in block(x)]
        pairs = list(zip(self.given, self.found))
        linear = sum(cp.sum(cp.multiply(direction, x)) for direction, x in pairs)
        distance = sum(cp.sum_squares(x - target) for target, x in pairs)
        self.linear = cp.Problem(cp.Minimize(linear), inside)
        self.nearest = cp.Problem(cp.Minimize(distance), inside)

    def solve(self, problem, given):
        for parameter, value in zip(self.given, jax.tree.leaves(given)):
            parameter.value = np.asarray(value, float)
        return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)

    def minimum(self, direction):
        return self.solve(self.linear, direction)

    def project(self, x):
        self.solve(self.nearest, x)
        return jax.tree.unflatten(self.structure, [variable.value for variable in self.found])


@functools.cache
def generic(name):
    return Generic(*DOMAINS[name])


def hard_directions(domain):
    """Random, flipped, tied, zero, constant; matrices also of low rank or with repeated singular values."""
    rng = np.random.default_rng(0)

    def stack(shape):
        drawn = rng.standard_normal((3, *shape))
        tied = np.round(rng.standard_normal((2, *shape)))
        special = [np.zeros(shape), np.ones(shape), -np.ones(shape)]
        eye, left, right = np.eye(*shape[:2]), np.arange(shape[0]), np.ones(shape[-1])
        special += [eye, -eye, np.outer(left, right)] if len(shape) == 2 else []
        return jnp.asarray(np.concatenate([drawn, -drawn, tied, np.stack(special)]))

    stacks = jax.tree.map(stack, domain.shape, is_leaf=tree.is_shape)
    count = min(len(leaf) for leaf in jax.tree.leaves(stacks))
    return [jax.tree.map(lambda leaf, i=i: leaf[i], stacks) for i in range(count)]


@functools.cache
def compiled(domain_name, method):
    domain = DOMAINS[domain_name][0]
    return eqx.filter_jit(lambda *args: getattr(domain, method)(*args))


@pytest.mark.parametrize("name", DOMAINS)
def test_every_domain_keeps_its_contract(name):
    check_domain(DOMAINS[name][0], key=jax.random.key(1), directions=16)


@pytest.mark.parametrize("name", DOMAINS)
def test_lmo_agrees_with_a_generic_solver(name):
    for direction in hard_directions(DOMAINS[name][0]):
        vertex = compiled(name, "lmo")(direction)
        assert float(vertex.dot(direction)) == pytest.approx(generic(name).minimum(direction), abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("name", PROJECTABLE)
def test_projection_agrees_with_a_generic_solver(name):
    for x in hard_directions(DOMAINS[name][0])[:8]:
        expected, found = (
            jax.tree.leaves(nearest(x)) for nearest in (generic(name).project, compiled(name, "project"))
        )
        away = sum(np.sum((a - b) ** 2) for a, b in zip(jax.tree.leaves(x), expected)) ** 0.5
        # |found - expected|^2 is at most the solver's gap and infeasibility, 1e-10 (1 + away^2 + 2 away)
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * (1 + away))


SUPPORTS = {
    "simplex": lambda d: 2 * d.max(),
    "l1": lambda d: 1.5 * np.abs(d).max(),
    "l2": lambda d: 0.5 * np.linalg.norm(d),
    "linf": lambda d: 3 * np.abs(d).sum(),
    "box": lambda d: np.maximum(LOWER * d, UPPER * d).sum(),
    "nuclear": lambda d: 2 * np.linalg.norm(d, 2),
    "nuclear krylov": lambda d: 2 * np.linalg.norm(d, 2),
    "spectraplex": lambda d: 1.5 * np.linalg.eigvalsh((d + d.T) / 2)[-1],
    "spectraplex krylov": lambda d: 1.5 * np.linalg.eigvalsh((d + d.T) / 2)[-1],
}


@pytest.mark.parametrize("name", SUPPORTS)
@hypothesis.settings(max_examples=40)
@hypothesis.given(data=st.data())
def test_support_is_the_known_formula(name, data):
    entries = st.floats(-1e3, 1e3, width=32, allow_subnormal=False)
    direction = data.draw(hypothesis.extra.numpy.arrays(float, DOMAINS[name][0].shape, elements=entries))
    found = float(compiled(name, "support")(jnp.asarray(direction)))
    # relative to the largest value that a direction of this length could have
    assert found == pytest.approx(SUPPORTS[name](direction), rel=1e-8, abs=1e-8 * np.linalg.norm(direction))


@pytest.mark.parametrize("name", SPECTRAL)
@pytest.mark.parametrize("largest", [5.0, 1.2])
def test_warm_answers_turn_to_a_new_top_direction(name, largest):
    domain = SPECTRAL[name]
    lmo = eqx.filter_jit(lambda direction, guess: domain.lmo(direction, guess))
    stuck, turned = -jnp.diag(jnp.array([3.0, 1.0, 1.0])), -jnp.diag(jnp.array([1.0, largest, 1.0]))
    vertex = domain.lmo(stuck)
    assert float(vertex.dense()[0, 0]) == pytest.approx(1.0)
    for _ in range(10):
        vertex = lmo(turned, vertex)
    assert float(vertex.dot(turned)) == pytest.approx(-largest, rel=1e-3)


@pytest.mark.parametrize("name", SPECTRAL)
def test_a_zero_direction_keeps_the_guess_to_the_bit(name):
    domain = SPECTRAL[name]
    guess = domain.lmo(jnp.diag(jnp.array([1.0, 2.0, 3.0])))
    assert eqx.tree_equal(domain.lmo(jnp.zeros((3, 3)), guess), guess)
    assert eqx.tree_equal(domain.lmo(jnp.zeros((3, 3))), domain.vertex())


@pytest.mark.parametrize("name", SPECTRAL)
@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_float32_answers_at_any_scale(name, scale):
    domain = SPECTRAL[name]
    direction = jax.random.normal(jax.random.key(3), (3, 3), jnp.float32)
    expected = float(domain.lmo(direction).dot(direction))
    for guess in (None, domain.lmo(direction)):
        vertex = domain.lmo(scale * direction, guess)
        assert vertex.left.dtype == jnp.float32
        assert float(vertex.dot(direction)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("dtype, tol", [(jnp.float32, 2e-6), (jnp.float64, 1e-9)])
@pytest.mark.parametrize("gap", [1e-1, 1e-5, 0.0])
def test_large_matrices_are_answered_to_rounding(dtype, tol, gap):
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((size, 300)))[0] for size in (320, 300))
    values = np.concatenate([[1.0, 1 - gap], np.linspace(0.9, 0, 298)])
    direction = jnp.asarray((left * values) @ right.T, dtype)
    assert float(NuclearNormBall((320, 300), 1.0).support(direction)) == pytest.approx(1.0, abs=tol)
    # a positive definite direction: its smallest eigenvalue is the answer
    direction = jnp.asarray(right @ np.diag(2 - values) @ right.T, dtype)
    assert float(Spectraplex(300).lmo(direction).dot(direction)) == pytest.approx(1.0, abs=2 * tol)


def test_exact_ignores_the_guess():
    domain = NuclearNormBall((3, 3), 1.0, method="exact")
    direction = jax.random.normal(jax.random.key(0), (3, 3))
    assert eqx.tree_equal(domain.lmo(direction, domain.vertex()), domain.lmo(direction))


def test_spectral_diameters_are_attained():
    signs = jnp.outer(jnp.array([1.0, -1.0, 1.0]), jnp.array([1.0, 1.0, -1.0, 1.0]))
    ball = NuclearNormBall((3, 4), 2.0)
    corner = ball.lmo(signs).dense()
    assert float(tree.norm(2 * corner, 1)) == pytest.approx(float(ball.diameter(1)))
    assert float(tree.norm(2 * corner, 2)) == pytest.approx(float(ball.diameter(2)))
    ones = jnp.ones((3, 3))
    signs = jnp.block([[ones, ones], [ones, -ones]])
    spectraplex = Spectraplex(6, 2.0)
    apart = spectraplex.lmo(signs).dense() - spectraplex.lmo(-signs).dense()
    assert float(tree.norm(apart, 1)) == pytest.approx(float(spectraplex.diameter(1)))
    assert float(tree.norm(apart, 2)) == pytest.approx(float(spectraplex.diameter(2)))


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: ProbabilitySimplex(0), "at least one coordinate, got n=0"),
        (lambda: L1Ball(3, -1.0), "radius must be positive, got -1.0"),
        (lambda: L2Ball(3, 0.0), "radius must be positive, got 0.0"),
        (lambda: LinfBall(3, float("nan")), "radius must be finite, got nan"),
        (lambda: L1Ball((3, 0), 1.0), r"size in a shape must be at least 1, got \(3, 0\)"),
        (lambda: Box([0.0, 2.0], [1.0, 1.0]), r"must not exceed upper, got 2.0 > 1.0 at index \(1,\)"),
        (lambda: Box(jnp.zeros(2), jnp.ones(3)), r"one shape.*got \(2,\) and \(3,\)"),
        (lambda: Box(0.0, float("inf")), "upper must be finite"),
        (lambda: NuclearNormBall(5, 1.0), r"a shape \(rows, columns\), got 5"),
        (lambda: NuclearNormBall((2, 2), 1.0, method="svd"), "'exact' or 'krylov', got 'svd'"),
        (lambda: NuclearNormBall((2, 2), 1.0, iterations=0), "iterations must be at least 1, got 0"),
        (lambda: Spectraplex(0), "at least one row, got n=0"),
        (lambda: Spectraplex(2, trace=-1.0), "trace must be positive"),
        (lambda: Product({}), "at least one domain"),
        (lambda: Product([L1Ball(2, 1.0), 3.0]), "must be a domain, got float"),
        (lambda: from_lmo(3, start=jnp.zeros(2), diameter=1.0), "fn must be callable, got int"),
        (lambda: from_lmo(abs, start=jnp.zeros(2), diameter={3: 1.0}), "ord must be 1 or 2, got 3"),
        (lambda: L1Ball(3, 1.0).diameter(3), "ord must be 1 or 2, got 3"),
    ],
)
def test_bad_sets_are_refused_in_one_sentence(build, message):
    with pytest.raises(DomainError, match=message):
        build()


def test_an_oracle_says_what_it_does_not_know():
    domain = from_lmo(lambda d: -jnp.sign(d), start=jnp.zeros(2), diameter=8**0.5)
    with pytest.raises(DomainError, match=r"l1 diameter of this domain is not known.*\{1: ...\}"):
        domain.diameter(1)
    with pytest.raises(DomainError, match="cannot decide membership"):
        domain.contains(jnp.zeros(2))
    with pytest.raises(DomainError, match="no cheap exact projection"):
        domain.project(jnp.zeros(2))
    with pytest.raises(DomainError, match=r"shape \(2,\), like start, got \(\)"):
        from_lmo(jnp.sum, start=jnp.zeros(2), diameter=1.0).lmo(jnp.ones(2))


def test_an_oracle_may_work_on_trees():
    start = {"a": jnp.zeros(2), "b": jnp.zeros((2, 2))}
    flip = functools.partial(jax.tree.map, lambda d: np.where(d > 0, -1, 1))
    domain = from_lmo(
        flip,
        start=start,
        diameter=24**0.5,
        host=True,
        contains=lambda x, tol: tree.norm(x, jnp.inf) <= 1 + tol,
    )
    check_domain(domain, key=jax.random.key(0), directions=8)


class _Broken(ProbabilitySimplex):
    """A simplex with one promise broken."""

    promise: str = eqx.field(static=True)

    def __init__(self, promise):
        super().__init__(4)
        self.promise = promise

    def lmo(self, direction, guess=None):
        vertex = super().lmo(-direction if self.promise == "optimal" else direction)
        factor = 1 + (self.promise == "inside") * 0.1
        kind = jnp.float64 if self.promise == "dtype" else direction.dtype
        return eqx.tree_at(lambda v: v.value, vertex, (factor * vertex.value).astype(kind))

    def diameter(self, ord):
        return super().diameter(ord) * (0.9 if self.promise == "diameter" else 1)

    def project(self, x):
        return self.start().astype(x.dtype) if self.promise == "projection" else super().project(x)


@pytest.mark.parametrize(
    "promise, message",
    [
        ("optimal", "lmo is beaten"),
        ("inside", "a vertex lies outside"),
        ("dtype", "a vertex has the form"),
        ("diameter", "farther apart than the l1 diameter"),
        ("projection", "projecting moves"),
    ],
)
def test_a_broken_promise_is_found(promise, message):
    with pytest.raises(AssertionError, match=message):
        check_domain(_Broken(promise), key=jax.random.key(0), directions=12)


def test_the_reference_is_believed():
    with pytest.raises(AssertionError, match="lmo is not the reference's"):
        check_domain(L1Ball(3, 1.0), key=jax.random.key(0), directions=4, reference=lambda d: -2.0)
