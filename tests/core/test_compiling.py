"""Options of XLA never change what can be done with a game."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.core import compiling, tree
from cocoax.core.compiling import game_options, one_kernel, quick_jit

ONES = jnp.ones(3)


@pytest.fixture
def options(monkeypatch):
    """Those that XLA is asked for; what is known of them is forgotten before and after."""

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


def test_of_options_that_xla_does_not_know_all_none_is_used(options):
    """Else a game might have kernels of one call without the option that they need."""
    options(**KNOWN, xla_cpu_of_another_version=True)
    assert compiling.quick_options() == {}
    assert quick_jit(lambda x: 2 * x)(1.0) == 2 == quick_jit(lambda x: 2 * x, once=True)(1.0)


def test_options_that_xla_knows_are_used(options):
    options(**KNOWN)
    assert compiling.quick_options() == KNOWN


def asked(monkeypatch, function, *given, **how):
    """The options with which it is compiled, and what is said of sums while it is traced."""
    seen, jit = [], jax.jit

    def spied(*arguments, compiler_options=None, **others):
        seen.append(compiler_options)
        return jit(*arguments, compiler_options=compiler_options, **others)

    said = []

    def noted(*given):
        said.append(tree.sums_in_order.get())
        return function(*given)

    compiling.quick_options()
    monkeypatch.setattr(jax, "jit", spied)
    quick_jit(noted, **how)(*given)
    return seen[-1], said


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="options of CPUs")
def test_each_program_is_compiled_with_the_options_of_its_kind(monkeypatch):
    """It is traced once, but for one with a long sum: there, nothing may count on sums in order."""
    cpu, once, short = (dict(compiling._known(kind)) for kind in ("cpu", "cpu, once", "cpu, short sums"))
    assert {"xla_cpu_scheduler_type", "xla_disable_hlo_passes"} == set(short) and once and cpu
    assert asked(monkeypatch, jnp.sum, jnp.ones(1000)) == (cpu | short, [True])
    assert asked(monkeypatch, jnp.sum, jnp.ones(9000)) == (cpu, [True, False])
    assert asked(monkeypatch, jnp.sum, jnp.ones(1000), once=True) == (cpu | once, [False])


def test_arguments_of_the_same_form_are_looked_at_once():
    count = []
    double = quick_jit(lambda x, times: count.append(x) or x * times, static_argnums=1)
    for given in ((jnp.ones(3), 2), (jnp.zeros(3), 2), (np.ones(3), 2)):
        double(*given)
    assert len(count) == 1 and double(jnp.ones(3), 4).tolist() == [4, 4, 4] and len(count) == 2
    assert double(jnp.ones(2, jnp.int32), 2).dtype == jnp.int32 and len(count) == 3


@pytest.mark.parametrize("kind", [kind for kind in compiling._OPTIONS if kind.startswith("cpu")])
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="options of CPUs")
def test_this_xla_knows_all_options(kind):
    assert compiling._known(kind) == compiling._OPTIONS[kind]


def test_options_of_gpus_are_none_of_cpus(options, monkeypatch):
    """This XLA knows them, but a game on a GPU asks for no order of sums."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    of_gpus = compiling.quick_options()
    assert of_gpus == {"xla_gpu_enable_while_loop_double_buffering": True} == game_options(jax.jit(jnp.sum).trace(ONES))


def test_a_game_goes_on_under_jit_from_a_state_that_is_not_traced():
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: r @ x, regularity=cx.Regularity(lipschitz=2.0))
    rounds, learner = np.eye(3)[[0, 1, 1, 2]], cx.learners.Blocks(cx.primal.Tracked())
    game = cx.play(problem, learner, rounds, key=jax.random.key(0), horizon=8)
    loss = jax.jit(lambda: cx.play(problem, learner, rounds, state=game.state).loss)()
    np.testing.assert_allclose(loss, cx.play(problem, learner, rounds, state=game.state).loss, rtol=1e-12)


# One kernel for a few numbers


@pytest.fixture
def own():
    with compiling.own_program():
        yield


