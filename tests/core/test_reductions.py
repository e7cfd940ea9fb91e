"""Sums in order, where they are short, are as exact as those of a tree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.core import compiling
from cocoax.core.compiling import game_options, quick_jit
from cocoax.core.reductions import SHORT, sums_are_short

VECTOR, LONG, MATRIX = jnp.ones(4095), jnp.ones(4096), jnp.ones((50, 50))


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (jnp.sum, VECTOR, True),
        (jnp.sum, LONG, False),
        (jnp.min, LONG, False),
        (lambda x: jnp.vdot(x, x), VECTOR, True),
        (lambda x: jnp.vdot(x, x), LONG, False),
        (lambda x: x @ x, LONG, False),
        (lambda x: x.sum(axis=1), MATRIX, True),
        (lambda x: x.sum(axis=0), MATRIX, False),  # not side by side
        (lambda x: x[:32].sum(axis=0), MATRIX, True),  # so few are added in order anyhow
        (lambda x: x[:33].sum(axis=0), MATRIX, False),
        (jnp.argmax, LONG, False),
        (lambda x: jnp.ones((3, 4096)) @ x, LONG, False),
        (lambda x: x @ jnp.ones((4095, 5000)), VECTOR, True),  # as many products as may be, of short sums
        (lambda x: (x[None] + jnp.ones((20, 1, 1))).sum(axis=(2, 1)), MATRIX, True),
        (lambda x: x * 2, LONG, True),
        (jax.jit(jnp.sum), LONG, False),
        (lambda x: jax.lax.scan(lambda c, _: (c + x.sum(), None), 0.0, None, length=3), LONG, False),
        (lambda x: jax.lax.cond(x[0] > 0, jnp.sum, lambda x: x[0], x), LONG, False),
        (lambda x: jax.lax.while_loop(lambda c: c.sum() < 0, lambda c: c, x), LONG, False),
        (jax.vmap(jnp.sum), MATRIX, True),
        (lambda x: (x > 0).sum(), LONG, True),  # whole numbers
        (lambda x: jax.lax.reduce(x, 0.0, jax.lax.add, (0,)), LONG, False),
        (lambda x: (x[..., None] + jnp.ones((1, 1, 80))).sum(axis=2).sum(), MATRIX, False),  # XLA makes one sum of both
    ],
)
def test_sums_are_looked_for_wherever_they_stand(function, x, expected):
    assert sums_are_short(jax.jit(function).trace(x).jaxpr) is expected


def compiled(function, *given):
    """(the program with the options of a game, the program with those of all)."""
    traced = jax.jit(function).trace(*given)
    return [traced.lower().compile(compiler_options=of) for of in (game_options(traced), compiling.quick_options())]


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="options of CPUs")
@pytest.mark.parametrize("function", [lambda x: x.sum(), lambda x: jnp.vdot(x, x)])
def test_sums_in_order_are_one_loop_and_lose_few_digits(function):
    """At most 4.1 half units in the last place in the worst of 30 seeds."""
    x = np.random.default_rng(0).uniform(0, 1, (30, 4095)).astype(np.float32)
    in_order, as_tree = compiled(function, jnp.asarray(x[0]))
    assert "reduce-window" in as_tree.as_text() and "reduce-window" not in in_order.as_text()
    for one in x:
        exact = float(function(one.astype(float)))
        assert abs(float(in_order(one)) - exact) <= 8 * np.finfo(np.float32).eps / 2 * exact


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="options of CPUs")
def test_programs_with_long_sums_have_the_options_of_all():
    in_order, as_tree = (game_options(jax.jit(jnp.sum).trace(x)) for x in (VECTOR, LONG))
    assert as_tree == compiling.quick_options() and in_order != as_tree


@pytest.mark.parametrize(("size", "in_order"), [(100, True), (SHORT + 1, False)])
def test_games_on_vectors_that_are_not_long_add_in_order(monkeypatch, size, in_order):
    asked = []
    monkeypatch.setattr(compiling, "sums_are_short", lambda program: asked.append(sums_are_short(program)) or asked[-1])
    problem = cx.Problem(cx.domains.ProbabilitySimplex(size), lambda x, r: jnp.vdot(r, x), lambda x, r: x[0] - 0.5)
    rounds = jnp.ones((3, size)).at[:, 1].set(0.0)
    game = cx.play(problem, cx.learners.Auto(), rounds, key=jax.random.key(0))
    assert asked == ([in_order] if jax.default_backend() == "cpu" else [])
    np.testing.assert_allclose(
        game.loss, jax.jit(lambda r: cx.play(problem, cx.learners.Auto(), r, key=jax.random.key(0)).loss)(rounds), 1e-6
    )


def test_more_rounds_than_a_sum_may_have_change_no_bit():
    problem = cx.Problem(cx.domains.Box([0.0] * 50, [1.0] * 50), lambda x, r: jnp.vdot(r, x) + 0.5 * jnp.sum(x**2))
    rounds = np.random.default_rng(0).normal(size=(SHORT + 1, 50))
    whole, first = (cx.play(problem, cx.learners.Auto(), part, key=jax.random.key(0)) for part in (rounds, rounds[:-1]))
    np.testing.assert_array_equal(whole.loss[:-1], first.loss)


def test_the_same_shapes_are_traced_once():
    traces = []
    double = quick_jit(lambda x: traces.append(1) or 2 * x)
    assert double(jnp.ones(3)).tolist() == double(jnp.zeros(3) + 1).tolist() and len(traces) == 1
