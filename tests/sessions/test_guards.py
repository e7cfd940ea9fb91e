"""Malformed rounds: each is refused in a sentence, changes no bit, and the next good round works."""

import datetime
import decimal
import fractions

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import session_tools as tools

import cocoax as cx

FEW, MANY = 1_000, 10_000  # malformed rounds
TOGETHER = 10  # in one example


class _Raises:
    def __array__(self, *_, **__):
        raise RuntimeError("no array")

    def __repr__(self):
        raise RuntimeError("no words")


class _Lies:
    def __array__(self, *_, **__):
        return "not an array"


def _endless():
    it = []
    it.append(it)
    return it


def _deep(depth):
    it = 1.0
    for _ in range(depth):
        it = [it]
    return it


_OBJECTS = [..., object(), _Raises(), [_Raises()] * 4, _Lies(), int, print, iter([1]), range(3), slice(3)]
_TEXTS = [None, "text", "1.0", b"1.0", ["1"] * 4, [1, 2, 3, "4"], np.ones(4, "U3"), np.ones(4, "V8")]
_NUMBERS = [
    1j,
    1 + 0j,
    True,
    10**400,
    [10**400] * 4,
    10**5000,
    np.ones(4, complex),
    np.ones(4, np.longdouble),
]
_EXACT = [decimal.Decimal("NaN"), decimal.Decimal(1), fractions.Fraction(1, 3), np.ones(4, object), np.array(None)]
_DATES = [datetime.datetime(2020, 1, 1), np.datetime64("2020-01-01"), np.timedelta64(1, "s"), np.ones(4, "M8[s]")]
_EMPTY = [{}, set(), (), [], np.ones(0), np.ma.masked, np.ma.masked_array(np.ones(4), [0, 0, 1, 0])]  # pyright: ignore[reportCallIssue]
_NESTED = [{1, 2}, {"a": 1}, {1: 2, "b": 3}, [1, [2, 3]], [[1], [2, 3]], [None] * 4, _deep(70), _deep(5000), _endless()]
_INFINITE = [float("nan"), float("inf"), -float("inf"), np.float32("inf"), [1, 2, 3, float("nan")]]
_FOREIGN = [np.ones(4, np.longdouble), jax.random.key(0), jax.random.split(jax.random.key(0), 4)]
JUNK = [*_OBJECTS, *_TEXTS, *_NUMBERS, *_EXACT, *_DATES, *_EMPTY, *_NESTED, *_INFINITE, *_FOREIGN]
MISFITS = [
    [True] * 4,
    np.ones(4, bool),
    jnp.ones(4, bool),
    np.ones((4, 1)),
    jnp.ones((2, 2)),
    np.ones((1, 4)),
]  # good at first
BAD_NUMBERS = st.sampled_from([np.nan, np.inf, -np.inf, -np.nan])


@st.composite
def _not_finite(draw, shape):
    array = draw(st.sampled_from([np.ones, np.zeros]))(shape, draw(st.sampled_from([float, np.float32, np.float16])))
    for _ in range(draw(st.integers(1, 3))):
        array[draw(st.integers(0, shape[0] - 1)) if shape else ()] = draw(BAD_NUMBERS)
    as_given = draw(st.sampled_from([np.asarray, jnp.asarray, np.ndarray.tolist]))
    return as_given(array)


def _one_of(values):
    return st.integers(0, len(values) - 1).map(lambda i: values[i])  # hypothesis would print the values


def _of_another_shape(shape):
    shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
    return shapes.filter(lambda other: other != shape).map(np.ones)


def _bad_leaf(shape):
    return st.one_of(_not_finite(shape), _of_another_shape(shape), _one_of(JUNK + MISFITS), st.text(), st.binary())


