"""Options of XLA never change what can be done with a game."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.core import compiling
from cocoax.core.compiling import quick_jit


@pytest.fixture
def options(monkeypatch):
    """Those that XLA is asked for; what is known of them is forgotten before and after."""

    def ask(**asked):
        monkeypatch.setattr(compiling, "_QUICK", asked)

    compiling.quick_options.cache_clear()
    yield ask
    compiling.quick_options.cache_clear()


def test_a_quick_program_can_be_transformed_as_any():
    cube = quick_jit(lambda x, power: x**power, static_argnums=1)
    assert cube(2.0, 3) == 8
    assert jax.jit(lambda x: cube(x, 3))(2.0) == 8
    assert jax.jit(lambda: cube(2.0, 3))() == 8  # nothing is traced
    assert jax.grad(lambda x: cube(x, 3))(2.0) == 12
    np.testing.assert_array_equal(jax.vmap(lambda x: cube(x, 3))(jnp.arange(3.0)), [0, 1, 8])


def test_options_that_xla_does_not_know_are_left_out(options):
    options(xla_cpu_of_another_version=True)
    assert compiling.quick_options() == {}
    assert quick_jit(lambda x: 2 * x)(1.0) == 2


def test_options_that_xla_knows_are_used(options):
    options(xla_cpu_use_fusion_emitters=False)
    expected = {"xla_cpu_use_fusion_emitters": False} if jax.default_backend() == "cpu" else {}
    assert compiling.quick_options() == expected


def test_a_game_goes_on_under_jit_from_a_state_that_is_not_traced():
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: r @ x, regularity=cx.Regularity(lipschitz=2.0))
    rounds, learner = np.eye(3)[[0, 1, 1, 2]], cx.learners.Blocks(cx.primal.Tracked())
    game = cx.play(problem, learner, rounds, key=jax.random.key(0), horizon=8)
    loss = jax.jit(lambda: cx.play(problem, learner, rounds, state=game.state).loss)()
    np.testing.assert_allclose(loss, cx.play(problem, learner, rounds, state=game.state).loss, rtol=1e-12)
