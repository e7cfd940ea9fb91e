"""Measures how far a domain breaks each of its promises."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..core import tree
from ..errors import DomainError


def measure(domain, asked, tol):
    """(minima, sizes, excesses) of a domain asked in the directions `asked`, which are stacked.

    `minima` are the values of the LMO's answers, and `sizes` what errors are measured by. `excesses` says, for each
    promise, how far each direction or point breaks it; 1 is what rounding allows. The domain's methods are compiled.
    The comparisons run in NumPy, on stacks written as rows, because compiling them would take longer.
    """
    dtype, count = tree.dtype(asked), len(jax.tree.leaves(asked)[0])
    ramp = np.linspace(-1, 1, count).astype(dtype)
    weights = np.stack([ramp, ramp[::-1] ** 2])
    stacks, numbers = _answers(domain, asked, weights)
    said, start = {name: _rows(stack) for name, stack in stacks.items()}, _rows(stacks["start"])[0]
    directions, points = _rows(asked), said["points"]
    norms, reach = _norms(directions), _norms(points).max()
    lengths = np.where(norms > 0, norms, 1)
    values, products, sizes = _dots(directions, points), directions @ points.T, lengths * reach
    from_start = points - start

    def off(found, expected):
        return abs(found - expected) / (tol * sizes)

    def apart(x, y):
        return _norms(x - y) / (tol * (reach + _norms(start)))

    excesses = {
        "dot is not that of the dense vertex": off(np.asarray(numbers["dots"], float), values),
        "mix is not that of the dense vertex": apart(said["mixed"], start + 0.3 * from_start),
        "combine with a row of weights is not that of the dense vertices": apart(said["sum"], weights[:1] @ points)
        / count,
        "combine with rows of weights is not that of the dense vertices": apart(said["sums"], weights @ points) / count,
        "lmo is beaten by another vertex": (values - products.min(axis=1)) / (tol * sizes),
        "a direction scaled by 1e20 has another minimum": off(_dots(directions, said["huge"]), values),
        "a direction scaled by 1e-20 has another minimum": off(_dots(directions, said["tiny"]), values),
        "support is not the largest value": off(
            np.asarray(numbers["supports"], float), _dots(directions, said["flipped"])
        ),
        "tangent changes a product with a difference of points": off(
            _dots(said["tangents"], from_start), _dots(directions, from_start)
        ),
        "tangent is longer than the direction": (_norms(said["tangents"]) - norms) / (tol * lengths),
        "vmap is not a loop": off(_dots(directions, said["looped"]), values),
        "a good guess costs more than 1% of the largest value": _dots(said["nearby"], said["warm"] - said["near"])
        / (0.01 * sizes),
    }
    step = jnp.asarray(0.01 * reach / lengths, dtype)
    members, inside, again = _membership(domain, asked, stacks, jnp.asarray(reach, dtype), step, tol)
    if again is not None:
        far, nearest = points + 3 * directions, _rows(members["a projection lies outside"])
        kept = np.concatenate([points, (start + points) / 2])
        size = 10 * tol * (_norms(far) + reach)
        to_vertices = _norms(far[:, None] - points[None])
        excesses |= {
            "projecting twice is not projecting once": _norms(_rows(again["nearest"]) - nearest) / size,
            "projecting moves a point of the set": _norms(_rows(again["kept"]) - kept) / np.tile(size, 2),
            "a vertex is nearer than the projection": (_norms(far - nearest) - to_vertices.min(axis=1)) / size,
        }
    excesses |= _measure_diameters(domain, points, said["flipped"], tol)
    return values, sizes, excesses | _measure_members(members, inside, directions, points, lengths, tol)


@eqx.filter_jit
def _answers(domain, asked, weights):
    """(stacks of points, numbers), both by name: what the domain's methods answer to the directions `asked`."""
    dtype, zero = tree.dtype(asked), tree.zeros_like(asked)
    nearby = jax.tree.map(lambda leaf: leaf + 1e-3 * jnp.roll(leaf, 1, axis=0), asked)
    questions = {"points": asked, "near": nearby, "zero": zero}
    questions |= {name: tree.scale(by, asked) for name, by in (("flipped", -1.0), ("huge", 1e20), ("tiny", 1e-20))}
    answers = jax.vmap(domain.lmo)(_joined(list(questions.values())))
    stacks = dict(zip(questions, _split(_dense(answers), len(questions))))
    vertices = _split(answers, len(questions))[0]
    guess = jax.tree.map(lambda leaf: leaf[0], vertices)
    from_guesses = jax.vmap(domain.lmo)(_joined([nearby, zero]), _joined([vertices, vertices]))
    stacks["warm"], stacks["still"] = _split(_dense(from_guesses), 2)

    start, first = tree.astype(domain.start(), dtype), tree.astype(domain.vertex(), dtype)
    _same("start", _shapes(start), domain.shape)
    _same("a vertex", _kinds(jax.tree.map(lambda leaf: leaf[0], stacks["points"])), _kinds(start))
    _same("vertex()", _kinds(first), _kinds(guess))
    _same("an answer from a guess", _kinds(jax.tree.map(lambda leaf: leaf[0], from_guesses)), _kinds(guess))

    alone = {"start": start, "first": first.dense(), "sum": vertices.combine(weights[0])}
    stacks |= {name: jax.tree.map(lambda leaf: leaf[None], point) for name, point in alone.items()}
    stacks |= {
        "nearby": nearby,
        "sums": vertices.combine(weights),
        "mixed": jax.vmap(lambda vertex: vertex.mix(start, 0.3))(vertices),
        "tangents": jax.vmap(domain.tangent)(asked),
        "looped": jax.lax.map(lambda direction: domain.lmo(direction).dense(), asked),
    }
    return stacks, {
        "dots": jax.vmap(lambda v, d: v.dot(d))(vertices, asked),
        "supports": jax.vmap(domain.support)(asked),
    }


