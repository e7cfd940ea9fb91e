"""Interior points against CVXPY (Clarabel): every set, smooth and kinked, with a full, diagonal or singular Hessian."""

import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import pytest
from cone_tools import solved

import cocoax as cx
from cocoax.comparators import methods
from cocoax.comparators.factorisation import Program
from cocoax.comparators.interior import solve_interior
from cocoax.comparators.quadratic import Unsolved
from cocoax.comparators.variables import variables_of

SIZE, ROUNDS = 24, 40


def product(n):
    blocks = [cx.domains.UnitSimplex(n // 3), cx.domains.L1Ball(n // 3, 0.7), cx.domains.L2Ball(n - 2 * (n // 3), 0.5)]
    return cx.domains.Product(blocks)


SETS = {
    "box": (
        lambda n: cx.domains.Box(jnp.full(n, -0.2), jnp.linspace(0.1, 0.4, n)),
        lambda x, n: [x >= -0.2, x <= np.linspace(0.1, 0.4, n)],
    ),
    "linf": (lambda n: cx.domains.LinfBall(n, 0.2), lambda x, n: [cp.norm_inf(x) <= 0.2]),
    "simplex": (lambda n: cx.domains.ProbabilitySimplex(n), lambda x, n: [cp.sum(x) == 1, x >= 0]),
    "unit simplex": (lambda n: cx.domains.UnitSimplex(n), lambda x, n: [cp.sum(x) <= 1, x >= 0]),
    "l1": (lambda n: cx.domains.L1Ball(n, 1.5), lambda x, n: [cp.norm1(x) <= 1.5]),
    "l2": (lambda n: cx.domains.L2Ball(n, 0.5), lambda x, n: [cp.norm2(x) <= 0.5]),
    "product": (
        product,
        lambda x, n: [
            cp.sum(x[: n // 3]) <= 1,
            x[: n // 3] >= 0,
            cp.norm1(x[n // 3 : 2 * (n // 3)]) <= 0.7,
            cp.norm2(x[2 * (n // 3) :]) <= 0.5,
        ],
    ),
}


def programs(rng, size, rounds):
    """Named programs with two rows, of which one binds at the domain's start."""
    rows, answers, none = rng.normal(size=(rounds, size)), rng.normal(size=rounds), np.zeros(0)
    use = np.stack([rng.normal(size=size), rng.uniform(size=size)]) / size
    flat, smooth = np.zeros((0, size)), (np.zeros((0, size)), none, none)
    kinked = (rows, -answers, rng.uniform(size=rounds))
    few = (rows[: size // 4], -answers[: size // 4], np.ones(size // 4))
    return {
        "full": (Program(rows.T @ rows, flat, -rows.T @ answers, *smooth, use, none)),
        "singular": (Program(np.zeros((size, size)), rows[:5], rows[6], *smooth, use, none)),
        "diagonal": (Program(rng.uniform(size=size), flat, rows[0], *smooth, use, none)),
        "kinked": (Program(rows.T @ rows, flat, rows[0], *kinked, use, none)),
        "few kinks": (Program(np.full(size, 0.1), rows[:3], rows[0], *few, use, none)),
    }


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", [0, 1])
def test_they_agree_with_a_generic_solver(name, seed):
    made, limits = SETS[name]
    variables = variables_of(made(SIZE))
    assert variables is not None
    for kind, program in programs(np.random.default_rng(seed), SIZE, ROUNDS).items():
        program = program._replace(h=program.J @ variables.point(variables.start) + np.array([0.0, 0.01]))
        answer = solve_interior(program, variables, lambda value: 1e-7, 1e-9, lambda: None)
        x = cp.Variable(SIZE)
        hessian = (program.H if program.H.ndim == 2 else np.diag(program.H)) + program.F.T @ program.F
        loss = 0.5 * cp.quad_form(x, cp.psd_wrap(hessian)) + program.c @ x
        loss = loss + program.w @ cp.abs(program.A @ x + program.b) if len(program.w) else loss
        value = solved(loss, [program.J @ x <= program.h, *limits(x, SIZE)])
        kinks = program.w @ np.abs(program.A @ answer.point + program.b)
        found = program.smooth(answer.point)[0] + kinks
        assert abs(found - value) <= 1e-5 * max(1.0, abs(value)), kind
        assert np.all(program.J @ answer.point <= program.h + 1e-8) and np.all(answer.rows >= 0)
        assert np.all(np.abs(answer.kinks) <= program.w * (1 + 1e-12))


def test_entries_that_cannot_move_are_left_to_others():
    assert variables_of(cx.domains.Box(jnp.array([0.0, 1.0]), jnp.array([1.0, 1.0]))) is None


def test_a_row_that_repeats_the_set_is_left_to_others():
    """sum x <= 1 where sum x = 1: the rows' system becomes singular."""
    none, flat = np.zeros(0), np.zeros((0, 3))
    program = Program(np.zeros(3), flat, np.arange(3.0), flat, none, none, np.ones((1, 3)), np.ones(1))
    variables = variables_of(cx.domains.ProbabilitySimplex(3))
    with pytest.raises(Unsolved):
        solve_interior(program, variables, lambda value: 1e-12, 0.0, lambda: None)


@pytest.mark.parametrize("kind", ["quadratic", "absolute"])
def test_hindsight_on_a_full_and_ill_conditioned_problem(kind, monkeypatch):
    """As many rounds as entries: first-order methods need minutes, the sparse solver is handed nothing."""
    monkeypatch.setattr(methods, "_TRIAL", 0.0)
    monkeypatch.setattr(methods, "_LIGHT", 0.0)
    monkeypatch.setattr(methods, "_any", None)
    size = 320
    rng = np.random.default_rng(0)
    rows, answers, use = rng.normal(size=(size, size)), rng.normal(size=size), rng.normal(size=(3, size)) / size**0.5
    limit = np.array([0.0, -0.1, 0.1])

    def loss(x, r):
        error = jnp.vdot(r["row"], x) - r["answer"]
        return jnp.abs(error) if kind == "absolute" else 0.5 * error**2

    domain = cx.domains.Box(jnp.full(size, -0.3), jnp.full(size, 0.2))
    problem = cx.Problem(domain, loss, lambda x, r: use @ x - limit, constraints=3)
    best = cx.hindsight(problem, {"row": rows, "answer": answers}, tol=1e-5, progress=False)
    x = cp.Variable(size)
    total = cp.norm1(rows @ x - answers) if kind == "absolute" else 0.5 * cp.sum_squares(rows @ x - answers)
    value = solved(total, [x >= -0.3, x <= 0.2, use @ x <= limit])
    assert best.lower_bound <= value + 1e-7 * value and abs(best.value - value) <= 2e-5 * value
    assert best.gap <= 1e-5 * best.value
