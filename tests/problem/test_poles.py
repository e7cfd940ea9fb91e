"""What may be infinite is seen in the trace; what the trace does not show counts as a pole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quadratic_tools import functions, some_rounds

import cocoax as cx
from cocoax.problem.poles import may_have_poles

BOX = cx.domains.Box(np.zeros(3), np.ones(3))
TABLE = jnp.array([1.0, 2.0, 4.0])
INFINITE = jnp.array([1.0, jnp.inf, 4.0])
FINITE = {
    "squares": lambda x, r: 0.5 * jnp.sum((x - r) ** 2),
    "linear": lambda x, r: jnp.vdot(r, x),
    "kinks": lambda x, r: jnp.maximum(jnp.abs(x - r).max(), 0.1),
    "chosen entries": lambda x, r: jnp.where(r > 0, x, -x)[jnp.array([0, 2])].sum(),
    "a mean": lambda x, r: jnp.mean(x * TABLE) + jnp.tanh(x[0]),
    "clipped": lambda x, r: jnp.clip(x, 0.1, 0.9).sum(),
}
POLES = {
    "logarithm": lambda x, r: -jnp.log(x).sum(),
    "root": lambda x, r: -jnp.sqrt(x).sum(),
    "a power below 1": lambda x, r: -(x**0.5).sum(),
    "inverse": lambda x, r: (x**-1).sum(),
    "quotient": lambda x, r: x[0] / x[1],
    "length": lambda x, r: jnp.linalg.norm(x - r),
    "infinity": lambda x, r: jnp.where(x > 0.5, x, jnp.inf).sum(),
    "entropy": lambda x, r: jnp.sum(x * jnp.log(x)),
    "an infinite table": lambda x, r: jnp.vdot(x, INFINITE),
    "an infinite table of a function": lambda x, r: jax.jit(lambda x: jnp.vdot(x, INFINITE))(x),
    "an entry beyond the end": lambda x, r: jnp.take(x, r.astype(int)).sum(),
}


@pytest.mark.parametrize("name", FINITE)
def test_what_is_finite_everywhere_has_no_pole(name):
    assert not may_have_poles(cx.Problem(BOX, FINITE[name], FINITE["linear"]), BOX.start(), np.ones(3))


@pytest.mark.parametrize("name", POLES)
def test_a_pole_in_the_loss_or_in_the_constraint_is_seen(name):
    for pair in ((POLES[name], FINITE["linear"]), (FINITE["linear"], POLES[name])):
        assert may_have_poles(cx.Problem(BOX, *pair), BOX.start(), np.ones(3))


def test_tables_are_looked_at_in_compiled_code_too():
    """Those of the function; arguments of the program are traced, and count as finite."""

    def has(table):
        problems = [cx.Problem(BOX, lambda x, r, t=t: jnp.vdot(x, t)) for t in (TABLE, INFINITE, table)]
        return [jnp.asarray(may_have_poles(problem, BOX.start(), np.ones(3))) for problem in problems]

    assert [bool(each) for each in jax.jit(has)(INFINITE)] == [False, True, False]


def test_gradients_of_the_user_are_not_seen_into():
    problem = cx.Problem(BOX, FINITE["linear"], loss_grad=lambda x, r: r)
    assert may_have_poles(problem, BOX.start(), np.ones(3))


def test_the_transcribed_quadratics_have_none():
    """So the comparisons with NumPy cover what Auto leaves out."""
    domain = cx.domains.ProbabilitySimplex(5, 2.0)
    rounds = {name: values[0] for name, values in some_rounds(domain.shape, 2).items()}
    assert not may_have_poles(cx.Problem(domain, *functions(1.0, 0.5), constraints=2), domain.start(), rounds)


def test_factored_matrices_are_traced_too():
    ball = cx.domains.NuclearNormBall((4, 3), 1.0, factored=True, entries=([0, 2], [1, 1]))
    problem = cx.Problem(ball, lambda x, r: 0.5 * (x.entries() - r) @ (x.entries() - r))
    assert not may_have_poles(problem, ball.start(), 1.0)
