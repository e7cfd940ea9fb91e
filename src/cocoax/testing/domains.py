"""What every domain promises, as one function."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ..core import check, tree
from ..domains.base import AbstractDomain
from ..errors import DomainError


def check_domain(
    domain: AbstractDomain, *, key: PRNGKeyArray, directions: int = 50, reference: Callable | None = None
) -> None:
    """Raise `AssertionError`, with the broken promises, unless `domain` is what the other parts take it for.

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
    check.instance(domain, AbstractDomain, AssertionError, "check_domain needs one of cocoax.domains")
    _require_refusals(domain)
    x64 = jnp.result_type(float) == jnp.float64
    for dtype in (jnp.float32, jnp.float64) if x64 else (jnp.float32,):
        asked = _directions(domain, key, directions, dtype)
        tol = 1e-8 if dtype == jnp.float64 else 2e-5
        with jax.default_matmul_precision("highest"):  # accelerators round products to fewer bits by themselves
            values, sizes, excesses = jax.tree.map(np.asarray, eqx.filter_jit(_measure)(domain, asked, tol))
        if reference is not None:
            answers = [reference(jax.tree.map(lambda leaf, i=i: leaf[i], asked)) for i in range(directions)]
            excesses["lmo is not the reference's"] = abs(values - answers) / (max(tol, 1e-6) * sizes)
        broken = [
            f"{promise} (direction {np.argmax(excess)}: {np.max(excess):.3g} times what {jnp.dtype(dtype)} allows)"
            for promise, excess in excesses.items()
            if not np.all(excess <= 1)
        ]
        if broken:
            raise AssertionError(f"{type(domain).__name__}: {'; '.join(broken)}")


def _require_refusals(domain):
    leaves, structure = jax.tree.flatten(tree.zeros_like(domain.start()))
    bad = {"not finite": jnp.full_like(leaves[0], jnp.nan), "of another shape": leaves[0][None]}
    for what, leaf in bad.items():
        try:
            domain.lmo(jax.tree.unflatten(structure, [leaf, *leaves[1:]]))
        except DomainError:
            continue
        raise AssertionError(f"{type(domain).__name__}: lmo takes a direction that is {what}")


def _directions(domain, key, count, dtype):
    """Gaussian directions, every fourth rounded to -1, 0 or 1, so that it has ties, some along one coordinate only,
    and constant ones."""
    shapes, structure = jax.tree.flatten(domain.shape, is_leaf=tree.is_shape)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    drawn = rng.standard_normal((count, sum(map(math.prod, shapes))))
    drawn[::4] = np.clip(np.round(drawn[::4]), -1, 1)
    along = np.arange(drawn.shape[1]) == rng.integers(drawn.shape[1], size=(len(drawn[2::4]), 1))
    drawn[2::4] = along * np.sign(drawn[2::4, :1]) * np.linalg.norm(drawn[2::4], axis=1, keepdims=True)
    drawn[-2:-1], drawn[-1] = -1, 1
    parts = np.split(drawn, np.cumsum([math.prod(shape) for shape in shapes])[:-1], axis=1)
    leaves = [jnp.asarray(part, dtype).reshape(count, *shape) for part, shape in zip(parts, shapes)]
    return jax.tree.unflatten(structure, leaves)


