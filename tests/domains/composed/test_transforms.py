"""Domains made of other domains keep their contract, and agree with formulas and with a generic solver."""

import functools

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
)
from slow_tools import one_of_each_class

from cocoax import DomainError
from cocoax.core import tree
from cocoax.domains import Box, L1Ball, L2Ball, LinfBall, NuclearNormBall, ProbabilitySimplex, Product, from_lmo
from cocoax.domains.composed.coordinates import Embed, Restrict
from cocoax.domains.composed.linear_image import LinearImage
from cocoax.domains.composed.sums import MinkowskiSum, UnionHull
from cocoax.domains.composed.transforms import Scale, Translate
from cocoax.domains.composed.wrappers import Cached, Counted
from cocoax.domains.vectors.weighted import Diamond
from cocoax.domains.vertices import OneHot, RankOne

MATRIX = np.random.default_rng(0).standard_normal((4, 3))
SHIFT = np.random.default_rng(1).standard_normal((3, 4))
ASIDE = np.array([3.0, 0.0, -1.0])
REST = np.array([[0.0, 0.0, 7.0], [5.0, 6.0, -8.0], [0.0, 0.0, 9.0]])
CORNER = np.ix_([0, 2], [0, 1])
PAIR = Product({"matrix": NuclearNormBall((2, 3), 2.0), "weights": ProbabilitySimplex(4)})
LIGHT = Product({"mix": ProbabilitySimplex(4), "shift": L1Ball(3, 2.0)})
BALLS = Product({"cube": LinfBall(3, 1.0), "diamond": L1Ball(3, 2.0)})
PARTS = Product([ProbabilitySimplex(3), Box(0.0, np.array([1.0, 2.0]))])

KEPT = [{"matrix": None, "weights": slice(1, 3)}, {"cube": ..., "diamond": np.array([True, False, True])}]


def top(d):
    return np.linalg.norm(d, 2)


def smallest(d, upper):
    return np.minimum(d * upper, 0).sum()


# each with min <d, x> over it as a formula
DOMAINS = {
    "scale": (Scale(ProbabilitySimplex(4, 2.0), 3.0), lambda d: 6 * d.min()),
    "flip": (Scale(ProbabilitySimplex(4, 2.0), -3.0), lambda d: -6 * d.max()),
    "flip tree": (Scale(PAIR, -0.5), lambda d: -top(d["matrix"]) - 0.5 * d["weights"].max()),
    "translate": (Translate(NuclearNormBall((3, 4), 2.0), SHIFT), lambda d: np.vdot(SHIFT, d) - 2 * top(d)),
    "translate by a number": (Translate(LinfBall((2, 2), 1.0), 5.0), lambda d: 5 * d.sum() - np.abs(d).sum()),
    "translate tree": (
        Translate(PAIR, {"matrix": SHIFT[:2, :3], "weights": 4.0}),
        lambda d: (
            np.vdot(SHIFT[:2, :3], d["matrix"]) - 2 * top(d["matrix"]) + 4 * d["weights"].sum() + d["weights"].min()
        ),
    ),
    "ellipsoid": (LinearImage(L2Ball(3, 2.0), MATRIX), lambda d: -2 * np.linalg.norm(MATRIX.T @ d)),
    "hull of points": (LinearImage(ProbabilitySimplex(4), MATRIX.T), lambda d: (MATRIX @ d).min()),
    "image of matrices": (
        LinearImage(NuclearNormBall((2, 2), 1.0), MATRIX.reshape(3, 2, 2)),
        lambda d: -top(np.tensordot(d, MATRIX.reshape(3, 2, 2), axes=1)),
    ),
    "image by a function": (
        LinearImage(BALLS, lambda x: x["cube"] + 2 * x["diamond"], norm={1: 2.0, 2: 5**0.5}),
        lambda d: -np.abs(d).sum() - 4 * np.abs(d).max(),
    ),
    "image by two functions": (
        LinearImage(LinfBall(3, 1.0), (jnp.cumsum, lambda d: jnp.cumsum(d[::-1])[::-1]), norm={1: 3.0, 2: 3.0}),
        lambda d: -np.abs(np.cumsum(d[::-1])).sum(),
    ),
    "sum": (
        MinkowskiSum([LinfBall(3, 1.0), Translate(L1Ball(3, 2.0), ASIDE), L2Ball(3, 0.5)]),
        lambda d: -np.abs(d).sum() + ASIDE @ d - 2 * np.abs(d).max() - 0.5 * np.linalg.norm(d),
    ),
    "sum of trees": (
        MinkowskiSum([PAIR, Translate(PAIR, {"matrix": 1.0, "weights": 0.0})]),
        lambda d: -4 * top(d["matrix"]) + d["matrix"].sum() + 2 * d["weights"].min(),
    ),
    "union": (
        UnionHull([LinfBall(3, 1.0), Translate(L1Ball(3, 2.0), ASIDE), L2Ball(3, 1.5)]),
        lambda d: min(-np.abs(d).sum(), ASIDE @ d - 2 * np.abs(d).max(), -1.5 * np.linalg.norm(d)),
    ),
    "union of trees": (
        UnionHull([PAIR, Scale(PAIR, -1.0)]),
        lambda d: -2 * top(d["matrix"]) + min(d["weights"].min(), -d["weights"].max()),
    ),
    "restrict": (Restrict(ProbabilitySimplex(6, 2.0), [0, 5, 2]), lambda d: 2 * min(d.min(), 0)),
    "restrict tree": (
        Restrict(Product([PAIR, BALLS]), KEPT),
        lambda d: min(d[0]["weights"].min(), 0) - np.abs(d[1]["cube"]).sum() - 2 * np.abs(d[1]["diamond"]).max(),
    ),
    "embed": (Embed(NuclearNormBall((2, 2), 1.5), (3, 3), CORNER), lambda d: -1.5 * top(d[CORNER])),
    "embed with a rest": (
        Translate(Embed(NuclearNormBall((2, 2), 1.5), (3, 3), CORNER), REST),
        lambda d: np.vdot(REST, d) - 1.5 * top(d[CORNER]),
    ),
    "embed tree": (
        Embed(PARTS, 7, [slice(0, 3), [6, 4]]),
        lambda d: d[:3].min() + smallest(d[[6, 4]], np.array([1.0, 2.0])),
    ),
    "counted": (Counted(ProbabilitySimplex(4, 2.0)), lambda d: 2 * d.min()),
    "cached": (Cached(NuclearNormBall((3, 3), 2.0), 3), lambda d: -2 * top(d)),
    "cached tree": (Cached(PAIR, 2, tolerance=1e-3), lambda d: -2 * top(d["matrix"]) + d["weights"].min()),
}


