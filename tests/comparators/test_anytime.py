"""`hindsight` returns what it has: after some seconds, on Ctrl-C, and from an earlier answer."""

import time

import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import hindsight
from cocoax.comparators import methods
from cocoax.comparators.clock import Clock, OutOfTime

SIZE = 400


def loss(x, r):
    return 0.5 * (jnp.vdot(r["row"], x) - r["answer"]) ** 2


def constraint(x, r):
    return jnp.vdot(r["use"], x) - r["budget"]


PROBLEM = cx.Problem(cx.domains.Box(jnp.zeros(SIZE), jnp.ones(SIZE)), loss, constraint)


def rounds(horizon=600):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(700, SIZE)) * np.logspace(0, -2, SIZE)
    answers = rows @ rng.normal(size=SIZE) + rng.normal(size=700)
    data = {"row": rows, "answer": answers, "use": rng.uniform(size=(700, SIZE)), "budget": np.full(700, 60.0)}
    return {name: leaf[:horizon] for name, leaf in data.items()}


@pytest.fixture(scope="module")
def best():
    return hindsight(PROBLEM, rounds())


def is_honest(answer, best):
    """In the domain, feasible to the default tolerance, and neither bound contradicts the closed certificate."""
    assert bool(PROBLEM.domain.contains(jnp.asarray(answer.x), 1e-9))
    slack = 1e-5 * abs(best.value)
    assert answer.lower_bound <= best.value + slack
    if answer.constraint.mean(0).max() <= 0:
        assert answer.value >= best.lower_bound - slack


def test_time_is_kept_and_the_gap_is_honest(best):
    for seconds in (1e-9, 0.05, 0.3):
        began = time.monotonic()
        with pytest.warns(UserWarning, match="before its certificate closed"):
            answer = hindsight(PROBLEM, rounds(), tol=1e-14, seconds=seconds)
        assert time.monotonic() - began <= 1.2 * seconds + 2.0  # passes over the rounds, on a busy machine
        is_honest(answer, best)


def test_an_interrupt_returns_what_is_known(best, monkeypatch):
    def interrupted(search):
        raise KeyboardInterrupt

    monkeypatch.setattr(methods, "_first_order", interrupted)
    with pytest.warns(UserWarning, match="before its certificate closed"):
        answer = hindsight(PROBLEM, rounds())
    is_honest(answer, best)
    assert answer.gap > 1e-3


def test_an_earlier_answer_is_a_better_start(best):
    grown = rounds(620)
    with pytest.warns(UserWarning, match="before its certificate closed"):
        cold, warm = (hindsight(PROBLEM, grown, start=start, seconds=1e-9) for start in (None, best))
    assert warm.value < cold.value - 0.5 * (cold.value - best.value)
    np.testing.assert_allclose(hindsight(PROBLEM, grown, start=best).value, hindsight(PROBLEM, grown).value, rtol=1e-5)


def test_a_start_outside_is_projected_or_refused():
    with pytest.warns(UserWarning, match="before its certificate closed"):
        answer = hindsight(PROBLEM, rounds(), start=np.full(SIZE, 3.0), seconds=1e-9)
    assert answer.x.max() <= 1.0
    oracle = cx.domains.from_lmo(lambda g: -jnp.sign(g), start=jnp.zeros(2), diameter=3.0)
    with pytest.raises(cx.ProblemError, match="start must be what hindsight returned"):
        hindsight(cx.Problem(oracle, lambda x, r: r @ x), np.ones((3, 2)), start=np.zeros(2))
    with pytest.raises(cx.ProblemError, match="seconds must be positive"):
        hindsight(PROBLEM, rounds(), seconds=0)
    with pytest.raises(cx.ProblemError, match="progress must be True or False, got 3"):
        hindsight(PROBLEM, rounds(), progress=3)


def test_the_clock_speaks_after_two_seconds_and_then_stops(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Clock(10.0) as clock:
        for now[0] in (1.0, 3.0):
            clock.check(lambda: "gap 1")
    assert capsys.readouterr().err.count("gap 1") == 1
    now[0] = 11.0
    with pytest.raises(OutOfTime):
        clock.check(lambda: "gap 1")


def test_the_clock_leaves_time_to_compile_the_answer(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    clock = Clock(10.0, progress=False)
    now[0] = 2.0  # until the functions were compiled
    clock.measure_compilation()
    assert clock.left <= 10.0 - 2.0 - 2.0 and clock.allows_compilation()
    now[0] = 6.0
    assert not clock.allows_compilation()
    now[0] = 8.0
    with pytest.raises(OutOfTime):
        clock.check(lambda: "gap 1")