@st.composite
def malformed(draw):
    """(round, played) of which one is wrong somewhere."""
    good = tools.a_round(draw(st.integers(0, 399)))
    field = draw(st.sampled_from(sorted(good)))
    others = {name: value for name, value in good.items() if name != field}
    bad = _bad_leaf(good[field].shape)
    way = draw(st.sampled_from(["leaf", "leaf", "leaf", "missing", "extra", "renamed", "whole", "nested", "played"]))
    if way == "leaf":
        return good | {field: draw(bad)}, None
    if way == "missing":
        return others, None
    if way == "extra":
        return good | {draw(st.text().filter(lambda name: name not in good)): draw(_one_of([1.0, *JUNK]))}, None
    if way == "renamed":
        return others | {field.upper(): good[field]}, None
    if way == "whole":
        return draw(st.one_of(_one_of(JUNK), st.text(), st.just(list(good.values())), st.just([good]))), None
    if way == "nested":
        nested = st.recursive(bad, lambda inner: st.lists(inner, min_size=2, max_size=3)).filter(_is_nested)
        return good | {field: draw(nested)}, None
    return good, draw(_bad_leaf((4,)).filter(lambda each: each is not None))


def _is_nested(value):
    return isinstance(value, list) and any(isinstance(each, list | dict | str) for each in value)