def simplex(x, total=1.0):
    return [x >= 0, cp.sum(x) == total]


def in_sum(x):
    cube, diamond, ball = cp.Variable(3), cp.Variable(3), cp.Variable(3)
    inside = [cp.abs(cube) <= 1, cp.norm1(diamond - ASIDE) <= 2, cp.norm(ball) <= 0.5]
    return [*inside, x == cube + diamond + ball]


def in_union(x):
    share, cube, diamond, ball = cp.Variable(3), cp.Variable(3), cp.Variable(3), cp.Variable(3)
    inside = [cp.abs(cube) <= share[0], cp.norm1(diamond - share[1] * ASIDE) <= 2 * share[1]]
    return [*simplex(share), *inside, cp.norm(ball) <= 1.5 * share[2], x == cube + diamond + ball]


def in_ellipsoid(x):
    z = cp.Variable(3)
    return [cp.norm(z) <= 2, x == MATRIX @ z]


def in_hull(x):
    z = cp.Variable(4)
    return [*simplex(z), x == MATRIX.T @ z]


def in_projection(x):
    z = cp.Variable(6)
    return [*simplex(z, 2.0), x == z[[0, 5, 2]]]


def in_corner(x):
    inner = cp.Variable((2, 2))
    rows, columns = np.eye(3)[[0, 2]], np.eye(3)[[0, 1]]
    return [cp.normNuc(inner) <= 1.5, x == rows.T @ inner @ columns]


def in_corner_with_a_rest(x):
    return in_corner(x - REST)


DESCRIBED = {
    "flip": lambda x: simplex(-x, 6.0),
    "translate": lambda x: [cp.normNuc(x - SHIFT) <= 2],
    "ellipsoid": in_ellipsoid,
    "hull of points": in_hull,
    "sum": in_sum,
    "union": in_union,
    "restrict": in_projection,
    "embed": in_corner,
    "embed with a rest": in_corner_with_a_rest,
    "counted": lambda x: simplex(x, 2.0),
    "cached": lambda x: [cp.normNuc(x) <= 2],
}
PROJECTABLE = ["flip", "translate", "embed", "embed with a rest"]