def test_programs_of_users_have_no_kernels_of_one_call():
    """XLA ends the process where it cannot compile one, and users transform games in ways that nobody tried."""
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: r @ x)
    game = jax.jit(lambda rounds: cx.play(problem, cx.learners.Auto(), rounds, key=jax.random.key(0)).loss)
    cx.play(problem, cx.learners.Auto(), jnp.ones((4, 3)), key=jax.random.key(0))  # whose trace must not be taken
    assert "xla_cpu_small_call" not in game.lower(jnp.ones((4, 3))).as_text()


def some_numbers(x, many, flag, nothing):
    best = jnp.maximum(many, x).max()
    return {"sum": x + many.sum() + nothing.sum(), "chosen": jnp.where(flag, best, -1)}, ~flag, many


NUMBERS = jnp.asarray(0.5), jnp.arange(3.0), jnp.asarray(True), jnp.zeros((2, 0))


@pytest.mark.usefixtures("own")
def test_one_kernel_computes_the_same_in_every_transformation():
    small = one_kernel(some_numbers)
    expected = some_numbers(*NUMBERS)
    for transformed in (small, jax.jit(small), one_kernel(lambda *numbers: small(*numbers))):
        jax.tree.map(np.testing.assert_array_equal, transformed(*NUMBERS), expected)
    batch = jnp.array([0.5, 7.0])
    many = jax.jit(jax.vmap(small, (0, None, None, None)))(batch, *NUMBERS[1:])
    np.testing.assert_array_equal(many[0]["chosen"], [2, 7])
    assert jax.jit(jax.grad(lambda x: small(x, *NUMBERS[1:])[0]["sum"]))(0.5) == 1


@pytest.mark.usefixtures("own")
def test_one_kernel_keeps_dtypes():
    single, double = jnp.asarray(0.1, jnp.float32), jnp.asarray(0.1, float)
    found = jax.jit(one_kernel(lambda *numbers: numbers))(single, double, jnp.asarray(False))
    assert [leaf.dtype for leaf in found] == [jnp.float32, double.dtype, bool]
    assert found[0] == single and found[1] == double


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("flag", [True, False])
def test_arguments_that_a_kernel_does_not_need_end_no_process(flag):
    """XLA aborts, and no error can be caught, where it removes one of several arguments."""
    chosen = one_kernel(lambda x, y, flag: jnp.where(flag, x, 1.0))
    assert jax.jit(lambda x: chosen(x, x, jnp.asarray(flag)))(3.0) == (3 if flag else 1)
    assert jax.jit(lambda x: chosen(jnp.zeros(()), jnp.zeros(2), jnp.asarray(flag)) + x)(0.0) == (0 if flag else 1)


class Largest(eqx.Module):
    def best(self, many):
        return jnp.sort(many)[-1]


@pytest.mark.usefixtures("own")
def test_modules_of_users_may_do_what_no_kernel_can():
    """XLA does not compile a sort into a kernel: a subclass of `RobustPI` with one in `tolerated` broke Auto."""
    best = jax.jit(one_kernel(lambda rule, many: rule.best(many)))
    assert best(Largest(), jnp.array([1.0, 3.0, 2.0])) == 3


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("derivative", [jax.grad, jax.jacfwd, jax.hessian])
def test_derivatives_are_no_kernels_of_several_arguments(derivative):
    """XLA ended the process in the gradient of a game of Auto on a simplex, without constraints."""
    small = one_kernel(lambda x, many: jnp.exp(x) * many.sum())
    by_hand = jax.jit(derivative(lambda x: small(x, jnp.arange(3.0))))
    assert "xla_cpu_small_call" not in by_hand.lower(0.0).as_text()
    assert by_hand(0.0) == 3


@pytest.mark.usefixtures("own")
def test_several_devices_have_no_kernels_of_their_own(monkeypatch):
    """XLA compiles no sum of an array that is divided among devices into one kernel."""
    monkeypatch.setattr(jax, "device_count", lambda: 2)
    program = jax.jit(lambda numbers: one_kernel(some_numbers)(*numbers)[0]).lower(NUMBERS).as_text()
    assert "xla_cpu_small_call" not in program


@pytest.mark.usefixtures("own")
def test_one_kernel_is_one():
    program = jax.jit(lambda numbers: one_kernel(some_numbers)(*numbers)[0]).lower(NUMBERS).compile().as_text()
    if jax.default_backend() == "cpu" and jax.device_count() == 1:
        assert program.count("xla_cpu_small_call") == 1