def _assert_refused(session, **arguments):
    before = tools.bits(session)
    with pytest.raises(cx.SessionError) as caught:
        session.observe(**arguments)
    assert tools.bits(session) == before
    assert str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("rounds", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_malformed_rounds_change_nothing(tmp_path, rounds):
    session, seen = tools.session(tmp_path / "session"), []
    tools.observe(session, 1)

    unhurried = list(hypothesis.HealthCheck)

    @hypothesis.settings(max_examples=rounds // TOGETHER, database=None, suppress_health_check=unhurried)
    @hypothesis.given(st.lists(malformed(), min_size=TOGETHER, max_size=TOGETHER))
    def refuse(batch):
        for round, played in batch:
            _assert_refused(session, round=round, played=played)
        seen.extend(batch)
        if session.rounds < 100:
            tools.observe(session, 1)
            assert tools.bits(session) == tools.uninterrupted().after(session.rounds)

    refuse()
    assert len(seen) >= rounds
    tools.observe(session, 1)
    session.close()
    with tools.session(tmp_path / "session") as again:
        assert tools.bits(again) == tools.uninterrupted().after(again.rounds)


@pytest.mark.parametrize("number", range(len(JUNK)))
def test_junk_as_the_first_round_is_refused_and_not_remembered(number):
    session = tools.session()
    _assert_refused(session, round=JUNK[number])
    _assert_refused(session, round=tools.a_round(0) | {"value": JUNK[number]})
    tools.observe(session, 2)
    assert tools.bits(session) == tools.uninterrupted().after(2)


@pytest.mark.parametrize(
    "junk, told", [({"v": "x"}, r"^round\['v'\] must be a real number"), ({1: 2.0}, "^round has a key")]
)
def test_a_first_round_is_refused_in_one_sentence(junk, told):
    with pytest.raises(cx.SessionError, match=told) as refused:
        tools.session().observe(junk)
    assert "fewer" not in str(refused.value)


def test_a_first_round_may_be_a_list_of_dicts():
    domain = cx.domains.Box([0.0], [1.0])
    session = cx.Session(cx.Problem(domain, lambda x, r: r[1]["a"] * x[0]), cx.learners.Stay(), key=jax.random.key(0))
    for _ in range(2):
        assert np.isfinite(session.observe([{"a": 1.0}, {"a": 2.0}]).loss)


def test_one_bad_round_of_many_refuses_all():
    session = tools.session()
    tools.observe(session, 2)
    before = tools.bits(session)
    good = [tools.a_round(i) for i in range(5)]
    for at in range(5):
        with pytest.raises(cx.SessionError, match=rf"round {at}\['price'\]"):
            session.observe_many([*good[:at], good[at] | {"price": np.full(4, np.nan)}, *good[at + 1 :]])
        assert tools.bits(session) == before
    tools.observe(session, 3)
    assert tools.bits(session) == tools.uninterrupted().after(5)


@pytest.mark.usefixtures("free_promotion")
def test_numbers_too_large_for_float32_are_refused():
    first = {name: np.float32(value) for name, value in tools.a_round(0).items()}
    session = tools.session()
    session.observe(first)
    for bad in (1e300, -1e39, 10**60, np.float64(3.5e38)):
        _assert_refused(session, round=first | {"budget": bad})
        _assert_refused(session, round=first | {"value": [bad] * 4})
    session.observe(tools.a_round(1))


@pytest.mark.usefixtures("free_promotion")
def test_whole_numbers_that_do_not_fit_are_refused():
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: -x[0] * r["count"])
    session = cx.Session(problem, cx.learners.Stay(), key=jax.random.key(0))
    session.observe({"count": np.int8(3)})
    for bad in (300, -129, 1.5, np.int64(2**40), 10**30, True, 2.0):
        _assert_refused(session, round={"count": bad})
    session.observe({"count": 7})
    assert session.rounds == 2


TICKETS = [None, 7, "", "b", "a" * 201, "a\n", "\0", b"a", object(), _Raises(), 10**5000, ["a"], "A"]


@pytest.mark.parametrize("number", range(len(TICKETS)))
def test_tickets_that_were_never_given_are_refused(number):
    session, ticket = tools.session(pending=2), TICKETS[number]
    session.decide("a")
    _assert_refused(session, round=tools.a_round(0), ticket=ticket)
    before = tools.bits(session)
    with pytest.raises(cx.SessionError):
        session.skip(ticket)
    if ticket not in (None, "b", "A"):
        with pytest.raises(cx.SessionError):
            session.decide(ticket)
    assert tools.bits(session) == before
    session.observe(tools.a_round(0), ticket="a")
    with pytest.raises(cx.SessionError, match="observed already"):
        session.observe(tools.a_round(0), ticket="a")


def _explosive_loss(x, r):
    same = x[0] - jax.lax.stop_gradient(x[0])
    steep = (r["steep"] + same) ** 0.5  # at 0, an infinite gradient
    undefined = jnp.sqrt(r["undefined"] + 0 * x[0])  # at 0, one that is NaN
    return x[0] * r["factor"] + jnp.log(r["log"]) + 1 / r["divisor"] + steep + undefined


def _explosive_constraint(x, r):
    return x[0] / r["share"] - 0.5 + jnp.sqrt(r["bent"] + 0 * x[0])


@pytest.mark.parametrize("name", [tools.RANDOM, "Auto", "DPP"])
@pytest.mark.filterwarnings("ignore:played= is not a point")
def test_a_loss_that_explodes_is_refused(tmp_path, name):
    regularity = [cx.Regularity(2.0, 1.0, 2.0, norm=norm) for norm in (2, np.inf)]
    domain = cx.domains.Box([0.0], [1.0])
    problem = cx.Problem(domain, _explosive_loss, _explosive_constraint, regularity=regularity)
    horizon = None if name == "Auto" else 100
    session = cx.Session(problem, tools.learner(name), tmp_path / "session", key=jax.random.key(0), horizon=horizon)
    good = dict.fromkeys(("steep", "undefined", "factor", "log", "divisor", "share", "bent"), 1.0)
    session.observe(good)
    if name == "Auto":
        session.observe(good | {"steep": 0.0})  # it takes infinite gradients for long ones
    else:
        _assert_refused(session, round=good | {"steep": 0.0})
    for field in ("undefined", "log", "divisor", "share", "bent"):
        _assert_refused(session, round=good | {field: 0.0})
        _assert_refused(session, round=good | {field: 0.0}, played=[0.25])
    _assert_refused(session, round=good | {"factor": 1e308, "divisor": 1e-308}, played=[10.0])
    session.observe(good)
    assert session.rounds == (3 if name == "Auto" else 2)
    session.close()
