"""Options of XLA never change what can be done with a game."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.core import compiling
from cocoax.core.compiling import options, quick_jit


@pytest.fixture
def asked(monkeypatch):
    """What XLA is asked for; what is known of it is forgotten before and after."""

    def ask(**asked):
        monkeypatch.setitem(compiling._OPTIONS, jax.default_backend(), asked)

    compiling._known.cache_clear()
    yield ask
    compiling._known.cache_clear()


@pytest.mark.parametrize("once", [False, True])
def test_a_quick_program_can_be_transformed_as_any(once):
    cube = quick_jit(lambda x, power: x**power, once=once, static_argnums=1)
    assert cube(2.0, 3) == 8
    assert jax.jit(lambda x: cube(x, 3))(2.0) == 8
    assert jax.jit(lambda: cube(2.0, 3))() == 8  # nothing is traced
    assert jax.grad(lambda x: cube(x, 3))(2.0) == 12
    np.testing.assert_array_equal(jax.vmap(lambda x: cube(x, 3))(jnp.arange(3.0)), [0, 1, 8])


KNOWN = {"xla_cpu_use_fusion_emitters": False}


def test_of_options_that_xla_does_not_know_all_none_is_used(asked):
    asked(**KNOWN, xla_cpu_of_another_version=True)
    assert options() == {}
    assert quick_jit(lambda x: 2 * x)(1.0) == 2 == quick_jit(lambda x: 2 * x, once=True)(1.0)


def test_options_that_xla_knows_are_used(asked):
    asked(**KNOWN)
    assert options() == KNOWN


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="options of CPUs")
def test_each_program_is_compiled_with_the_options_of_its_kind():
    cpu, once, short = (compiling._known(kind) for kind in ("cpu", "cpu, once", "cpu, short sums"))
    assert cpu and once and short
    assert options() == cpu and options(once=True) == cpu | once and options(short_sums=True) == cpu | short


@pytest.mark.parametrize("count", [10, 4095, 4096])
def test_long_sums_and_short_ones_say_the_same(count):
    """Which options a program gets depends on its size; each is traced once, and again for another shape."""
    traces = []
    double = quick_jit(lambda x: traces.append(1) or 2 * x.sum(), size=jnp.size)
    assert double(jnp.ones(count)) == 2 * count and double(jnp.zeros(count)) == 0 and len(traces) == 1
    assert double(jnp.ones(count - 1)) == 2 * (count - 1) and len(traces) == 2


@pytest.mark.parametrize("count", [4095, 100_000])
@pytest.mark.parametrize("function", [jnp.sum, lambda x: jnp.vdot(x, x)], ids=["sum", "product"])
def test_sums_in_one_loop_lose_few_digits(function, count):
    """At most 4.1 half units in the last place in the worst of 30 seeds; also of data longer than decisions."""
    x = np.random.default_rng(0).uniform(0, 1, (30, count)).astype(np.float32)
    compiled = jax.jit(function).lower(x[0]).compile(compiler_options=options(short_sums=True))
    for one in x:
        exact = float(np.asarray(function(one.astype(float))))
        assert abs(float(compiled(one)) - exact) <= 8 * np.finfo(np.float32).eps / 2 * exact


@pytest.mark.parametrize("kind", [kind for kind in compiling._OPTIONS if kind.startswith("cpu")])
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="options of CPUs")
def test_this_xla_knows_all_options(kind):
    assert compiling._known(kind) == compiling._OPTIONS[kind]


def test_a_game_goes_on_under_jit_from_a_state_that_is_not_traced():
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: r @ x, regularity=cx.Regularity(lipschitz=2.0))
    rounds, learner = np.eye(3)[[0, 1, 1, 2]], cx.learners.Blocks(cx.primal.Tracked())
    game = cx.play(problem, learner, rounds, key=jax.random.key(0), horizon=8)
    loss = jax.jit(lambda: cx.play(problem, learner, rounds, state=game.state).loss)()
    np.testing.assert_allclose(loss, cx.play(problem, learner, rounds, state=game.state).loss, rtol=1e-12)
