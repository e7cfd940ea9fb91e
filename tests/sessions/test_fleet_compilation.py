"""After `compile`, calls of up to 1,024 campaigns wait for no compiler; nor do views of sessions."""

import jax
import numpy as np
import pytest
import session_tools as tools

import cocoax as cx
from cocoax.service.sessions import Sessions


@pytest.fixture
def compiled():
    """The programs that were compiled since the list was cleared."""
    events = []

    def count(event, *_, **__):
        if "backend_compile" in event:
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(count)
    yield events
    jax.monitoring.unregister_event_duration_listener(count)


def rounds(count):
    return {name: np.stack([leaf] * count) for name, leaf in tools.a_round(0).items()}


@pytest.mark.slow
@pytest.mark.parametrize("late", [{}, {"pending": 4, "copies": 1}, {"pending": 2}], ids=str)
def test_no_call_of_a_fleet_waits_for_a_compiler(compiled, late):
    with cx.Fleet(tools.problem(), tools.learner("DPP"), key=jax.random.key(0), horizon=99, **late) as it:
        it.compile(tools.a_round(0))
        compiled.clear()
        for count in (1, 2, 64, 65, 129, 513, 1024):
            names = [f"{count} {i}" for i in range(count)]
            first, second = it.decide(names), it.decide(names)
            tickets = {"tickets": second[1]} if late else {}
            it.observe(names, rounds(count), **tickets)  # with late feedback, before the first
            if late:
                it.observe(names, rounds(count), tickets=first[1])
    assert not compiled


@pytest.mark.slow
def test_no_view_of_sessions_waits_for_a_compiler(compiled):
    """Where multipliers stay small, so that nobody asks whether the constraints can be met."""
    problem = cx.Problem(
        cx.domains.Box(np.zeros(2), np.ones(2)), lambda x, r: -2 * r["v"] * x[1], lambda x, r: r["c"] * x[1] - 0.1
    )
    session, round = cx.Session(problem, cx.learners.Auto(), key=jax.random.key(0), certify=True), {"v": 1.0, "c": 0.1}
    with Sessions({"one": session}) as it:
        it.compile(round)
        compiled.clear()
        session.observe(round)
        assert it.summary("one")["rounds"] == it.summary()["rounds"] == it.certificate("one").rounds == 1
        it.regret_bounds(["one"])
    assert not compiled
