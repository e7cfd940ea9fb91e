"""Numbers at the edges: clustered spectra, bounds that stand for none, unequal sides, huge and tiny points."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocoax import DomainError
from cocoax import domains as D
from cocoax.domains.matrices.krylov import fixed_directions


def test_a_cold_search_converges_or_decomposes():
    n = 400
    difference = np.eye(n) - np.eye(n, k=-1)
    laplacian = jnp.asarray(difference @ difference.T)
    plex, ball = D.Spectraplex(n), D.NuclearNormBall((n, n), 1.0)
    assert plex.lmo_error(laplacian, plex.lmo(laplacian)) <= 1e-9
    assert ball.lmo_error(jnp.asarray(difference), ball.lmo(jnp.asarray(difference))) <= 1e-9


def test_no_vertex_is_where_a_search_stays():
    n = 40
    plex = D.Spectraplex(n, method="krylov")
    error = jax.jit(lambda direction, guess: plex.lmo_error(direction, plex.lmo(direction, guess)))
    for seed in range(3):
        stuck = fixed_directions((n,), seed)
        other = jnp.roll(stuck, 1) - stuck * (stuck @ jnp.roll(stuck, 1))
        direction = -jnp.outer(stuck, stuck) - 2 * jnp.outer(other, other) / (other @ other)
        for guess in (None, plex.vertex()):
            assert error(direction, guess) <= 1e-6


def test_power_steps_never_vanish_and_an_error_has_two_sides():
    plex = D.Spectraplex(3, method="power")
    vertex = plex.lmo(jnp.eye(3), plex.vertex())
    assert plex.contains(vertex.dense())
    outside = jax.tree.map(lambda leaf: 0 * leaf, vertex)
    assert plex.lmo_error(jnp.eye(3), outside) == 1


@pytest.mark.parametrize("method", ["krylov", "power"])
def test_warm_answers_to_the_largest_directions_are_finite(method):
    signs = np.sign(np.random.default_rng(0).standard_normal((30, 30)))
    direction = jnp.asarray(3e38 * signs, jnp.float32)
    for domain in (D.NuclearNormBall((30, 30), 1.0, method=method), D.UnitSpectrahedron(30, method=method)):
        vertex = eqx.filter_jit(domain.lmo)(direction, domain.vertex())
        assert domain.contains(vertex.dense(), 1e-5)


@eqx.filter_jit
def _projected(domain, point):
    return domain.project(point)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("thin", [1e-3, 1e-12, 1e-200])
def test_a_diamond_of_unequal_sides_projects_onto_itself(thin, dtype):
    sides = np.array([1.0, thin, 0.5])
    diamond = D.Diamond(-sides, sides)
    rounding = 10 * float(jnp.finfo(dtype).eps)
    for far in ([-0.558, 0.445, -0.122], [3.0, 2.0, 0.0], [0.2, 2.0, 0.1], [1e20, 1e20, 0.0]):
        point = np.array(far, dtype)
        found = np.asarray(_projected(diamond, point))
        assert np.isfinite(found).all()
        if thin > 1e-30:  # less is 0 in float32
            shares = np.sum(np.abs(found.astype(float)) / sides.astype(dtype))
            assert abs(shares - 1) <= rounding
        normal = (point - found).astype(float)  # no vertex lies farther that way
        assert np.max(sides * np.abs(normal)) - normal @ found <= rounding * np.max(np.abs(point))


@pytest.mark.parametrize("loose", [1e6, 1e15, 1e20])
def test_a_bound_that_stands_for_none_changes_nothing(loose):
    budget = D.Polytope([[1.0, 1.0]], [1.0], lower=0.0, upper=loose)
    assert budget.lmo(jnp.array([-1.0, -2.0])).dense().tolist() == [0.0, 1.0]
    assert budget.diameter(1) == 2 and not budget.contains(jnp.array([1.001, 0.0]))
    if loose < 1e20:
        flow = D.Flow([[0, 1], [0, 1], [1, 0]], 0, 1, 1.0, loose)
        assert flow.lmo(jnp.array([1.0, 2.0, 1.0])).dense().tolist() == [1.0, 0.0, 0.0]


def test_membership_is_measured_by_the_set():
    simplex = D.Polytope(np.ones((1, 300)), [1.0], lower=0.0, upper=1e6)
    corner = jnp.zeros(300).at[0].set(1.0)
    assert simplex.contains(corner) and not simplex.contains(1.00001 * corner)
    assert simplex.diameter(2) <= simplex.diameter(1) == 2


@pytest.mark.parametrize("wide", [1e6, 1e12])
def test_small_entries_of_wide_variables_count(wide):
    domain = D.Polytope([[1 / wide, 1.0]], [1.0], lower=0.0, upper=[wide, 1.0])
    np.testing.assert_allclose(domain.lmo(jnp.array([-2 / wide, -1.0])).dense(), [wide, 0], rtol=1e-12)
    np.testing.assert_allclose(domain.lmo(jnp.array([-1 / wide, -2.0])).dense(), [0, 1], atol=1e-12)
    assert not domain.contains(jnp.array([wide, 1.0]))


def test_an_ellipsoid_far_away_holds_its_vertices():
    far = D.Ellipsoid(jnp.diag(jnp.array([1.0, 100.0, 1.0])), centre=1e11)
    vertex = far.lmo(jnp.array([1.0, 2.0, 3.0])).dense()
    assert far.contains(vertex) and not far.contains(vertex + 1e6)
    near = D.Ellipsoid(jnp.diag(jnp.array([1.0, 1e8])), centre=1.0)
    assert not near.contains(jnp.array([2.0001, 1.0]))


def test_a_loose_row_binds_nothing():
    domain = D.ProbabilitySimplex(5).intersect(jnp.eye(5)[:2], jnp.array([0.2, 1e15]))
    vertex = eqx.filter_jit(domain.lmo)(jnp.array([-3.0, -2.0, -1.0, 0.0, 0.0], jnp.float32))
    assert abs(vertex.gap) <= 1e-5  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(vertex.dense(), [0.2, 0.8, 0, 0, 0], atol=1e-5)


def test_a_total_that_rounding_hides_is_the_sum_of_the_caps():
    domain = D.CappedSimplex(jnp.array([0.5, 0.4999995]))
    assert domain.contains(domain.lmo(jnp.ones(2)).dense(), 1e-12) and domain.contains(domain.start(), 1e-12)
    covered = D.ReverseKnapsack(jnp.array([0.5, 0.4999995]), 1.0)
    assert covered.contains(covered.lmo(jnp.ones(2)).dense(), 1e-12)


@pytest.mark.parametrize("dtype, huge", [(jnp.float32, 3e38), (jnp.float64, 1.7e308)])
def test_the_largest_points_have_projections(dtype, huge):
    for domain in (D.ProbabilitySimplex(4), D.UnitSimplex(4), D.L1Ball(4, 1.0), D.L2Ball(4, 1.0), D.HyperSimplex(4, 2)):
        shapes = [[1.0, 0, 0, 0], [1.0, 1, 1, 1], [1.0, -1, 0.5, -0.5], [-1.0, -1, -1, -1]]
        inside = jax.jit(jax.vmap(lambda x, domain=domain: domain.contains(domain.project(x))))
        assert np.all(inside(jnp.asarray(huge * np.array(shapes), dtype)))


def test_l2_norms_neither_overflow_nor_vanish():
    for size in (1e-170, 1e170):
        np.testing.assert_allclose(D.Box(0.0, jnp.full(2, size)).diameter(2), size * 2**0.5)
        np.testing.assert_allclose(D.Permutahedron(size * jnp.arange(2.0)).diameter(2), size * 2**0.5)
        ball = D.L2Ball(2, size)
        np.testing.assert_allclose(ball.project(jnp.array([0.1 * size, 0.0])), [0.1 * size, 0.0])
        np.testing.assert_allclose(ball.project(jnp.array([5 * size, 0.0])), [size, 0.0])


def test_a_union_compares_values_that_would_overflow():
    union = D.UnionHull([D.L1Ball(2, 1e10), D.L1Ball(2, 1e19)])
    assert union.lmo(jnp.array([1e30, 0.0], jnp.float32)).dense()[0] == np.float32(-1e19)


def test_decompositions_refuse_narrow_floats_in_one_sentence():
    box = D.Box(jnp.zeros(4), jnp.ones(4)).intersect(jnp.ones((1, 4)), [1.5])
    sets = D.NuclearNormBall((2, 2), 1.0), D.Spectraplex(2), D.Fantope(2, 1), D.SchattenBall((2, 2), 1.0, 1.5), box
    for domain in (*sets, D.WeightedNuclearNormBall([1.0, 2.0], [1.0, 1.0], 1.0)):
        for answer in (domain.lmo, jax.jit(lambda x, domain=domain: domain.support(x)), domain.contains):
            for kind in (jnp.float16, jnp.bfloat16):
                with pytest.raises(DomainError, match=f"must be float32 or float64, got {kind.dtype}"):
                    answer(jnp.ones(domain.shape, kind))
    assert D.ProbabilitySimplex(2).lmo(jnp.ones(2, jnp.float16)).dense().dtype == jnp.float16