def _measure(domain, asked, tol):
    """The minima; the sizes that errors are measured by; and for each promise by how much every direction or point
    breaks it, 1 being what rounding allows."""
    dtype, zero = tree.dtype(asked), tree.zeros_like(asked)
    nearby = jax.tree.map(lambda leaf: leaf + 1e-3 * jnp.roll(leaf, 1, axis=0), asked)
    scaled = [tree.scale(factor, asked) for factor in (-1.0, 1e20, 1e-20)]
    questions = [asked, nearby, *scaled, zero]
    answers = jax.vmap(domain.lmo)(_joined(questions))
    points, near, flipped, huge, tiny, cold = _split(_dense(answers), len(questions))
    vertices = _split(answers, len(questions))[0]
    guess = jax.tree.map(lambda leaf: leaf[0], vertices)
    from_guesses = jax.vmap(domain.lmo)(_joined([nearby, zero]), _joined([vertices, vertices]))
    warm, still = _split(_dense(from_guesses), 2)

    start, first = tree.astype(domain.start(), dtype), tree.astype(domain.vertex(), dtype)
    _same("start", _shapes(start), domain.shape)
    _same("a vertex", _kinds(jax.tree.map(lambda leaf: leaf[0], points)), _kinds(start))
    _same("vertex()", _kinds(first), _kinds(guess))
    _same("an answer from a guess", _kinds(jax.tree.map(lambda leaf: leaf[0], from_guesses)), _kinds(guess))

    values, products = _dots(asked, points), _all_dots(asked, points)
    reach = jnp.max(jax.vmap(tree.norm)(points))
    norms = jax.vmap(tree.norm)(asked)
    sizes = jnp.where(norms > 0, norms, 1) * reach

    def off(found, expected):
        return jnp.abs(found - expected) / (tol * sizes)

    def apart(x, y):
        return jax.vmap(lambda a, b: tree.norm(tree.sub(a, b)))(x, y) / (tol * (reach + tree.norm(start)))

    mixed = jax.vmap(lambda vertex: vertex.mix(start, 0.3))(vertices)
    tangents = jax.vmap(domain.tangent)(asked)
    ramp = jnp.linspace(-1, 1, len(values), dtype=dtype)
    weights = jnp.stack([ramp, ramp[::-1] ** 2])
    sums = jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), points)
    first_sum = jax.tree.map(lambda leaf: leaf[:1], sums)
    one_sum = jax.tree.map(lambda leaf: leaf[None], vertices.combine(ramp))
    lone_start = jax.tree.map(lambda leaf: leaf[None], start)
    looped = jax.lax.map(lambda direction: domain.lmo(direction).dense(), asked)
    excesses = {
        "dot is not that of the dense vertex": off(jax.vmap(lambda v, d: v.dot(d))(vertices, asked), values),
        "mix is not that of the dense vertex": apart(
            mixed, jax.vmap(lambda point: tree.mix(start, point, 0.3))(points)
        ),
        "combine with a row of weights is not that of the dense vertices": apart(one_sum, first_sum) / len(values),
        "combine with rows of weights is not that of the dense vertices": apart(vertices.combine(weights), sums)
        / len(values),
        "lmo is beaten by another vertex": (values - jnp.min(products, axis=1)) / (tol * sizes),
        "a direction scaled by 1e20 has another minimum": off(_dots(asked, huge), values),
        "a direction scaled by 1e-20 has another minimum": off(_dots(asked, tiny), values),
        "support is not the largest value": off(jax.vmap(domain.support)(asked), _dots(asked, flipped)),
        "tangent changes a product with a difference of points": off(
            _dots(tangents, tree.sub(points, lone_start)), _dots(asked, tree.sub(points, lone_start))
        ),
        "tangent is longer than the direction": (jax.vmap(tree.norm)(tangents) - norms) / (tol * sizes / reach),
        "vmap is not a loop": off(_dots(asked, looped), values),
        "a good guess costs more than 1% of the largest value": _dots(nearby, tree.sub(warm, near)) / (0.01 * sizes),
    }
    projected, nearest = _measure_projection(domain, tree.add(points, tree.scale(3.0, asked)), points, start, tol)
    excesses |= projected | _measure_diameters(domain, points, flipped, tol)
    members = nearest | {
        "a point of the inner ball lies outside": jax.vmap(domain.inner)(tree.add(points, tree.scale(reach, asked))),
        "start lies outside": lone_start,
        "vertex() lies outside": jax.tree.map(lambda leaf: leaf[None], first.dense()),
        "a vertex lies outside": points,
        "an answer from a guess lies outside": warm,
        "the zero direction has no answer": jax.tree.map(lambda leaf: leaf[:1], cold),
        "the zero direction destroys a guess": still,
    }
    excesses |= _measure_members(domain, members, asked, points, tol)
    return values, sizes, excesses