@eqx.filter_jit
def _membership(domain, asked, stacks, reach, step, tol):
    """(points, inside, again): points that must lie in the domain, and what `contains` says of them.

    `points` has a stack for each promise that a point outside would break; one stack must lie outside. `inside` is None
    if the domain cannot tell, and `again`, projections of points of the domain, is None without projections.
    """
    points, start = stacks["points"], jax.tree.map(lambda leaf: leaf[0], stacks["start"])
    members = {
        "a point of the inner ball lies outside": jax.vmap(domain.inner)(tree.add(points, tree.scale(reach, asked))),
        "start lies outside": stacks["start"],
        "vertex() lies outside": stacks["first"],
        "a vertex lies outside": points,
        "an answer from a guess lies outside": stacks["warm"],
        "the zero direction has no answer": jax.tree.map(lambda leaf: leaf[:1], stacks["zero"]),
        "the zero direction destroys a guess": stacks["still"],
    }
    between = jax.vmap(lambda point: tree.mix(start, point, 0.5))(points)
    far = tree.add(points, tree.scale(3.0, asked))
    try:
        projected = jax.vmap(domain.project)(_joined([far, points, between]))
    except DomainError:  # only domains with a cheap exact projection have one
        again = None
    else:
        _same("a projection", _kinds(projected), _kinds(_joined([far, points, between])))
        nearest, *kept = _split(projected, 3)
        again = {"nearest": jax.vmap(domain.project)(nearest), "kept": _joined(kept)}
        members["a projection lies outside"] = nearest
    # a step against a direction, from where it is least, leads out of the set
    away = jax.vmap(lambda x, direction, by: tree.sub(x, tree.scale(by, direction)))(points, asked, step)
    members["contains takes a point outside"] = away
    sizes = [len(jax.tree.leaves(stack)[0]) for stack in members.values()]
    try:
        inside = jax.vmap(lambda x: domain.contains(x, 20 * tol))(_joined(list(members.values())))
    except DomainError:  # a domain need not be able to tell
        return members, None, again
    return members, dict(zip(members, jnp.split(inside, np.cumsum(sizes)[:-1]))), again


def _measure_members(members, inside, directions, points, lengths, tol):
    """For each promise: how far points lie beyond supporting hyperplanes <d, x> >= min, or contradict `contains`."""
    minima, reach = (directions @ points.T).min(axis=1), _norms(points).max()
    excesses = {}
    for name, stack in members.items():
        contained = None if inside is None else np.asarray(inside[name])
        if name == "contains takes a point outside":
            if contained is not None:
                excesses[name] = np.where(contained & (_norms(directions) * reach > 0), np.inf, 0.0)
            continue
        beyond = ((minima - _rows(stack) @ directions.T) / (tol * lengths * reach)).max(axis=1)
        excesses[name] = beyond if contained is None else np.where(contained, beyond, np.inf)
    return excesses


def _measure_diameters(domain, points, opposite, tol):
    """For each norm: by how much the largest distance between two vertices exceeds `diameter`."""
    widths = {}
    for ord in (1, 2):
        try:
            diameter = float(domain.diameter(ord))
        except DomainError:  # a domain need not know both
            continue
        distances = np.linalg.norm(points[:, None] - opposite[None], ord, axis=-1)
        reach = np.linalg.norm(points, ord, axis=-1).max()
        widths[f"two vertices are farther apart than the l{ord} diameter"] = (distances.max(axis=1) - diameter) / (
            tol * reach
        )
    return widths


def _rows(stack):
    """A stack of points as a matrix in NumPy, in float64."""
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(stack)]
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)


def _norms(rows):
    return np.linalg.norm(rows, axis=-1)


def _dots(directions, points):
    return np.sum(directions * points, axis=1)


def _joined(stacks):
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *stacks)


def _split(stack, parts):
    halves = jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), stack)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], halves) for i in range(parts)]


def _dense(vertices):
    return jax.vmap(lambda vertex: vertex.dense())(vertices)


def _shapes(point):
    return jax.tree.map(lambda leaf: leaf.shape, point)


def _kinds(node):
    """Structure, shapes and dtypes: what a loop needs to carry a value."""
    return jax.tree.map(lambda leaf: f"{leaf.dtype.name}{list(leaf.shape)}", node)


def _same(what, found, expected):
    if found != expected:
        raise AssertionError(f"{what} has the form {found}, but should have {expected}")
