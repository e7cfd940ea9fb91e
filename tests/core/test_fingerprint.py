"""What a function reaches belongs to its fingerprint, however it reaches it."""

import logging
import sys
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.core.fingerprint import fingerprint

REACHED = {
    "a module": "from own import inner\ndef f(x): return inner.RATE * x",
    "a package": "import own.inner\ndef f(x): return own.inner.RATE * x",
    "a deeper package": "import own\ndef f(x): return own.deep.inner.RATE * x",
    "a function of a package": "import own.inner\ndef f(x): return own.inner.scaled(x)",
    "getattr": "from own import inner\ndef f(x): return getattr(inner, 'RATE') * x",
    "getattr through a package": "import own.inner\ndef f(x): return getattr(own.inner, 'RATE') * x",
    "a computed name": "from own import inner\ndef f(x):\n    'It.'\n    return getattr(inner, ''.join('RATE')) * x",
    "vars": "from own import inner\ndef f(x): return vars(inner)['RATE'] * x",
    "an import inside": "def f(x):\n    from own.inner import RATE\n    return RATE * x",
    "a module inside": "def f(x):\n    import own.inner as short\n    return short.RATE * x",
    "a closure": "def outer():\n    from own import inner\n    return lambda x: inner.RATE * x\nf = outer()",
    "an inner function": "import own.inner\ndef f(x): return (lambda y: own.inner.RATE * y)(x)",
    "a class": "from own import inner\ndef f(x): return inner.Rates.LIST[0] * x",
    "a dict of a class": "from own import inner\ndef f(x): return inner.Rates.DICT['rate'] * x",
    "an array of a class": "from own import inner\ndef f(x): return inner.Rates.ARRAY * x",
    "a class above": "from own import inner\nclass Mine(inner.Above): pass\ndef f(x): return Mine.BELOW * x",
    "a class of classes": "from own import inner\ndef f(x): return inner.Made.BELOW * x",
    "an object of a class": "from own import inner\ndef f(x): return inner.Holder.PART.value * x",
    "a partial of a class": "from own import inner\ndef f(x): return inner.Partial.PART(x)",
    "a decimal of a class": "from own import inner\ndef f(x): return float(inner.Exact.PART) * x",
    "a domain of a class": "from own import inner\ndef f(x): return inner.Bounded.PART.project(x)",
    "a default of a dict": "from own import inner\ndef f(x): return inner.LACKING['a'] * x",
    "an attribute of a function": "from own import inner\ndef f(x): return f.part * x\nf.part = inner.Exact.PART",
}
INNER = """
import collections
import decimal
import functools
import jax.numpy as jnp
import cocoax as cx
RATE = {rate}
OTHER = {other}
def scaled(x): return RATE * x
class Rates:
    LIST = [{rate}]
    DICT = {{"rate": {rate}}}
    ARRAY = jnp.asarray({rate})
    NAME = "rates"
class Above:
    BELOW = {rate}
class Maker(type):
    BELOW = {rate}
class Made(metaclass=Maker): pass
class Part:
    def __init__(self): self.value = {rate}
class Holder:
    PART = Part()
class Partial:
    PART = functools.partial(max, {rate})
class Exact:
    PART = decimal.Decimal({rate})
class Bounded:
    PART = cx.domains.Box([0.0], [{rate}])
LACKING = collections.defaultdict(lambda: {rate})
"""


def _module(name, text=""):
    module = types.ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    module.__path__ = []
    exec(text, vars(module))
    return module


@pytest.fixture
def of(monkeypatch):
    """The fingerprint of `f` in this text, with these numbers in the user's own package."""

    def fingerprint_of(text, rate, other=0.0):
        own, deep = _module("own"), _module("own.deep")
        inner = _module("own.inner", INNER.format(rate=rate, other=other))
        vars(own).update(inner=inner, deep=deep)
        vars(deep).update(inner=inner)
        vars(inner).update(up=own)  # in a circle
        for module in (own, deep, inner):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        user = _module("user", text)
        return [fingerprint(user.f, code=code, names=names) for code in (True, False) for names in (True, False)]

    return fingerprint_of


@pytest.mark.parametrize("way", REACHED)
def test_a_constant_belongs_to_the_function_that_reaches_it(of, way):
    text = REACHED[way]
    assert of(text, 0.5) == of(text, 0.5)
    for one, other in zip(of(text, 0.5), of(text, 0.75)):
        assert one != other


@pytest.mark.parametrize("way", ["a module", "a package", "getattr", "a module inside"])
def test_what_is_not_reached_does_not_matter(of, way):
    assert of(REACHED[way], 0.5, other=0.0) == of(REACHED[way], 0.5, other=1.0)


