"""A domain and a few half-spaces that its points must meet."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...core import tree
from ...core.facts import DomainFacts
from ...errors import DomainError, InfeasibleError
from ..arguments import number
from ..base import AbstractDomain, AbstractVertex, Point
from .column_generation import MOST_CALLS, VERTEX, Basis, Solution, column_of, find_feasible, simplex, tolerance
from .transforms import as_domain, leaves_like, normalise, reach

_EVALUATED = 4  # roundings of a scalar product


class Combination(AbstractVertex):
    r"""$\sum_j \lambda_j v_j$ with a few vertices of X, and the proof that it is best.

    No point of the intersection has a smaller value than
    $\min_{v\in X}\langle c + \sum_i\mu_i A_i, v\rangle - \langle\mu, b\rangle$, with `multiplier` $\mu\ge 0$ (weak
    duality); `gap` is how far above that bound, to rounding, the value of this point is. The proof takes the LMO of
    X at its word: where that is only nearly exact (Krylov spaces), so is the bound.
    """

    vertices: AbstractVertex  # (k+1, ...)
    weights: Float[Array, " columns"]
    kinds: Int[Array, " columns"]  # a vertex, or which row's slack, whose weight here is 0
    multiplier: Float[Array, " k"]
    gap: Float[Array, ""]

    def dense(self):
        return _sum(self.vertices, self.weights)

    def dot(self, x):
        return jnp.sum(self.weights * jax.vmap(lambda vertex: vertex.dot(x))(self.vertices))

    def mix(self, x, step):
        return tree.add(tree.scale(1 - step, x), _sum(self.vertices, step * self.weights))

    def combine(self, weights):
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), self.vertices)
        products = weights[..., None] * tree.with_leading_axes(self.weights, weights.ndim - 1)
        return _sum(flat, products.reshape(*weights.shape[:-1], -1))


class Intersection(AbstractDomain):
    r"""$X \cap \{x : \langle A_i, x\rangle \le b_i,\ i=1,\dots,k\}$; see `AbstractDomain.intersect`.

    The LMO calls that of X, always without a guess, until the answer's `gap` is 1e-10 of the largest value of X in
    float64, or rounding error in float32. That takes 2 to 15 calls for a polytope and one half-space, about 20 for a
    round set and one half-space, and up to 90 for three. A guess, the answer to a similar direction, saves some calls.
    """

    facts = DomainFacts("a handful of its set's")
    decomposes = True

    domain: AbstractDomain
    rows: Point  # (k, ...): A over `units`
    bound: Float[Array, " k"]  # b over `units`
    units: Float[Array, " k"]  # |A_i| times the reach of X, so that all numbers of the program are near 1
    first: Combination

    def __init__(self, domain: Any, A: Any, b: Any):
        earlier = domain if isinstance(domain, Intersection) else None
        self.domain = as_domain(domain if earlier is None else earlier.domain)
        rows = _normalised_rows(self.domain, A, b)
        if earlier is not None:
            rows = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), earlier._rows(), rows)
        self.rows, self.bound, self.units = rows
        with jax.default_matmul_precision("highest"):
            solution = find_feasible(self.domain, self.rows, self.bound)
        if not tree.is_traced(solution.value) and not bool(solution.value <= 10 * tolerance(solution.value.dtype)):
            raise _empty_error(np.asarray(solution.multiplier / self.units, float), float(solution.lower))
        self.first = _combination(solution, 1, self.units)

    @property
    def shape(self):
        return self.domain.shape

    def lmo(self, direction, guess: Any = None):
        dtype = tree.dtype(direction)
        rows, bound, units = tree.astype(self._rows(), dtype)
        known = tree.astype(self.first, dtype) if guess is None else guess
        unit, length = normalise(direction)
        size = _positive(reach(self.domain).astype(dtype))
        unit, length = tree.scale(1 / size, unit), length * size
        with jax.default_matmul_precision("highest"):
            columns = jax.vmap(lambda vertex: column_of(vertex, rows, bound))(known.vertices).T
            cost = jax.vmap(lambda vertex: vertex.dot(unit))(known.vertices)
            is_vertex = known.kinds == VERTEX
            slacks = jnp.eye(len(cost), dtype=dtype)[:, known.kinds + 1]
            basis = Basis(
                known.vertices, known.kinds, jnp.where(is_vertex, columns, slacks), jnp.where(is_vertex, cost, 0)
            )
            return _combination(simplex(self.domain, unit, rows, bound, basis, jnp.inf), length, units)

    def lowest(self, direction, guess: Any = None):
        r"""$\min_{x\in X}\langle c+\sum_i\mu_iA_i,x\rangle-\langle\mu,b\rangle$, with the LMO's $\mu$ and X's own
        `lowest`.

        It is reduced by a bound on rounding errors: $\mu$ can be large where the intersection is thin, and its terms
        then cancel.
        """
        dtype = tree.dtype(direction)
        rows, bound, units = tree.astype(self._rows(), dtype)
        multiplier = jnp.maximum(self.lmo(direction).multiplier, 0) * units
        bounded = self.domain.lowest(tree.add(direction, tree.combine(multiplier, rows))) - multiplier @ bound
        roundings = (_EVALUATED + len(bound)) * float(jnp.finfo(dtype).eps)
        return bounded - roundings * (multiplier @ (1 + jnp.abs(bound)))  # <row, x> is 1 at most

    def vertex(self):
        return self.first

    def tangent(self, direction):
        return self.domain.tangent(direction)

    def start(self):
        """X's own start if it meets the half-spaces.

        Otherwise the last point that does, on the way there from some point of the intersection.
        """
        inside, centre = self.first.dense(), self.domain.start()
        here, there = jnp.minimum(self._excess(inside), 0), self._excess(centre)
        room = jnp.where(there > 0, -here / jnp.where(there > 0, there - here, 1), 1)
        return tree.mix(inside, centre, jnp.min(room))

    def diameter(self, ord):
        """An upper bound: that of X."""
        return self.domain.diameter(ord)

    def contains(self, x, tol=1e-6):
        excess = self._excess(x)
        slack = tol * (1 + jnp.abs(self.bound)).astype(excess.dtype)
        return self.domain.contains(x, tol) & jnp.all(excess <= slack)

    def _rows(self):
        return self.rows, self.bound, self.units

    def _excess(self, x):
        dtype = tree.dtype(x)
        return jax.vmap(lambda row: tree.dot(row, x))(tree.astype(self.rows, dtype)) - self.bound.astype(dtype)


def _sum(vertices, weights):
    """The vertices, combined at full precision: less, as on accelerators, would leave the half-spaces."""
    with jax.default_matmul_precision("highest"):
        return vertices.combine(weights)


def _combination(solution: Solution, length, units):
    """The solution as a vertex of the intersection; `length` and `units` undo the scaling of the program."""
    vertices, kinds = solution.basis.vertices, solution.basis.kinds
    weights = jnp.where(kinds == VERTEX, solution.weights, 0)
    return Combination(vertices, weights, kinds, solution.multiplier * length / units, solution.gap * length)


def _empty_error(multiplier, bound):
    """The error for an intersection that is empty, with its proof, or that could not be decided."""
    if not bound > 0:
        calls = MOST_CALLS * (len(multiplier) + 1)
        return DomainError(f"{calls} calls of the LMO could not decide whether the intersection is empty")
    multiplier, bound = multiplier / multiplier.sum(), bound / multiplier.sum()
    weights = ", ".join(f"{each:.3g}" for each in multiplier)
    return InfeasibleError(
        f"no point of the set meets all half-spaces: with the weights ({weights}) the sum of <A_i, x> - b_i is at "
        f"least {bound:.3g} everywhere",
        multiplier,
        bound,
    )


def _normalised_rows(domain, A, b):
    """(A over units, b over units, units) from the user's A and b, with a leading axis of rows.

    A row's unit is its length times the reach of X.
    """
    shapes, structure, leaves = leaves_like(domain, A, "A")
    leaves = [number(leaf, "A") for leaf in leaves]
    stacks = [leaf[None] if leaf.shape == shape else leaf for leaf, shape in zip(leaves, shapes)]
    bound = number(b, "b")
    counts = {len(stack) for stack in stacks if stack.ndim}
    if [stack.shape[1:] for stack in stacks] != shapes or len(counts) != 1:
        shape = jax.tree.unflatten(structure, [leaf.shape for leaf in leaves])
        raise DomainError(
            f"A must have the domain's shape {domain.shape}, or one more axis in front for the rows, got {shape}"
        )
    count = counts.pop()
    if count == 0:
        raise DomainError("A must have at least one row, got none")
    if bound.shape not in ((), (count,)):
        raise DomainError(f"b must be one number for each of the {count} rows of A, got shape {bound.shape}")
    rows, lengths = jax.vmap(normalise)(jax.tree.unflatten(structure, stacks))
    size = _positive(reach(domain))
    units = jnp.where(lengths > 0, lengths, 1) * size
    bound = jnp.minimum(jnp.broadcast_to(bound, (count,)) / units, 2)  # no point of X reaches more than 1
    return tree.scale(1 / size, rows), bound, units


def _positive(size):
    return jnp.where(size > 0, size, 1)