@functools.cache
def generic(name):
    return Generic(DOMAINS[name][0], DESCRIBED[name])


PLAIN = ["flip", "ellipsoid", "hull of points", "image by a function", "sum", "restrict", "embed tree"]
CONTRACTS = {name: DOMAINS[name][0] for name in PLAIN} | {  # a contract takes seconds to compile
    "translate tree": Translate(LIGHT, {"mix": 4.0, "shift": ASIDE}),
    "union of two sizes": UnionHull([ProbabilitySimplex(4), Scale(ProbabilitySimplex(4), 2.0)]),
    "restrict tree": Restrict(LIGHT, {"mix": [3, 1], "shift": None}),
    "embed with a rest": Translate(Embed(L2Ball((2, 2), 1.5), (3, 3), CORNER), REST),
    "counted tree": Counted(LIGHT),
    "cached tree": Cached(LIGHT, 2, tolerance=1e-3),
}


test_every_domain_keeps_its_contract = check_every(CONTRACTS)


@pytest.mark.parametrize("name", DOMAINS)
@few_batches
@hypothesis.given(data=st.data())
def test_lmo_attains_the_known_minimum(name, data):
    domain, minimum = DOMAINS[name]
    check_minima(domain, data.draw(batches(domain.shape)), minimum)


@pytest.mark.parametrize("name", DESCRIBED)
@few_batches
@hypothesis.given(data=st.data())
def test_lmo_agrees_with_a_generic_solver(name, data):
    domain = DOMAINS[name][0]
    check_minima_by_a_solver(domain, data.draw(batches(domain.shape)), generic(name))


@pytest.mark.parametrize("name", one_of_each_class({name: DOMAINS[name][0] for name in DESCRIBED}))
def test_frank_wolfe_reaches_the_optimum(name):
    check_frank_wolfe(DOMAINS[name][0], DESCRIBED[name])


@pytest.mark.parametrize("name", PROJECTABLE)
def test_projection_agrees_with_a_generic_solver(name):
    check_projections(DOMAINS[name][0], generic(name))


@pytest.mark.parametrize("name", PROJECTABLE)
def test_members_are_told_from_others(name):
    domain = DOMAINS[name][0]
    start = np.asarray(domain.start())
    bad = start.copy()
    bad.reshape(-1)[1] = np.nan
    # rounding is forgiven, more is not: beyond the vertex that the direction away from the start leads to
    away = np.random.default_rng(0).standard_normal(domain.shape)
    edge = np.asarray(jax.jit(lambda direction: domain.lmo(direction).dense())(-away))
    points = [start, bad, edge + 1e-8 * away, edge + 1e-3 * away]
    contained = jax.jit(jax.vmap(lambda x: domain.contains(x)))(np.stack(points))
    assert contained.tolist() == [True, False, True, False]


def test_what_is_not_embedded_must_be_zero():
    face = Embed(ProbabilitySimplex(2), 4, [1, 3])
    assert bool(face.contains(face.start()))
    for other in (0, 2):
        assert not bool(face.contains(face.start().at[other].add(1e-3)))


@pytest.mark.parametrize("domain", [Translate(L2Ball(3, 1e-4), 5.0), Diamond(np.full(3, 4.9999), np.full(3, 5.0001))])
def test_small_sets_far_from_the_origin_contain_their_rounded_vertices(domain):
    asked = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)

    @jax.jit
    def contained(asked):
        points = jax.vmap(lambda direction: domain.lmo(direction).dense())(asked)
        return jax.vmap(domain.contains)(points), jax.vmap(domain.contains)(points - 1e-3 * asked)

    inside, outside = map(np.asarray, contained(asked))
    assert inside.all() and not outside.any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Embed(L1Ball(2, 1.5), 3, [0, 2]),
        lambda: Translate(L1Ball(3, 1.5), 1.0),
        lambda: L1Ball(3, 1.5).intersect(np.ones(3), 1.0),
    ],
    ids=["embed", "translate", "intersection"],
)
def test_members_of_sets_in_sets_are_told_in_float32(make):
    domain = Translate(make(), 5.0)
    start = domain.start().astype(jnp.float32)
    assert bool(domain.contains(start))
    assert not bool(domain.contains(start + jnp.asarray([0, 2, 0], jnp.float32)))


