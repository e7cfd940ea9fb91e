"""Each campaign keeps its own budget, whatever waits, in whatever order its rounds come."""

import functools
import shutil

import jax
import numpy as np
import pytest

import cocoax as cx

NAMES = ["a", "b", "c"]
BUDGETS = np.array([0.3, 1.5, 4.0])


def spend(x, r):
    return r["c"] * x[1]


@functools.cache
def problem():
    return cx.Problem(
        cx.domains.ProbabilitySimplex(2),
        lambda x, r: -r["v"] * x[1],
        lambda x, r: r["c"] * x[1] - 0.1,
        request=True,
    )


def learner(budget=1.0, **options):
    return cx.learners.Budgeted(
        cx.learners.DualMirrorDescent(0.01), spend=spend, budget=budget, safe=[1.0, 0.0], **options
    )


def fleet(path=None, *, pending=0, it=None, **options):
    return cx.Fleet(problem(), it or learner(), path, key=jax.random.key(2), pending=pending, **options)


def requests(draw, count):
    return {"v": 1 + draw.random(count), "c": draw.random(count)}


@pytest.mark.parametrize("pending", [0, 3])
def test_no_campaign_exceeds_its_own_budget_and_each_is_a_session_with_it(tmp_path, pending):
    draw, spent = np.random.default_rng(pending), np.zeros(3)
    (files := tmp_path / "files").mkdir()
    with fleet(files / "fleet", pending=pending, snapshot_every=6) as it:
        it.begin(NAMES, budgets=BUDGETS)
        alone = [cx.Session(problem(), learner(b), key=it.key(n), pending=pending) for n, b in zip(NAMES, BUDGETS)]
        waiting = []
        for number in range(25):
            asked = requests(draw, 3)
            answers = it.decide(NAMES, asked)
            decisions, tickets = answers if pending else (answers, [None] * 3)
            for i, session in enumerate(alone):
                one = {name: float(column[i]) for name, column in asked.items()}
                assert session.decide(one, ticket=tickets[i]).tobytes() == decisions[i].tobytes()
            waiting.append((tickets, decisions[:, 1] * asked["c"]))
            standing = it.budgets(NAMES)
            held = spent + sum(amount for _, amount in waiting)
            np.testing.assert_allclose(standing["spent"][:, 0], spent, atol=1e-12)
            np.testing.assert_allclose(standing["reserved"][:, 0], held - spent, atol=1e-12)
            assert (held <= BUDGETS * (1 + 1e-12)).all() and (standing["budget"][:, 0] == BUDGETS).all()
            if len(waiting) == max(pending, 1):
                given, amount = waiting.pop(int(draw.integers(len(waiting))))
                it.observe(NAMES, tickets=given if pending else None)
                for session, ticket in zip(alone, given):
                    session.observe(ticket=ticket)
                spent += amount
            if number == 12:
                copy = shutil.copytree(files, tmp_path / "as killed")
                with fleet(copy / "fleet", pending=pending) as again:
                    assert [again.summary(name) for name in NAMES] == [it.summary(name) for name in NAMES]
        assert (spent[:2] > 0.9 * BUDGETS[:2]).all()  # the smaller ones were used up


