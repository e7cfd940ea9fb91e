"""Kernels for large and for small matrices on a GPU: interpreted here, they say what the formulas say, which all else
uses."""

import contextlib
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_tools import slow_but

import cocoax as cx
from cocoax.domains import NuclearNormBall
from cocoax.domains.matrices.kernels import dispatch, large, small
from cocoax.domains.matrices.krylov import golub_kahan, golub_kahan_at_once, scaled_products, unit
from cocoax.domains.matrices.span import _products, _sums
from cocoax.domains.vertices import RankOne

FEW = [(3, 5), (70, 1100)]  # columns: fewer than a program reads together; more, and no multiple of them
SHAPES = [*FEW, (1, 1), (300, 129), (5, 2048)]
gpu = jax.make_user_context()  # a part of the key of everything that JAX keeps
COUNTED = [(shape, count) for shape in SHAPES for count in (1, 3)]


def drawn(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def vertices(shape, k=9):
    return RankOne(drawn(k, shape[0], seed=1), drawn(k, shape[1], seed=2), jnp.linspace(1.0, 2.0, k, dtype=jnp.float32))


def assert_close(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        assert a.dtype == b.dtype == jnp.float32
        np.testing.assert_allclose(a, b, atol=2e-6 * np.max(np.abs(b)))  # 1e-6 measured


@contextlib.contextmanager
def as_on_a_gpu(module, *names):
    """This processor interprets a module's kernels, for matrices of any size. What is compiled here is used nowhere
    else, and nothing here that was compiled elsewhere."""
    with pytest.MonkeyPatch.context() as patch, gpu(module.__name__):
        for name in names:
            patch.setattr(module, name, functools.partial(getattr(module, name), interpret=True))
        patch.setattr(module, "pays", lambda *given: True)
        patch.setattr(jax.lax, "platform_dependent", lambda *given, cuda, default: cuda(*given))
        yield


large_kernels = functools.partial(as_on_a_gpu, large, "both", "products", "sums")


@pytest.fixture(scope="class")
def interpreted():
    with large_kernels():
        yield


@pytest.mark.parametrize("shape", slow_but([(shape,) for shape in FEW], [(shape,) for shape in SHAPES]))
def test_both_products(shape):
    matrix, x = drawn(*shape), unit(drawn(shape[1], seed=3))
    both = jax.jit(functools.partial(large.both, interpret=True))
    image, square, largest = both(matrix, x)
    exact = np.asarray(matrix, np.float64)
    expected = exact @ np.asarray(x)
    expected = expected / np.max(np.abs(expected))
    np.testing.assert_allclose(image, expected, atol=1e-6)
    scale = 0.1 / max(shape) ** 0.5 / float(largest)  # C over the matrix
    expected = scale * expected @ exact
    np.testing.assert_allclose(square, expected, atol=2e-6 * np.max(np.abs(expected)))
    again, _, same = large.both(matrix, 2 * x, largest, interpret=True)
    np.testing.assert_allclose(again, 2 * image, rtol=1e-6)
    assert same == largest


@pytest.mark.parametrize("shape", slow_but([(shape,) for shape in FEW], [(shape,) for shape in SHAPES]))
def test_inner_products(shape):
    one, other, stack = drawn(*shape), drawn(*shape, seed=4), vertices(shape)
    given = one, other, stack.left * stack.scale[:, None], stack.right
    assert_close(*jax.jit(lambda *given: (large.products(*given, interpret=True), _products(*given)))(*given))


@pytest.mark.parametrize("shape, count", slow_but([((3, 5), 1), *((shape, 3) for shape in FEW)], COUNTED))
def test_sums(shape, count):
    given = drawn(*shape), drawn(*shape, seed=4), vertices(shape), tuple(drawn(count, 11, seed=5))
    assert_close(*jax.jit(lambda *given: (large.sums(*given, interpret=True), _sums(*given)))(*given))


@jax.jit
def at_once(matrix, first):
    return golub_kahan_at_once(functools.partial(large.both, matrix, interpret=True), first, 4)


@jax.jit
def step_by_step(matrix, first):
    forward, backward, is_zero = scaled_products(matrix, first)
    return *golub_kahan(forward, backward, first, 4), is_zero


@pytest.mark.parametrize("shape", [(60, 130), pytest.param((130, 60), marks=pytest.mark.slow)])
def test_golub_kahan_at_once_is_golub_kahan_at_any_scale(shape):
    matrix, first = drawn(*shape), unit(drawn(shape[1], seed=3))
    for scale in (0.0, 1e-33, 1.0, 1e30, 7e37):
        asked = jnp.float32(scale) * matrix
        (left, right, zero), expected = at_once(asked, first), step_by_step(asked, first)
        assert zero == expected[2] == (scale == 0)
        if scale:
            value = float(expected[0] @ (matrix @ expected[1]))
            assert left @ (matrix @ right) == pytest.approx(value, rel=2e-5), scale  # 9e-6 measured, at 1e-33


def test_nothing_overflows_and_nan_is_not_zero():
    ones = np.ones((60, 130), np.float32)
    left, right, zero = at_once(1e38 * ones, ones[0] / np.float32(130) ** 0.5)
    assert not zero and abs(np.sum(left) * np.sum(right)) == pytest.approx((60 * 130) ** 0.5, rel=1e-5)
    left, _, zero = at_once(np.where(np.arange(130) == 2, np.float32(np.nan), ones), ones[0])
    assert not zero and np.isnan(left).any()


@pytest.mark.usefixtures("interpreted")
class TestAsOnAGPU:
    def test_batches_and_derivatives_go_by_the_formula(self):
        """The kernel is another function here, so that it shows which was asked."""
        call = large.chosen(lambda x, y: 100 * x["a"] + y, lambda x, y: x["a"] ** 2 + y)
        x, y = jnp.arange(3.0), jnp.ones(())
        assert call({"a": x[2]}, y) == 201
        np.testing.assert_array_equal(jax.vmap(call, (0, None))({"a": x}, y), x**2 + 1)
        twice = jax.jit(jax.vmap(jax.vmap(call), (None, 0)))
        np.testing.assert_array_equal(twice({"a": x}, jnp.ones((2, 3)))[1], x**2 + 1)
        assert jax.grad(call)({"a": x[2]}, y) == {"a": 4}
        np.testing.assert_array_equal(jax.vmap(jax.grad(call), (0, None))({"a": x}, y)["a"], 2 * x)


def test_low_rank_and_warm_guesses_do_not_break_golub_kahan_at_once():
    left, right = np.asarray(drawn(2, 60, seed=1)), np.asarray(drawn(2, 130, seed=2))
    one = np.outer(left[0], right[0])

    for matrix in (one, one + np.float32(0.5) * np.outer(left[1], right[1]), np.eye(60, 130, dtype=np.float32)):
        first, top = unit(drawn(130, seed=3)), float(np.linalg.norm(matrix, ord=2))
        for _ in range(4):
            found, first, _ = at_once(matrix, first)
        assert np.asarray(found) @ (matrix @ np.asarray(first)) == pytest.approx(top, rel=2e-6)


def test_a_game_by_kernels_is_the_game_by_formulas():
    problem = cx.Problem(
        NuclearNormBall((30, 20), 2.0),
        lambda x, r: 0.5 * jnp.sum((x - r) ** 2),
        lambda x, r: jnp.sum(x) - 1.0,
        regularity=cx.Regularity(8.0, 1.0, 30.0),
    )
    rounds = drawn(10, 30, 20) / 20 + drawn(1, 30, 20, seed=6) / 5

    def tracker():
        start = jnp.zeros((30, 20), jnp.float32)
        learner = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.RegularizedAscent(theta=1.0, mu=0.1))
        return cx.play(problem, learner, rounds, key=jax.random.key(0), start=start).state.primal.tracker

    expected = tracker().point
    with large_kernels():
        ended = tracker()
    found = ended.point
    # nine weights and entries below 1, rounded to 1.2e-7 a few times
    assert ended.left + ended.weights.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(found, ended.left * ended.rest + ended.atoms.combine(ended.weights), atol=1e-6)
    assert found.dtype == jnp.float32 and not np.array_equal(found, expected)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.max(np.abs(expected)) > 0.05


@functools.partial(jax.jit, static_argnums=2)
def steps_in_registers(matrix, first, steps=4):
    return jax.vmap(functools.partial(small.golub_kahan, steps=steps, interpret=True))(matrix, first)


def directions(*shape):
    return jax.vmap(unit)(drawn(*shape, seed=3))


REGISTERS = [((2, 50),), ((64, 33),), ((1, 1),), ((17, 3),), ((50, 50),)]


@pytest.mark.parametrize("shape", slow_but(REGISTERS[1:2], REGISTERS))
def test_steps_in_registers_are_golub_kahan_at_any_scale(shape):
    matrices, firsts = drawn(3, *shape), directions(3, shape[1])
    by_products = jax.jit(dispatch._by_products(4))
    lefts, rights, _ = zip(*(by_products(*pair) for pair in zip(matrices, firsts)))
    for scale in (0.0, 1e-40, 1e-33, 1.0, 1e30, 7e37):
        left, right, zero = steps_in_registers(jnp.float32(scale) * matrices, firsts)
        assert zero.tolist() == [scale < 1e-38] * 3
        if scale > 1e-38:
            np.testing.assert_allclose(left, np.stack(lefts), atol=5e-6, err_msg=f"{scale}")  # 1e-6 measured
            np.testing.assert_allclose(right, np.stack(rights), atol=5e-6, err_msg=f"{scale}")


@pytest.mark.parametrize("steps", slow_but([7], [1, 3, 7]))
def test_any_number_of_steps_in_registers(steps):
    matrices, firsts = drawn(3, 20, 30), directions(3, 30)
    left, right, _ = steps_in_registers(matrices, firsts, steps)
    by_products = jax.jit(dispatch._by_products(steps))
    for a, b, matrix, first in zip(*map(np.asarray, (left, right, matrices, firsts))):
        expected = [np.asarray(part) for part in by_products(matrix, first)]
        value = float(expected[0] @ matrix @ expected[1])
        assert a @ matrix @ b == pytest.approx(value, rel=1e-6)
        assert np.linalg.norm(a) == pytest.approx(1, abs=1e-6) == np.linalg.norm(b)


def test_low_rank_and_nan_in_registers():
    one = np.outer(drawn(20, seed=1), drawn(30, seed=2))
    matrices = np.stack([one, np.eye(20, 30, dtype=np.float32), one])
    matrices[2, 3, 4] = np.nan
    left, right, zero = map(np.asarray, steps_in_registers(matrices, directions(3, 30), 7))
    assert left[0] @ one @ right[0] == pytest.approx(float(np.linalg.norm(one)), rel=2e-6)
    assert left[1] @ matrices[1] @ right[1] == pytest.approx(1, rel=2e-6)
    assert np.isnan(left[2]).any() and not zero.any()


def test_answers_for_small_matrices_come_from_registers():
    """Alone and in batches, and derivatives from the formula."""
    ball, matrices = NuclearNormBall((8, 6), 1.0), drawn(5, 8, 6)
    guess = RankOne(drawn(8), drawn(6), jnp.float32(1))

    def answer(matrix):
        return ball.lmo(matrix, guess).dense()

    slope = jax.grad(lambda matrix: ball.lmo(matrix, guess).dot(matrix))
    expected, slope_of_formula = [jax.jit(answer)(matrix) for matrix in matrices], jax.jit(slope)(matrices[0])
    with as_on_a_gpu(small, "golub_kahan"):
        answers = jax.jit(jax.vmap(answer))
        # entries below 1, each rounded to 6e-8 some ten times on both ways
        np.testing.assert_allclose(answers(matrices), np.stack(expected), atol=2e-6)
        np.testing.assert_allclose(jax.jit(answer)(matrices[0]), expected[0], atol=2e-6)
        found = jax.jit(slope)(matrices[0])
    np.testing.assert_allclose(found, slope_of_formula, atol=1e-6)


def lowered_for_a_gpu(function, *shapes):
    given = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return jax.jit(function).trace(*given).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize("m, n", [(1, 1), (3, 64), (50, 50), (64, 33)])
def test_small_kernels_can_be_made_for_a_gpu(m, n):
    steps = functools.partial(small.golub_kahan, steps=4)
    assert "triton" in lowered_for_a_gpu(steps, (m, n), (n,))
    assert "triton" in lowered_for_a_gpu(jax.vmap(jax.vmap(steps)), (2, 3, m, n), (2, 3, n))


def test_large_kernels_can_be_made_for_a_gpu():
    m, n, k = 70, 1100, 9
    assert "triton" in lowered_for_a_gpu(lambda *given: large.both(*given)[:2], (m, n), (n,))
    assert "triton" in lowered_for_a_gpu(large.products, (m, n), (m, n), (k, m), (k, n))

    def sums(one, other, left, right, scale, weights):
        return large.sums(one, other, RankOne(left, right, scale), tuple(weights))

    assert "triton" in lowered_for_a_gpu(sums, (m, n), (m, n), (k, m), (k, n), (k,), (3, k + 2))
