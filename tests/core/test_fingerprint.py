"""Programs, numbers and the library's code are told apart by what they come to, not by what they are called."""

import ast
import functools
import io
import threading
import tokenize

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import cocoax as cx
from cocoax.core import fingerprint
from cocoax.core.fingerprint import code_in, library, of_parts, of_program
from cocoax.domains import Counted, Flow, ShortestPath, Transport

LOSS = """
import jax
import jax.numpy as jnp
import numpy as np
RATE = 0.5
TABLE = {"floor": np.array([0.0, 1.0, 2.0])}
def _demand(x, r): return RATE * jnp.vdot(r, x)
class Price:
    power = 2
    def of(self, x): return jnp.sum(x**self.power)
def outer(limit):
    def loss(x, r):
        return jnp.where(x.sum() > limit, _demand(x, r), Price().of(x)) + jnp.maximum(x, TABLE["floor"]).sum()
    return loss
loss = outer(3.0)
"""
SAME = {
    "a comment": ("RATE = 0.5", "# what is sold\nRATE = 0.5"),
    "a docstring": ("def _demand(x, r): return", "def _demand(x, r):\n    'It.'\n    return"),
    "a global": ("RATE", "SPEED"),
    "a function": ("_demand", "bought"),
    "an argument": (
        "def _demand(x, r): return RATE * jnp.vdot(r, x)",
        "def _demand(y, s): return RATE * jnp.vdot(s, y)",
    ),
    "a class": ("Price", "Cost"),
    "a jitted function": ("def _demand", "@jax.jit\ndef _demand"),
    "a name in a closure": ("limit", "most"),
}
OTHER = {
    "a global": ("RATE = 0.5", "RATE = 0.75"),
    "an array of a dict": ("1.0, 2.0]", "1.0, 2.5]"),
    "a closure": ("outer(3.0)", "outer(4.0)"),
    "an attribute": ("power = 2", "power = 3"),
    "an operation": ("jnp.maximum", "jnp.minimum"),
    "an order": ("_demand(x, r), Price().of(x)", "Price().of(x), _demand(x, r)"),
    "a dtype": ("jnp.vdot(r, x)", "jnp.vdot(r, x).astype('float32').astype(x.dtype)"),
}


def _program(old="", new=""):
    assert old in LOSS
    exec(LOSS.replace(old, new) if old else LOSS, names := {"__name__": "user"})
    return of_program(jax.value_and_grad(names["loss"]), jnp.ones(3), jnp.ones(3))


@pytest.mark.parametrize("change", SAME)
def test_names_and_comments_do_not_count(change):
    assert _program(*SAME[change]) == _program()


@pytest.mark.parametrize("change", OTHER)
def test_what_is_computed_counts(change):
    assert _program(*OTHER[change]) != _program()


@pytest.mark.parametrize(
    "make",
    [
        lambda c: lambda x: jax.lax.scan(lambda total, y: (total + c * y, None), 0.0, x)[0],
        lambda c: lambda x: jax.lax.cond(x[0] > 0, lambda: c * x.sum(), lambda: x.sum()),
        lambda c: lambda x: jax.lax.while_loop(lambda y: y[0] < c, lambda y: y + 1, x),
        lambda c: jax.checkpoint(lambda x: c * x),
        lambda c: lambda x: jnp.full(3, c, float)[x.astype(int)],
        lambda c: jax.grad(_with_own_derivative(c)),
    ],
)
def test_programs_inside_programs_count(make):
    assert (
        of_program(make(2.0), jnp.ones(3)) == of_program(make(2.0), jnp.ones(3)) != of_program(make(3.0), jnp.ones(3))
    )


def _with_own_derivative(c):
    @jax.custom_vjp
    def f(x):
        return x.sum()

    f.defvjp(lambda x: (f(x), x), lambda x, g: (c * g * x,))
    return f


def test_shapes_and_dtypes_count():
    inputs = jnp.ones(3), jnp.ones(4), jnp.ones(3, jnp.int8)
    assert len({of_program(jnp.sum, each) for each in inputs}) == 3


class Mine(eqx.Module):
    scale: jax.Array
    name: str = "mine"


class Yours(eqx.Module):
    scale: jax.Array
    name: str = "mine"


def test_parts_are_known_by_structure_and_numbers():
    assert of_parts(cx.learners.PDMFW()) == of_parts(cx.learners.PDMFW()) != of_parts(cx.learners.PDMFW(beta=0.1))
    assert of_parts({"a": 1, "b": 2}) == of_parts({"b": 2, "a": 1}) != of_parts({"a": 2, "b": 1})
    assert of_parts(jax.random.key(0)) != of_parts(jax.random.key(1))
    assert of_parts([1, [2]]) != of_parts([[1], 2]) and of_parts(1) != of_parts(1.0) != of_parts("1.0")
    assert of_parts(Mine(jnp.ones(2))) == of_parts(Yours(jnp.ones(2))) != of_parts(Mine(jnp.zeros(2)))
    assert of_parts(np.array(["a", None], object)) == of_parts(np.array(["a", None], object))