def _measure_members(domain, members, asked, points, tol):
    """Points of the set are on the right side of the hyperplanes that support it, and `contains` agrees."""
    norms, reach = jax.vmap(tree.norm)(asked), jnp.max(jax.vmap(tree.norm)(points))
    lengths = jnp.where(norms > 0, norms, 1)
    minima = jnp.min(_all_dots(asked, points), axis=1)
    allowed = tol * lengths * reach
    beyond = {name: (minima[None] - _all_dots(asked, stack).T) / allowed[None] for name, stack in members.items()}
    excesses = {name: jnp.max(excess, axis=1) for name, excess in beyond.items()}
    # a step against a direction, from where it is least, leads out of the set
    step = jax.vmap(lambda x, direction, length: tree.sub(x, tree.scale(0.01 * reach / length, direction)))
    outside = {"contains takes a point outside": step(points, asked, lengths)}
    for name, inside in _contained(domain, members | outside, tol).items():
        if name in outside:
            excesses[name] = jnp.where(inside & (norms * reach > 0), jnp.inf, 0.0)
        else:
            excesses[name] = jnp.where(inside, excesses[name], jnp.inf)
    return excesses


def _measure_diameters(domain, points, opposite, tol):
    widths = {}
    for ord in (1, 2):
        try:
            diameter = jnp.asarray(domain.diameter(ord), tree.dtype(points))
        except DomainError:  # a domain need not know both
            continue
        distance = jax.vmap(jax.vmap(lambda x, y, o=ord: tree.norm(tree.sub(x, y), o), (None, 0)), (0, None))
        reach = jnp.max(jax.vmap(lambda x, o=ord: tree.norm(x, o))(points))
        excess = jnp.max(distance(points, opposite), axis=1) - diameter
        widths[f"two vertices are farther apart than the l{ord} diameter"] = excess / (tol * reach)
    return widths


def _measure_projection(domain, far, vertices, start, tol):
    """What projections break, and the points that they must not leave the set by."""
    between = jax.vmap(lambda vertex: tree.mix(start, vertex, 0.5))(vertices)
    given = _joined([far, vertices, between])
    try:
        found = jax.vmap(domain.project)(given)
    except DomainError:  # only domains with a cheap exact projection have one
        return {}, {}
    _same("a projection", _kinds(found), _kinds(given))
    nearest, *kept = _split(found, 3)
    again = jax.vmap(domain.project)(nearest)
    norms = jax.vmap(tree.norm)
    size = 10 * tol * (norms(far) + norms(vertices).max())
    to_vertices = jax.vmap(jax.vmap(lambda x, y: tree.norm(tree.sub(x, y)), (None, 0)), (0, None))(far, vertices)
    moved = norms(tree.sub(_joined(kept), _joined([vertices, between])))
    excesses = {
        "projecting twice is not projecting once": norms(tree.sub(again, nearest)) / size,
        "projecting moves a point of the set": moved / jnp.tile(size, 2),
        "a vertex is nearer than the projection": (norms(tree.sub(far, nearest)) - to_vertices.min(1)) / size,
    }
    return excesses, {"a projection lies outside": nearest}


def _contained(domain, points, tol):
    """Of each of several stacks, what the domain contains; all at once, for one compilation."""
    stacks = list(points.values())
    try:
        inside = jax.vmap(lambda x: domain.contains(x, 20 * tol))(_joined(stacks))
    except DomainError:  # a domain need not be able to tell
        return {}
    ends = np.cumsum([len(jax.tree.leaves(stack)[0]) for stack in stacks])
    return dict(zip(points, jnp.split(inside, ends[:-1])))


def _joined(stacks):
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *stacks)


def _split(stack, parts):
    halves = jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), stack)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], halves) for i in range(parts)]


def _dense(vertices):
    return jax.vmap(lambda vertex: vertex.dense())(vertices)


def _dots(directions, points):
    return jax.vmap(tree.dot)(directions, points)


def _all_dots(directions, points):
    return jax.vmap(jax.vmap(tree.dot, (None, 0)), (0, None))(directions, points)


def _shapes(point):
    return jax.tree.map(lambda leaf: leaf.shape, point)


def _kinds(node):
    """Structure, shapes and dtypes: what a loop needs to carry a value."""
    return jax.tree.map(lambda leaf: f"{leaf.dtype.name}{list(leaf.shape)}", node)


def _same(what, found, expected):
    if found != expected:
        raise AssertionError(f"{what} has the form {found}, but should have {expected}")