@pytest.mark.parametrize("name", ["flip", "translate", "embed", "translate by a number"])
@pytest.mark.parametrize("ord", [1, 2])
def test_exact_diameters_are_attained(name, ord):
    domain = DOMAINS[name][0]
    if ord == 1 or name == "flip":
        signs = np.sign(np.outer(np.arange(domain.shape[0]) - 0.5, np.arange(domain.shape[-1]) - 1.5))
        asked = jnp.asarray(signs if len(domain.shape) == 2 else np.arange(domain.shape[0]) * 1.0)
    else:
        asked = jnp.ones(domain.shape)
    apart = tree.sub(domain.lmo(asked).dense(), domain.lmo(-asked).dense())
    assert float(tree.norm(apart, ord)) == pytest.approx(float(domain.diameter(ord)))


def test_bounds_on_diameters_are_exact_where_they_can_be():
    cube = LinfBall(3, 1.0)
    for ord in (1, 2):
        assert float(MinkowskiSum([cube, cube]).diameter(ord)) == pytest.approx(2 * float(cube.diameter(ord)))
        assert float(UnionHull([cube]).diameter(ord)) == pytest.approx(float(cube.diameter(ord)))
        stretched = LinearImage(cube, 2 * np.eye(3))
        assert float(stretched.diameter(ord)) == pytest.approx(2 * float(cube.diameter(ord)))


def test_vertices_stay_small():
    moved = Translate(Scale(NuclearNormBall((3, 4), 2.0), -1.0), SHIFT).lmo(jnp.asarray(SHIFT))
    assert isinstance(moved.inner.inner, RankOne)  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(Restrict(ProbabilitySimplex(9), slice(2)).lmo(jnp.ones(2)).inner, OneHot)


def test_equal_selections_share_a_compilation():
    traces = []

    @eqx.filter_jit
    def answer(domain, direction):
        traces.append(1)
        return domain.lmo(direction).dense()

    for shift in range(3):
        answer(Restrict(ProbabilitySimplex(5), np.array([0, 2])), jnp.arange(2.0) - shift)
    assert len(traces) == 1
    answer(Restrict(ProbabilitySimplex(5), np.array([0, 3])), jnp.arange(2.0))
    assert len(traces) == 2


def test_calls_are_counted_in_compiled_programs():
    domain = Counted(ProbabilitySimplex(3))

    @eqx.filter_jit
    def program(directions):
        vertices = jax.vmap(domain.lmo)(directions)
        last, _ = jax.lax.scan(lambda v, d: (domain.lmo(d, v), None), domain.vertex(), directions)
        return vertices, last

    for rounds in (1, 2):
        program(jnp.eye(3))
        assert domain.calls == 6 * rounds
    domain.reset()
    assert domain.calls == 0
    domain.support(jnp.ones(3))
    assert domain.calls == 1


@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("inner", [NuclearNormBall((3, 4), 2.0), Box(np.full((3, 4), -1.0), SHIFT**2)])
def test_remembered_answers_are_within_the_tolerance(inner, tolerance):
    counted = Counted(inner)
    domain = Cached(counted, 3, tolerance=tolerance)
    rng = np.random.default_rng(0)
    walk = 10 * SHIFT + np.cumsum(0.02 * rng.standard_normal((200, 3, 4)), axis=0)
    walk[100:] = walk[99] * np.linspace(1, 1e6, 100)[:, None, None]  # at last only multiples

    def ask(known, direction):
        vertex = domain.lmo(direction, known)
        return vertex, vertex.dense()

    _, points = eqx.filter_jit(lambda: jax.lax.scan(ask, domain.vertex(), jnp.asarray(walk)))()
    values = np.sum(walk * np.asarray(points), axis=(1, 2))
    best = np.sum(walk * np.asarray(jax.vmap(lambda d: inner.lmo(d).dense())(jnp.asarray(walk))), axis=(1, 2))
    scale = float(inner.diameter(2)) * np.linalg.norm(walk, axis=(1, 2))
    assert np.all(values - best <= (tolerance + 1e-12) * scale)
    assert counted.calls == 100 if tolerance == 0 else counted.calls < 100


