"""Every domain keeps its contract, and agrees with a generic solver."""

import functools
import importlib.util
import inspect
import pkgutil
import sys
from pathlib import Path

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
    check_minima,
    check_minima_by_a_solver,
    check_projections,
    few_batches,
    hull,
)

import cocoax.domains
from cocoax import DomainError
from cocoax.core import tree
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
from cocoax.domains.composed.sums import UnionHull
from cocoax.domains.matrices.factored import FactoredNuclearNormBall
from cocoax.testing import check_domain

LOWER, UPPER = np.array([-1.0, 0.0, 2.0]), np.array([1.0, 3.0, 2.0])
CORNERS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 3.0]])


def best_corner(numpy, direction):
    corners = numpy.asarray(CORNERS, direction.dtype)
    return corners[numpy.argmin(corners @ direction)]


def polygon(numpy, host):
    return from_lmo(
        functools.partial(best_corner, numpy), start=CORNERS.mean(0), diameter={1: 5.0, 2: 13**0.5}, host=host
    )


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
        lambda x: [cp.normNuc(x["matrix"]) <= 2, x["weights"] >= 0, cp.sum(x["weights"]) == 1],
    ),
    "from_lmo": (polygon(jnp, host=False), hull(CORNERS)),
    "from_lmo on the host": (polygon(np, host=True), hull(CORNERS)),
}
CONTRACTS = {name: domain for name, (domain, _) in DOMAINS.items()}
PROJECTABLE = [name for name in DOMAINS if "from_lmo" not in name]
SPECTRAL = {
    "nuclear": NuclearNormBall((3, 3), 1.0),
    "nuclear krylov": NuclearNormBall((3, 3), 1.0, method="krylov"),
    "spectraplex": Spectraplex(3),
    "spectraplex krylov": Spectraplex(3, method="krylov"),
}


def public_domains():
    """The concrete classes of `cocoax.domains` and its public modules, and the names of its functions."""
    classes = set()
    for info in pkgutil.walk_packages(cocoax.domains.__path__, "cocoax.domains."):
        module = importlib.import_module(info.name)
        classes |= {
            each
            for name, each in vars(module).items()
            if inspect.isclass(each) and issubclass(each, AbstractDomain) and not name.startswith(("_", "Abstract"))
        }
    return classes, {name for name in cocoax.domains.__all__ if inspect.isfunction(getattr(cocoax.domains, name))}  # pyright: ignore[reportAttributeAccessIssue]