def test_what_is_never_the_same_twice_does_not_matter(of):
    """A logger holds all loggers; locks, and objects in a circle, cannot be hashed."""
    text = """
import logging, threading
class Circle: pass
class Mine:
    RATE, log, lock, circle = 2, logging.getLogger("mine"), threading.Lock(), Circle()
Mine.circle.me = Mine.circle
def f(x): return Mine.RATE * x
"""
    before = of(text, 0.5)
    logging.getLogger("another, which was not there before")
    assert of(text, 0.5) == before != of(text.replace("= 2,", "= 3,"), 0.5)


def test_a_session_tells_the_ways_to_draw_random_numbers(tmp_path):
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: r * x[0])
    with cx.Session(problem, cx.learners.Stay(), tmp_path / "session", key=jax.random.key(0)):
        pass
    before = jax.config.jax_threefry_partitionable  # pyright: ignore[reportAttributeAccessIssue]
    with jax.threefry_partitionable(not before), pytest.raises(cx.SessionError, match="jax_threefry_partitionable"):
        cx.Session(problem, cx.learners.Stay(), tmp_path / "session", key=jax.random.key(0))
    with cx.Session(problem, cx.learners.Stay(), tmp_path / "session") as it:
        assert np.isfinite(it.observe(1.0).loss) and jnp.isfinite(it.decide()).all()


def test_the_processor_that_rounds_the_conductance_of_paths_does_not_matter():
    paths = cx.domains.ShortestPath([[0, 1], [1, 2], [0, 2]], 0, 2)
    rounded = eqx.tree_at(lambda p: p.conductance, paths, paths.conductance * (1 + 1e-15))
    assert fingerprint(paths) == fingerprint(rounded)
    assert fingerprint(paths) != fingerprint(cx.domains.ShortestPath([[0, 1], [1, 2], [0, 2]], 0, 1))


# --- without names


LOSS = """
import jax.numpy as jnp
import equinox as eqx
RATE = 0.5
def _demand(x, r): return RATE * jnp.vdot(r, x)
def _price(x, r): return jnp.sum(x)
class Loss(eqx.Module):
    scale: float
    def __call__(self, x, r): return self.scale * _demand(x, r) - _price(x, r)
def outer(): return lambda x, r: _demand(x, r) - (lambda y: _price(y, r))(x)
f = Loss(2.0)
g = outer()
"""


def _nameless(text, module="user", **renamed):
    for name, other in renamed.items():
        text = text.replace(name, other)
    user = _module(module, text)
    sys.modules[module] = user  # where dataclasses look
    try:
        return [fingerprint(part, code=code, names=False) for part in (user.f, user.g) for code in (True, False)]
    finally:
        del sys.modules[module]


@pytest.mark.parametrize(
    "renamed",
    [{"module": "moved.away"}, {"Loss": "Cost"}, {"outer": "make"}, {"_demand": "zeta"}, {"RATE": "SPEED"}],
)
def test_names_of_ones_own_do_not_count(renamed):
    assert _nameless(LOSS, **renamed) == _nameless(LOSS)


CHANGES = {
    "a number": ("RATE = 0.5", "RATE = 0.75"),
    "an order": ("_demand(x, r) - ", "_price(x, r) - "),
    "a helper": ("jnp.sum(x)", "jnp.max(x)"),
    "a function of a package": ("jnp.vdot(r, x)", "jnp.dot(r, x)"),
    "a default": ("def _price(x, r)", "def _price(x, r, k=1)"),
    "the helper of an inner function": ("lambda y: _price(y, r)", "lambda y: _demand(y, r)"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_code_counts_without_names(change):
    before, after = _nameless(LOSS), _nameless(LOSS.replace(*CHANGES[change]))
    assert before[2] != after[2]  # of g, with its bytecode
    if change != "the helper of an inner function":
        assert before[0] != after[0]


def test_swapped_helpers_are_another_function():
    swapped = LOSS.replace("_demand", "tmp").replace("_price", "_demand").replace("tmp", "_price")
    assert _nameless(swapped) == _nameless(LOSS)  # only names changed
    crossed = (
        LOSS.replace("def _demand", "def tmp").replace("def _price", "def _demand").replace("def tmp", "def _price")
    )
    assert all(one != other for one, other in zip(_nameless(crossed), _nameless(LOSS)))


def test_an_attribute_with_the_name_of_a_global_counts():
    text = "cost = 1.0\ndef f(x, r): return cost * r.cost\ng = f"
    other = "price = 1.0\ndef f(x, r): return price * r.price\ng = f"
    assert _nameless(text) != _nameless(other)
    assert _nameless(text) == _nameless("cost = 1.0\ndef h(x, r): return cost * r.cost\nf = g = h")