def test_an_opposite_direction_is_never_answered_from_memory():
    domain = Cached(ProbabilitySimplex(3), 2)
    first = domain.lmo(jnp.array([1.0, 2.0, 3.0]))
    assert domain.lmo(-jnp.array([1.0, 2.0, 3.0]), first).dense().tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: Scale(L1Ball(2, 1.0), 0.0), "factor must not be 0"),
        (lambda: Scale(L1Ball(2, 1.0), [1.0, 2.0]), r"factor must be one number, got shape \(2,\)"),
        (lambda: Scale(3.0, 1.0), "made from a domain, got 3.0"),
        (lambda: Translate(L1Ball(2, 1.0), jnp.ones(3)), r"the domain's shape \(2,\), or be one number, got \(3,\)"),
        (lambda: Translate(L1Ball(2, 1.0), float("inf")), "shift must be finite"),
        (lambda: Translate(PAIR, 1.0), "shift must be a tree like the domain's shape"),
        (lambda: LinearImage(L1Ball(2, 1.0), np.eye(3)), r"last axes of linear.*\(2,\), got shape \(3, 3\)"),
        (lambda: LinearImage(PAIR, np.eye(3)), "give linear as a function"),
        (lambda: LinearImage(L1Ball(2, 1.0), (jnp.sum, 3)), "made of functions, got int"),
        (lambda: LinearImage(L1Ball(2, 1.0), (jnp.sum, jnp.sum)), r"transpose must return.*\(2,\), got \(\)"),
        (lambda: LinearImage(L1Ball(2, 1.0), jnp.sum).diameter(1), r"not known; give LinearImage\(norm=\{1: ...\}"),
        (lambda: LinearImage(L1Ball(2, 1.0), np.eye(2)).contains(jnp.ones(2)), "membership in a LinearImage"),
        (lambda: MinkowskiSum([]), "at least one domain, got none"),
        (lambda: UnionHull([L1Ball(2, 1.0), L1Ball(3, 1.0)]), r"one shape, got \(2,\) and \(3,\)"),
        (lambda: Restrict(L1Ball(3, 1.0), [0, 0]), "every coordinate at most once"),
        (lambda: Restrict(L1Ball(3, 1.0), [4]), r"must fit the shape \(3,\), got \[4\]"),
        (lambda: Restrict(L1Ball(3, 1.0), slice(0)), "at least one coordinate, got none"),
        (lambda: Restrict(PAIR, 0), "index must be a tree like the domain's shape"),
        (lambda: Embed(L1Ball(2, 1.0), 4, slice(3)), r"select the domain's shape \(2,\), got \(3,\)"),
        (lambda: Embed(PARTS, 7, [slice(0, 3), [2, 4]]), "every coordinate at most once"),
        (lambda: Cached(L1Ball(2, 1.0), 0), "size must be at least 1, got 0"),
        (lambda: Cached(L1Ball(2, 1.0), 1, tolerance=-1.0), "tolerance must not be negative, got -1.0"),
        (lambda: Scale(L1Ball, 2.0), r"a set is made from a domain, but L1Ball is a class; write L1Ball\(...\)"),
        (lambda: Product([L1Ball]), "must be a domain, but L1Ball is a class"),
        (lambda: MinkowskiSum(L1Ball(2, 1.0)), "MinkowskiSum needs a list of domains.*got L1Ball"),
        (lambda: UnionHull(5), "UnionHull needs a list of domains.*got 5"),
        (lambda: Cached(L1Ball(2, 1.0), 2.5), "size must be a whole number, got 2.5"),
        (lambda: Cached(L1Ball(2, 1.0), 1, tolerance=[1, 2]), "tolerance must be one number"),
        (lambda: LinearImage(L1Ball(2, 1.0), lambda x: x**2), "must be a linear JAX function"),
        (lambda: LinearImage(L1Ball(2, 1.0), lambda x: x + 1), "must map 0 to 0"),
        (lambda: LinearImage(L1Ball(2, 1.0), (lambda x: x * jnp.arange(2.0), lambda d: d)), "transpose its transpose"),
    ],
)
def test_bad_sets_are_refused_in_one_sentence(build, message):
    with pytest.raises(DomainError, match=message):
        build()


def test_a_user_set_without_an_l2_diameter_can_be_wrapped():
    known = from_lmo(
        lambda d: -jnp.sign(d),
        start=jnp.zeros(2),
        diameter={1: 4.0},
        contains=lambda x, tol: tree.norm(x, jnp.inf) <= 1 + tol,
    )
    moved = Translate(known, 3.0)
    assert bool(moved.contains(jnp.full(2, 4.0))) and not bool(moved.contains(jnp.full(2, 4.1)))
    cached = Cached(known, 1)
    assert cached.lmo(jnp.ones(2), cached.vertex()).dense().tolist() == [-1.0, -1.0]