def contracts_of(path):
    """The `CONTRACTS` of a test file, which may have none; pytest has loaded those that it runs."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(path):
            return getattr(module, "CONTRACTS", {})
    spec = importlib.util.spec_from_file_location(f"contracts_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, "CONTRACTS", {})


def test_every_public_domain_is_checked():
    """In the `CONTRACTS` of a test file here, where the name of a set that a function makes begins with its own."""
    contracts = [case for path in Path(__file__).parent.rglob("test_*.py") for case in contracts_of(path).items()]
    classes, functions = public_domains()
    checked = {type(domain) for _, domain in contracts} | {FactoredNuclearNormBall}  # its points: in test_factored.py
    missing = {cls.__name__ for cls in classes - checked}
    missing |= functions - {name.split()[0] for name, _ in contracts}
    assert not missing, f"no test checks {sorted(missing)}"


@functools.cache
def generic(name):
    return Generic(*DOMAINS[name])


test_every_domain_keeps_its_contract = check_every(CONTRACTS)


@pytest.mark.parametrize("name", DOMAINS)
@few_batches
@hypothesis.given(data=st.data())
def test_lmo_agrees_with_a_generic_solver(name, data):
    domain = DOMAINS[name][0]
    asked = data.draw(batches(domain.shape))
    if name in SUPPORTS:
        check_minima_by_a_solver(domain, asked, generic(name))
    else:
        check_minima(domain, asked, generic(name).minimum, Generic.tol)


@pytest.mark.parametrize("name", PROJECTABLE)
def test_projection_agrees_with_a_generic_solver(name):
    check_projections(DOMAINS[name][0], generic(name))


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
@few_batches
@hypothesis.given(data=st.data())
def test_lmo_attains_the_known_minimum(name, data):
    domain = DOMAINS[name][0]
    check_minima(domain, data.draw(batches(domain.shape)), lambda d: -SUPPORTS[name](-d))


@eqx.filter_jit
def asked(domain, direction, guess=None):
    return domain.lmo(direction, guess)


@pytest.mark.parametrize("name", SPECTRAL)
def test_warm_answers_turn_to_a_new_top_direction(name):
    domain, stuck = SPECTRAL[name], -np.diag([3.0, 1.0, 1.0])
    for largest in (5.0, 1.2):
        vertex, turned = asked(domain, stuck), -np.diag([1.0, largest, 1.0])
        assert float(vertex.dense()[0, 0]) == pytest.approx(1.0)
        for _ in range(10):
            vertex = asked(domain, turned, vertex)
        assert float(vertex.dot(turned)) == pytest.approx(-largest, rel=1e-3)


@pytest.mark.parametrize("dtype, tol", [(jnp.float32, 2e-6), pytest.param(jnp.float64, 1e-9, marks=pytest.mark.slow)])
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
        (lambda: ProbabilitySimplex(0), "n must be at least 1, got 0"),
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
        (lambda: Spectraplex(0), "n must be at least 1, got 0"),
        (lambda: Spectraplex(2, trace=-1.0), "trace must be positive"),
        (lambda: Product({}), "at least one domain"),
        (lambda: Product([L1Ball(2, 1.0), 3.0]), "must be a domain, got 3.0"),
        (lambda: from_lmo(3, start=jnp.zeros(2), diameter=1.0), "fn must be callable, got int"),
        (lambda: from_lmo(abs, start=jnp.zeros(2), diameter={3: 1.0}), "diameter must be one number.*got {3: 1.0}"),
        (lambda: L1Ball(3, 1.0).diameter(3), "ord must be 1, 2 or inf, got 3"),
        (lambda: ProbabilitySimplex("3"), "n must be a whole number, got '3'"),
        (lambda: ProbabilitySimplex(None), "n must be a whole number, got None"),
        (lambda: Spectraplex(2.5), "n must be a whole number, got 2.5"),
        (lambda: NuclearNormBall((2, 2), 1.0, iterations=2.5), "iterations must be a whole number, got 2.5"),
        (lambda: Box([], []), "at least one coordinate"),
        (lambda: Box(0, np.array([1j, 2.0])), "upper must be real, got complex"),
        (lambda: L1Ball(3, 1j), "radius must be real, got complex"),
        (lambda: L1Ball(2, 1.0).lmo(jnp.array([1j, 0])), "a direction must be real, got complex"),
        (lambda: L1Ball(3, 1.0).diameter("fro"), "ord must be 1, 2 or inf, got 'fro'"),
        (lambda: from_lmo(jnp.sign, start=None, diameter=1.0), "start must be a point of the set.*got None"),
        (lambda: from_lmo(jnp.sign, start=[], diameter=1.0), r"start must be a point of the set.*got \[\]"),
        (lambda: from_lmo(jnp.sign, start=jnp.zeros(2), diameter={}), "diameter must be one number.*got {}"),
        (lambda: from_lmo(lambda d: d * jnp.nan, start=jnp.zeros(2), diameter=1.0), "must return a finite point"),
        (lambda: from_lmo(lambda d: d.astype(complex), start=jnp.zeros(2), diameter=1.0), "must return real numbers"),
    ],
)
def test_bad_sets_are_refused_in_one_sentence(build, message):
    with pytest.raises(DomainError, match=message):
        build()


def test_supports_of_any_set_are_differentiable():
    """Their gradient is a vertex; also where the LMO runs on the host."""
    for domain in (L1Ball(2, 1.0), polygon(np, host=True), Box(np.zeros(2), np.ones(2))):
        asked = jnp.array([1.0, -3.0])
        np.testing.assert_allclose(jax.grad(domain.support)(asked), domain.lmo(-asked).dense())
    assert float(L1Ball(2, 1.0).support([3, 4])) == 4


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

    def vertex(self):
        factor = {"vertex": 5.0, "finite vertex": jnp.nan}.get(self.promise, 1.0)
        return eqx.tree_at(lambda v: v.value, super().vertex(), replace_fn=lambda value: factor * value)

    def start(self):
        return super().start() * (1 + (self.promise == "start") * 0.1)

    def contains(self, x, tol=1e-6):
        return jnp.asarray(True) if self.promise == "membership" else super().contains(x, tol)

    def diameter(self, ord):
        return super().diameter(ord) * (0.9 if self.promise == "diameter" else 1)

    def project(self, x):
        return self.start().astype(x.dtype) if self.promise == "projection" else super().project(x)


class _Sphere(L2Ball):
    """Projects onto the sphere only."""

    def project(self, x):
        return x * (self.radius.astype(x.dtype) / tree.norm(x))


class _Far(UnionHull):
    """Starts outside; without `contains`, only the LMO can tell."""

    def start(self):
        return super().start() + 1


@pytest.mark.parametrize(
    "broken, message",
    [
        (_Broken("optimal"), "lmo is beaten"),
        (_Broken("inside"), "a vertex lies outside"),
        (_Broken("dtype"), "a vertex has the form"),
        (_Broken("diameter"), "farther apart than the l1 diameter"),
        (_Broken("projection"), "projecting moves"),
        (_Broken("vertex"), r"vertex\(\) lies outside"),
        (_Broken("finite vertex"), r"vertex\(\) lies outside"),
        (_Broken("start"), "start lies outside"),
        (_Broken("membership"), "contains takes a point outside"),
        (_Sphere(3, 2.0), "projecting moves"),
        (_Far([L1Ball(3, 1.0), LinfBall(3, 0.5)]), "start lies outside"),
    ],
)
def test_a_broken_promise_is_found(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_domain(broken, key=jax.random.key(0), directions=12)


def test_the_reference_is_believed():
    with pytest.raises(AssertionError, match="lmo is not the reference's"):
        check_domain(L1Ball(3, 1.0), key=jax.random.key(0), directions=4, reference=lambda d: -2.0)


def test_diameters_of_cubes_and_balls():
    for ord, cube in ((1, 12.0), (2, 4 * 3**0.5)):
        np.testing.assert_allclose(LinfBall(3, radius=2.0).diameter(ord), cube)
    np.testing.assert_allclose(L2Ball(3, radius=2.0).diameter(2), 4.0)