def test_only_the_code_of_the_library_is_known():
    known = cx.learners.Auto(), functools.partial(cx.problems.simplex, n=4), cx.domains.Box([0.0], [1.0])
    own = lambda x: x, Mine(jnp.ones(2)), threading.Lock(), functools.partial(cx.problems.simplex, n=lambda: 4)
    assert all(of_parts(part).known for part in known)
    assert not any(of_parts(part).known for part in own)


@pytest.mark.parametrize(
    "make", [lambda: Transport([0.5, 0.5], [0.3, 0.7]), lambda: Counted(Flow([[0, 1]], 0, 1, 1.0, 2.0))]
)
def test_sets_on_the_host_are_the_same_after_their_use(make):
    used = make()
    used.lmo(jnp.ones(used.shape))
    assert of_parts(used) == of_parts(make()) != of_parts(Transport([0.5, 0.5], [0.4, 0.6]))


def test_the_processor_that_rounds_the_conductance_of_paths_does_not_matter():
    """LAPACK has code for every kind of CPU, so the same pseudo-inverse has other last bits elsewhere."""
    paths = ShortestPath([[0, 1], [1, 2], [0, 2]], 0, 2)
    rounded = eqx.tree_at(lambda p: p.conductance, paths, paths.conductance * (1 + 1e-15))
    assert of_parts(paths) == of_parts(rounded) != of_parts(ShortestPath([[0, 1], [1, 2], [0, 2]], 0, 1))


@pytest.mark.parametrize("container", ["sparse", "of a user"])
def test_numbers_in_any_container_that_jax_knows_count(container):
    """Fields of dataclasses are no more than one kind of them."""

    @jax.tree_util.register_pytree_node_class
    class Own:
        def __init__(self, number):
            self.number = number

        def tree_flatten(self):
            return (self.number,), None

        @classmethod
        def tree_unflatten(cls, _, leaves):
            return cls(*leaves)

    make = Own if container == "of a user" else lambda number: sparse.BCOO.fromdense(number * jnp.eye(2))
    assert of_parts(make(jnp.asarray(1.0))) == of_parts(make(jnp.asarray(1.0))) != of_parts(make(jnp.asarray(2.0)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, yes: jax.scipy.linalg.solve_triangular(jnp.eye(2) + 1, x, lower=np.bool_(yes)),
        lambda x, yes: jax.lax.integer_pow(x, np.int32(2 + yes)),
        lambda x, yes: jax.lax.scan(lambda c, x: (c + x, c), 0.0, x, reverse=np.bool_(yes))[1],
    ],
)
def test_parameters_of_equations_that_are_numbers_of_numpy_count(function):
    first, again, other = (of_program(lambda x, yes=yes: function(x, yes), jnp.ones(2)) for yes in (False, False, True))
    assert first == again != other


def _tokens(source, told=()):
    """A source's tokens without its layout and comments, and without those that begin at the places `told`."""
    left_out = tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT
    tokens = tokenize.tokenize(io.BytesIO(source).readline)
    return [token.string for token in tokens if token.type not in left_out and token.start not in told]


def _docstrings(source):
    """Where they begin: statements that are a string and nothing else."""
    statements = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    texts = [node for node in statements if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {(node.lineno, node.col_offset) for node in texts}


def test_only_docstrings_and_comments_are_left_out_of_sources():
    for file in fingerprint._PACKAGE.rglob("*.py"):
        source = file.read_bytes()
        assert _tokens(code_in(source)) == _tokens(source, _docstrings(source)), file
    source = b'def f(x):\n    r"""Half, \\"""."""\n    # so\n\n    return "#" + x  # it is "\'\n'
    assert code_in(source) == b'def f(x):\n    return "#" + x'
    assert code_in(b"x = '''\n# no comment\n'''") == b"x = '''\n# no comment\n'''"


def test_the_library_is_read_once():
    assert library() is library() and len(library()) == 32


def test_a_session_tells_the_ways_to_draw_random_numbers(tmp_path):
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: r * x[0])
    with cx.Session(problem, cx.learners.Stay(), tmp_path / "session", key=jax.random.key(0)):
        pass
    before = jax.config.jax_threefry_partitionable  # pyright: ignore[reportAttributeAccessIssue]
    with jax.threefry_partitionable(not before), pytest.raises(cx.SessionError, match="jax_threefry_partitionable"):
        cx.Session(problem, cx.learners.Stay(), tmp_path / "session", key=jax.random.key(0))
    with cx.Session(problem, cx.learners.Stay(), tmp_path / "session") as it:
        assert np.isfinite(it.observe(1.0).loss) and jnp.isfinite(it.decide()).all()