def test_budgets_change_and_begin_once(tmp_path):
    draw = np.random.default_rng(0)

    def use(it, count=12):
        for _ in range(count):
            it.decide(["a"], requests(draw, 1))
            it.observe(["a"])
        return it.budgets(["a"])["spent"][0, 0]

    (files := tmp_path / "files").mkdir()
    with fleet(files / "fleet") as it:
        it.begin(["a", "b"], budgets=[0.5, 2.0])
        it.begin(["a", "c"], budgets=[[0.5], [3.0]])  # as after a lost answer
        assert it.budgets(NAMES)["budget"].ravel().tolist() == [0.5, 2.0, 3.0]
        with pytest.raises(cx.errors.ConflictError, match="'b' has begun with other budgets"):
            it.begin(["b"], budgets=1.0)
        assert 0.49 < use(it) <= 0.5
        it.change(["a"], budgets=0.75)
        assert 0.74 < use(it) <= 0.75
        it.change(["a"], budgets=0.1)  # below what was spent: nothing more
        assert use(it, 3) == it.budgets(["a"])["spent"][0, 0] <= 0.75
        it.decide(["new"], requests(draw, 1))
        assert it.budgets(["new"])["budget"] == 1.0  # the learner's own
        standing = it.summary("a")
        copy = shutil.copytree(files, tmp_path / "as killed")
        for call, sentence in (
            (lambda: it.change(["a"], budgets=-1), "budgets must be numbers >= 0"),
            (lambda: it.change(["a"], budgets=[np.nan]), "budgets must be numbers >= 0"),
            (lambda: it.change(["a"], budgets=True), "budgets must be numbers >= 0"),
            (lambda: it.change(["a"], budgets="x"), "budgets must be numbers >= 0"),
            (lambda: it.change(["a", "b"], budgets=[1.0, 2.0, 3.0]), "one row of 1 for each of the 2 names"),
            (lambda: it.change(["nobody"], budgets=1.0), "there is no campaign 'nobody'"),
        ):
            with pytest.raises(cx.SessionError, match=sentence):
                call()
        assert it.summary("a") == standing
    with fleet(copy / "fleet") as it:
        assert it.summary("a") == standing and standing["budget"] == [0.1] and standing["reserved"] == [0.0]
    with cx.Fleet(problem(), cx.learners.DualMirrorDescent(0.1), key=jax.random.key(0)) as it:
        for call in (lambda: it.begin(["a"], budgets=1.0), lambda: it.budgets(["a"])):
            with pytest.raises(cx.SessionError, match=r"learners\.Budgeted; this learner has none"):
                call()
        assert len(it) == 0


def test_a_plan_is_a_part_of_each_budget():
    with fleet(it=learner(plan=[0.25, 0.5, 1.0])) as it:
        it.begin(NAMES, budgets=BUDGETS)
        for part in (0.25, 0.5, 1.0):
            assert np.array_equal(it.budgets(NAMES)["planned"][:, 0], part * BUDGETS)
            it.decide(NAMES, {"v": np.full(3, 9.0), "c": np.full(3, 9.0)})
            it.observe(NAMES)
            assert (it.budgets(NAMES)["spent"][:, 0] <= part * BUDGETS).all()


@pytest.mark.parametrize("fields", [("v", "c"), True], ids=["fields", "the whole round"])
def test_a_round_with_another_request_than_was_decided_is_refused_as_by_a_session(fields):
    """Else a round could spend more than its request had shown, and a budget be exceeded."""

    def value(r):
        return (r["v"], r["c"]) if isinstance(r, dict) else (r[0], r[1])

    asks = cx.Problem(
        cx.domains.ProbabilitySimplex(2),
        lambda x, r: -value(r)[0] * x[1],
        lambda x, r: value(r)[1] * x[1] - 0.1,
        request=fields,
    )
    within = cx.learners.Budgeted(
        cx.learners.DualMirrorDescent(0.01), spend=lambda x, r: value(r)[1] * x[1], budget=1.0, safe=[1.0, 0.0]
    )
    small, large = ([1.0, 0.1], [1.0, 50.0]) if fields is True else ({"v": 1.0, "c": 0.1}, {"v": 1.0, "c": 50.0})
    both, other = (jax.tree.map(lambda *parts: np.array(parts), small, each) for each in (small, large))
    if fields is True:
        small, large, both, other = np.array(small), np.array(large), np.array([small, small]), np.array([small, large])
    with cx.Fleet(asks, within, key=jax.random.key(0)) as it, cx.Session(asks, within, key=it.key("b")) as alone:
        it.decide(["a", "b"], both)
        alone.decide(small)
        with pytest.raises(cx.SessionError, match="another request than decide had"):
            alone.observe(large)
        with pytest.raises(cx.errors.ConflictError, match="the round of 'b' has another request than decide had"):
            it.observe(["a", "b"], other)
        assert it.rounds(["a", "b"]).tolist() == [0, 0]
        it.observe(["a", "b"], both)
        assert (it.budgets(["a", "b"])["spent"] == float(alone.observe(small).constraint[0]) + 0.1).all()


