"""What every domain promises, as one function."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _tree as tree
from ..domains.base import AbstractDomain
from ..errors import DomainError


def check_domain(domain: AbstractDomain, *, key, directions=50, reference=None):
    """Raise `AssertionError`, with the broken promise, unless `domain` is what the other parts take it for.

    **Arguments:**

    - `domain`: the domain.
    - `key`: the directions that it is asked are drawn from it.
    - `directions`: how many.
    - `reference`: `direction -> min <direction, v>` by some other solver. Without it, an answer only has to
      beat the answers to all other directions.

    >>> import jax
    >>> from cocoax.domains import ProbabilitySimplex
    >>> check_domain(ProbabilitySimplex(4), key=jax.random.key(0))
    """
    _check_start(domain)
    for dtype in (jnp.float32, jnp.float64) if jax.config.read("jax_enable_x64") else (jnp.float32,):
        asked = _directions(domain, key, directions, dtype)
        answers = _Answers(domain, asked, dtype)
        _check_vertices(domain, answers)
        _check_optimal(answers, reference)
        _check_scales(domain, answers)
        _check_zero(domain, answers)
        _check_loop(domain, answers)
        _check_guess(domain, answers, key)
        _check_support(domain, answers)
        _check_diameters(domain, answers)
        _check_projection(domain, answers, key)


class _Answers:
    """The vertices for a stack of directions, as points and as values."""

    def __init__(self, domain, asked, dtype):
        self.asked, self.dtype = asked, dtype
        self.vertices = _lmo(domain, asked)
        self.points = jax.vmap(lambda vertex: vertex.dense())(self.vertices)
        self.values = _dots(self.vertices, asked)
        # the largest |<direction, v>| that could be, which errors of values are measured by
        self.size = np.asarray(jax.vmap(tree.norm)(asked) * jnp.max(jax.vmap(tree.norm)(self.points)))
        self.tol = 1e-8 if dtype == jnp.float64 else 2e-5

    def number(self, index, stack):
        return jax.tree.map(lambda leaf: leaf[index], stack)

    @property
    def count(self):
        return len(self.size)


def _directions(domain, key, count, dtype):
    """Gaussian directions, every fourth rounded to -1, 0 or 1, so that it has ties, and a constant one."""
    shapes, structure = jax.tree.flatten(domain.shape, is_leaf=tree.is_shape)
    keys = jax.random.split(key, len(shapes))
    drawn = []
    for leaf_key, shape in zip(keys, shapes):
        values = np.array(jax.random.normal(leaf_key, (count, *shape), dtype))
        values[::4] = np.clip(np.round(values[::4]), -1, 1)
        values[-1] = 1
        drawn.append(jnp.asarray(values))
    return jax.tree.unflatten(structure, drawn)


def _check_start(domain):
    start = domain.start()
    _require(_shapes(start) == domain.shape, f"start has shapes {_shapes(start)}, not {domain.shape}")
    _require(_inside(domain, start, 1e-5), f"start lies outside: {start}")


def _check_vertices(domain, answers):
    x, step = tree.astype(domain.start(), answers.dtype), 0.3
    for index in range(min(answers.count, 10)):
        vertex, point = answers.number(index, answers.vertices), answers.number(index, answers.points)
        direction = answers.number(index, answers.asked)
        _require(
            tree.dtype(point) == answers.dtype, f"{answers.dtype} asked, but {tree.dtype(point)} answered"
        )
        _require(_shapes(point) == _shapes(x), f"a vertex has shapes {_shapes(point)}, not {_shapes(x)}")
        _require(_inside(domain, point, 10 * answers.tol), f"a vertex lies outside: {point}")
        apart = abs(vertex.dot(direction) - tree.dot(direction, point))
        _require(apart <= answers.tol * answers.size[index], f"dot and dense differ by {apart}")
        apart = _distance(vertex.mix(x, step), tree.mix(x, point, step))
        _require(apart <= answers.tol * (1 + tree.norm(point)), f"mix and dense differ by {apart}")
    weights = jnp.linspace(-1, 1, answers.count, dtype=answers.dtype)
    sums = jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), answers.points)
    apart = _distance(answers.vertices.combine(weights), sums)
    _require(apart <= answers.tol * (1 + tree.norm(answers.points)), f"combine and dense differ by {apart}")


def _check_optimal(answers, reference):
    for index in range(answers.count):
        direction = answers.number(index, answers.asked)
        if reference is None:
            best = jnp.min(jax.vmap(lambda point, d=direction: tree.dot(d, point))(answers.points))
            excess = answers.values[index] - best
        else:
            excess = abs(answers.values[index] - reference(direction))
        _require(
            excess <= max(answers.tol, 1e-6 if reference else 0) * answers.size[index],
            f"lmo is off by {excess} in the direction {direction}",
        )


def _check_scales(domain, answers):
    for factor in (1e20, 1e-20):
        values = _dots(_lmo(domain, tree.scale(factor, answers.asked)), answers.asked)
        _require_values(values, answers.values, answers, f"a direction scaled by {factor} has another answer")


def _check_zero(domain, answers):
    zero = tree.zeros_like(answers.number(0, answers.asked))
    for name, guess in (("no guess", None), ("a guess", answers.number(0, answers.vertices))):
        point = domain.lmo(zero, guess).dense()
        _require(tree.all_finite(point), f"the zero direction with {name} gives {point}")
        _require(
            _inside(domain, point, 10 * answers.tol),
            f"the zero direction with {name} leaves the set: {point}",
        )


def _check_loop(domain, answers):
    alone = eqx.filter_jit(lambda direction: domain.lmo(direction).dense())
    for index in range(min(answers.count, 10)):
        apart = tree.dot(
            answers.number(index, answers.asked),
            tree.sub(alone(answers.number(index, answers.asked)), answers.number(index, answers.points)),
        )
        _require(
            abs(apart) <= answers.tol * answers.size[index],
            f"under vmap the answer's value is off by {apart}",
        )


def _check_guess(domain, answers, key):
    nearby = jax.tree.map(
        lambda leaf: leaf + 1e-3 * jax.random.normal(key, leaf.shape, leaf.dtype), answers.asked
    )
    warm = eqx.filter_jit(jax.vmap(lambda direction, guess: domain.lmo(direction, guess)))(
        nearby, answers.vertices
    )
    for guess, answer in ((answers.vertices, warm), (domain.vertex(), domain.lmo(domain.start()))):
        _require(_kinds(guess) == _kinds(answer), f"a guess {_kinds(guess)} becomes {_kinds(answer)}")
    excess = (_dots(warm, nearby) - _dots(_lmo(domain, nearby), nearby)) / answers.size
    _require(excess.max() <= 1e-2, f"a good guess costs {excess.max()} of the largest value")


def _check_support(domain, answers):
    values = eqx.filter_jit(jax.vmap(lambda direction: domain.support(tree.scale(-1, direction))))(
        answers.asked
    )
    _require_values(-values, answers.values, answers, "support(-direction) is not -min <direction, v>")


def _check_diameters(domain, answers):
    opposite = jax.vmap(lambda vertex: vertex.dense())(_lmo(domain, tree.scale(-1, answers.asked)))
    for ord in (1, 2):
        try:
            diameter = float(domain.diameter(ord))
        except DomainError:  # a domain need not know both
            continue
        for shift in range(min(answers.count, 5)):
            others = jax.tree.map(lambda leaf, by=shift: jnp.roll(leaf, by, axis=0), opposite)
            widest = jnp.max(
                jax.vmap(lambda x, y, o=ord: tree.norm(tree.sub(x, y), o))(answers.points, others)
            )
            _require(
                widest <= diameter * (1 + 10 * answers.tol) + 10 * answers.tol,
                f"two vertices are {widest} apart in the l{ord} norm, more than the diameter {diameter}",
            )


def _check_projection(domain, answers, key):
    try:
        domain.project(domain.start())
    except DomainError:  # only domains with a cheap exact projection have one
        return
    project = eqx.filter_jit(lambda x: domain.project(x))
    for index in range(min(answers.count, 10)):
        inside = answers.number(index, answers.points)
        x = tree.add(inside, tree.scale(3.0, answers.number(index, answers.asked)))
        nearest = project(x)
        tol = 10 * answers.tol * (1 + tree.norm(x))
        _require(tree.dtype(nearest) == answers.dtype, f"{answers.dtype} projects to {tree.dtype(nearest)}")
        _require(_inside(domain, nearest, 20 * answers.tol), f"the projection of {x} lies outside: {nearest}")
        _require(_distance(project(nearest), nearest) <= tol, f"projecting twice moves the projection of {x}")
        _require(_distance(project(inside), inside) <= tol, f"projecting moves {inside}, which is inside")
        distances = jax.vmap(lambda point, x=x: tree.norm(tree.sub(x, point)))(answers.points)
        _require(
            _distance(x, nearest) <= distances.min() + tol, f"a vertex is nearer to {x} than its projection"
        )


def _lmo(domain, asked):
    return eqx.filter_jit(jax.vmap(lambda direction: domain.lmo(direction)))(asked)


def _dots(vertices, asked):
    return np.asarray(jax.vmap(lambda vertex, direction: vertex.dot(direction))(vertices, asked))


def _distance(x, y):
    return tree.norm(tree.sub(x, y))


def _inside(domain, x, tol):
    try:
        return bool(domain.contains(x, tol))
    except DomainError:  # a domain need not be able to tell
        return bool(tree.all_finite(x))


def _shapes(point):
    return jax.tree.map(lambda leaf: leaf.shape, point)


def _kinds(vertex):
    return jax.tree.map(lambda leaf: leaf.dtype.name, vertex)


def _require_values(values, expected, answers, message):
    excess = abs(np.asarray(values) - expected) / answers.size
    _require(excess.max() <= answers.tol, f"{message}: off by {excess.max()} of the largest value")


def _require(promise, message):
    if not promise:
        raise AssertionError(message)
