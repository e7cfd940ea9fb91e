"""What every domain promises, as one function."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _check as check
from .. import _tree as tree
from ..domains.base import AbstractDomain
from ..errors import DomainError


def check_domain(domain: AbstractDomain, *, key, directions=50, reference=None):
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
    """Gaussian directions, every fourth rounded to -1, 0 or 1, so that it has ties, and a constant one."""
    shapes, structure = jax.tree.flatten(domain.shape, is_leaf=tree.is_shape)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    drawn = [rng.standard_normal((count, *shape)) for shape in shapes]
    for values in drawn:
        values[::4] = np.clip(np.round(values[::4]), -1, 1)
        values[-1] = 1
    return jax.tree.unflatten(structure, [jnp.asarray(values, dtype) for values in drawn])


def _measure(domain, asked, tol):
    """The minima; the sizes that errors are measured by; and for each promise by how much every direction
    breaks it, 1 being what rounding allows."""
    dtype = tree.dtype(asked)
    nearby = jax.tree.map(lambda leaf: leaf + 1e-3 * jnp.roll(leaf, 1, axis=0), asked)
    scales = {"flipped": -1.0, "huge": 1e20, "tiny": 1e-20}
    questions = [asked, nearby, *(tree.scale(factor, asked) for factor in scales.values())]
    vertices = jax.vmap(domain.lmo)(jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *questions))
    vertices, near, flipped, huge, tiny = _split(vertices, len(questions))
    points = _dense(vertices)

    values = _dots(asked, points)
    reach = jnp.max(jax.vmap(tree.norm)(points))
    norms = jax.vmap(tree.norm)(asked)
    sizes = jnp.where(norms > 0, norms, 1) * reach
    start = tree.astype(domain.start(), dtype)
    _same("start", _shapes(start), domain.shape)
    _same("a vertex", _kinds(jax.tree.map(lambda leaf: leaf[0], points)), _kinds(start))

    def off(found, expected):
        return jnp.abs(found - expected) / (tol * sizes)

    def apart(x, y):
        return jax.vmap(lambda a, b: tree.norm(tree.sub(a, b)))(x, y) / (tol * (reach + tree.norm(start)))

    mixed = jax.vmap(lambda vertex: vertex.mix(start, 0.3))(vertices)
    weights = jnp.linspace(-1, 1, len(values), dtype=dtype)[None, :]
    summed = jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), points)
    excesses = {
        "start lies outside": _outside(domain, jax.tree.map(lambda leaf: leaf[None], start), tol),
        "a vertex lies outside": _outside(domain, points, tol),
        "dot is not that of the dense vertex": off(jax.vmap(lambda v, d: v.dot(d))(vertices, asked), values),
        "mix is not that of the dense vertex": apart(
            mixed, jax.vmap(lambda point: tree.mix(start, point, 0.3))(points)
        ),
        "combine is not that of the dense vertices": apart(vertices.combine(weights), summed) / len(values),
        "lmo is beaten by another vertex": (values - jnp.min(_all_dots(asked, points), axis=1)) / (tol * sizes),
        "a direction scaled by 1e20 has another minimum": off(_dots(asked, _dense(huge)), values),
        "a direction scaled by 1e-20 has another minimum": off(_dots(asked, _dense(tiny)), values),
        "support is not the largest value": off(jax.vmap(domain.support)(asked), _dots(asked, _dense(flipped))),
    }
    looped = jax.lax.map(lambda direction: domain.lmo(direction).dense(), asked)
    excesses["vmap is not a loop"] = off(_dots(asked, looped), values)
    excesses |= _measure_guess(domain, vertices, nearby, _dots(nearby, _dense(near)), sizes, tol)
    excesses |= _measure_diameters(domain, points, _dense(flipped), tol)
    excesses |= _measure_projection(domain, tree.add(points, tree.scale(3.0, asked)), points, tol)
    return values, sizes, excesses


def _measure_guess(domain, guesses, nearby, minima, sizes, tol):
    """From the answer to a direction close by; then asked zero, with and without it."""
    guess = jax.tree.map(lambda leaf: leaf[0], guesses)
    _same("vertex()", _kinds(tree.astype(domain.vertex(), tree.dtype(nearby))), _kinds(guess))
    zero = tree.zeros_like(nearby)
    questions = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), nearby, zero)
    answers = jax.vmap(domain.lmo)(questions, jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), guesses))
    _same("an answer from a guess", _kinds(jax.tree.map(lambda leaf: leaf[0], answers)), _kinds(guess))
    warm, still = _split(answers, 2)
    cold = jax.vmap(domain.lmo)(jax.tree.map(lambda leaf: leaf[:1], zero))
    return {
        "a good guess costs more than 1% of the largest value": (_dots(nearby, _dense(warm)) - minima) / (0.01 * sizes),
        "an answer from a guess lies outside": _outside(domain, _dense(warm), tol),
        "the zero direction has no answer": _outside(domain, _dense(cold), tol),
        "the zero direction destroys a guess": _outside(domain, _dense(still), tol),
    }


def _measure_diameters(domain, points, opposite, tol):
    widths = {}
    for ord in (1, 2):
        try:
            diameter = domain.diameter(ord)
        except DomainError:  # a domain need not know both
            continue
        distance = jax.vmap(jax.vmap(lambda x, y, o=ord: tree.norm(tree.sub(x, y), o), (None, 0)), (0, None))
        reach = jnp.max(jax.vmap(lambda x, o=ord: tree.norm(x, o))(points))
        excess = jnp.max(distance(points, opposite), axis=1) - diameter
        widths[f"two vertices are farther apart than the l{ord} diameter"] = excess / (tol * reach)
    return widths


def _measure_projection(domain, far, inside, tol):
    try:
        nearest = jax.vmap(domain.project)(far)
    except DomainError:  # only domains with a cheap exact projection have one
        return {}
    _same("a projection", _kinds(nearest), _kinds(far))
    norms = jax.vmap(tree.norm)
    size = 10 * tol * (norms(far) + norms(inside).max())
    to_vertices = jax.vmap(jax.vmap(lambda x, y: tree.norm(tree.sub(x, y)), (None, 0)), (0, None))(far, inside)
    again, kept = (jax.vmap(domain.project)(x) for x in (nearest, inside))
    return {
        "a projection lies outside": _outside(domain, nearest, tol),
        "projecting twice is not projecting once": norms(tree.sub(again, nearest)) / size,
        "projecting moves a point of the set": norms(tree.sub(kept, inside)) / size,
        "a vertex is nearer than the projection": (norms(tree.sub(far, nearest)) - to_vertices.min(1)) / size,
    }


def _outside(domain, points, tol):
    try:
        inside = jax.vmap(lambda x: domain.contains(x, 20 * tol))(points)
    except DomainError:  # a domain need not be able to tell
        inside = jax.vmap(tree.all_finite)(points)
    return jnp.where(inside, 0.0, jnp.inf)


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