def test_a_budget_that_float32_cannot_keep_is_not_rounded_up():
    with jax.enable_x64(False), cx.Fleet(problem.__wrapped__(), learner(), key=jax.random.key(2)) as it:
        it.begin(["a"], budgets=16_777_219.0)
        assert it.budgets(["a"])["budget"] == 16_777_219.0
        it.begin(["b", "c"], budgets=[0.1, 0.3])
        it.begin(["b", "c"], budgets=[0.1, 0.3])  # as after a lost answer
        with pytest.raises(cx.errors.ConflictError, match="'c' has begun with other budgets"):
            it.begin(["c"], budgets=0.3000001)


def test_labels_decisions_and_what_was_played_are_kept(tmp_path):
    box = cx.Problem(cx.domains.Box([0.0, 0.0], [1.0, 1.0]), lambda x, r: ((x - r["v"]) ** 2).sum())

    def opened():
        return cx.Fleet(
            box, cx.learners.DPP(), tmp_path / "fleet", key=jax.random.key(0), horizon=9, keep_decisions=True
        )

    def rounds(number):
        return {"v": np.full((2, 2), number / 4)}

    with opened() as it, cx.Session(box, cx.learners.DPP(), key=it.key("b"), horizon=9, keep_decisions=True) as alone:
        played = np.array([[0.1, 0.2], [0.3, 0.4]])
        for number, (label, point) in enumerate(
            [("monday", None), (None, played), (np.datetime64("2026-11-18"), None)]
        ):
            it.observe(["a", "b"], rounds(number), point, labels=[None, label])
            alone.observe({"v": rounds(number)["v"][1]}, None if point is None else point[1], label=label)
        expected = alone.history(names=["x", "y"])
        assert expected.dtype.names is not None and {"label", "played_y"} <= set(expected.dtype.names)
    with opened() as it:
        assert it.history("b", names=["x", "y"]).tobytes() == expected.tobytes()
        assert "label" not in (it.history("a").dtype.names or ())
        with pytest.warns(cx.SessionWarning, match="played= of 'b' is not a point of the domain"):
            it.observe(["a", "b"], rounds(3), np.array([[0.1, 0.2], [3.0, 0.4]]))
        with pytest.raises(cx.SessionError, match="labels must be 2 texts or dates"):
            it.observe(["a", "b"], rounds(4), labels=["x"])


def test_after_compile_no_call_waits_for_a_compiler(tmp_path):
    compiled = []

    def count(event, *_, **__):
        compiled.append(event)

    own = cx.Problem(problem().domain, lambda x, r: -2 * r["v"] * x[1], lambda x, r: r["c"] * x[1] - 0.1, request=True)
    asked = {"v": np.array([1.0, 2.0]), "c": np.array([0.1, 0.2])}
    with cx.Fleet(own, learner(), tmp_path / "fleet", key=jax.random.key(0), pending=2, certify=True) as it:
        it.compile({"v": 1.0, "c": 0.1})
        assert len(it) == 0
        jax.monitoring.register_event_duration_secs_listener(count)
        try:
            it.begin(["a", "b"], budgets=[1.0, 2.0])
            for ticket in ("0", "1"):
                it.decide(["a", "b"], asked)
                (it.observe if ticket == "0" else it.skip)(["a", "b"], tickets=[ticket] * 2)
            it.change(["a"], budgets=3.0)
            assert it.summary("a")["rounds"] == it.certificate("a").rounds == 1
            it.regret_bounds(["a", "b"])
        finally:
            jax.monitoring.unregister_event_duration_listener(count)
    assert not [event for event in compiled if "backend_compile" in event]
