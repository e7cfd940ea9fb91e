"""Losses with kinks, where they are nonnegative sums of |z| with affine z and of something smooth; as cone programs."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..problem.kinks import has_other_kinks, replace_kinks
from ..problem.linearity import is_constant
from .chunks import batch_size, has_own_gradients, map_rounds
from .cones import Cones, Part
from .newton import Newton
from .objective import Compiled
from .rounding import roundings
from .search import Evaluation, Search

_LEAST = 1e-3  # of the change of z over the set: at the start all of them may be 0


class Kinks(NamedTuple):
    """The |z| of all rounds."""

    search: Search
    number: int
    width: float  # the typical |z| at the start, or a part of how much z changes over the set
    rounding: float  # of the mean loss where it is taken apart: the z of max(a, -1e15) are large, and then cancel

    def work(self, size: int) -> float:
        """About how many operations a factorisation with all of them takes."""
        few, many = sorted((size, self.number))
        return float(few) ** 2 * many

    def rows(self):
        """(A, b, c) with z = Ax + b and F = smooth + sum_k c_k |z_k|."""
        objective = self.search.objective
        answer = _rows(objective.problem, objective.rounds, self.search.oracle.like)
        matrix, values, weights = (np.asarray(part) for part in answer)
        return matrix, values - matrix @ self.search.oracle.centre, weights * objective.unit


def kinks_of(search: Search) -> Kinks | None:
    """None if the loss has no kinks, or others than those."""
    problem = search.objective.problem
    if has_own_gradients(problem):
        return None
    direction = np.random.default_rng(0).standard_normal(len(search.oracle.centre))
    direction *= search.oracle.diameter / np.linalg.norm(direction)
    known, least, sizes, weight, count = _inspect(problem, search.objective.rounds, search.oracle.like, direction)
    width = float(np.max(np.array([1.0, _LEAST]) * sizes / max(weight, 1e-300)))
    rounding = 2 * roundings(search.objective, search.oracle.centre) * float(sizes.sum()) * search.objective.unit
    fits = bool(known) and least >= 0 and width > 0 and rounding <= search.precision
    return Kinks(search, int(count), width, rounding) if fits else None


class _Rest(eqx.Module):
    """A loss without its |z|."""

    loss: eqx.Module

    def __call__(self, x, round):
        return replace_kinks(self.loss, jnp.zeros_like, x, round)  # pyright: ignore


class Epigraph(Newton):
    """For losses with kinks: smooth + <c, p + m> where Ax + b = p - m and p, m >= 0 are variables of their own."""

    def __init__(self, search: Search, cones: Cones, kinks: Kinks):
        from scipy import sparse

        self.kinks, self.rows = kinks, kinks.rows()
        A, b, c = self.rows
        count, before = len(c), cones.size + cones.extra
        none = sparse.csr_array((2 * count, before))
        parts = [
            part._replace(matrix=sparse.hstack([part.matrix, sparse.csr_array((len(part.side), 2 * count))], "csr"))
            for part in cones.parts
        ]
        split = sparse.hstack([-sparse.eye_array(count), sparse.eye_array(count)])
        extra = sparse.csr_array((count, cones.extra))
        whole = Part(sparse.hstack([sparse.csr_array(A), extra, split], "csr"), -b, "zero")
        positive = Part(sparse.hstack([none, -sparse.eye_array(2 * count)], "csr"), np.zeros(2 * count), "positive")
        super().__init__(search, Cones(cones.size, cones.extra + 2 * count, [whole, positive, *parts]))
        self.smooth = Compiled(search.objective.functions.with_loss(_Rest(search.objective.problem.loss)))
        self.cost = np.concatenate([np.zeros(cones.extra), c, c])

    def _advance(self, x, target, multiplier, weights):
        """The target. The multipliers y of Ax + b = p - m, |y| <= c, prove a lower bound, since <y, z> <= <c, |z|>."""
        A, b, c = self.rows
        y, search = np.clip(weights[: len(c)], -c, c), self.search
        rest = self.smooth.measure(target, multiplier)
        loss, slope = rest.loss + y @ (A @ target + b) - self.kinks.rounding, rest.slope + y @ A
        proof, _ = search.bound(Evaluation(target, loss, rest.constraint, slope), multiplier)
        new = search.objective.measure(target, multiplier)
        search.compare(new, proof)
        search.check()
        return new


def _values(loss, x, round):
    """All z."""
    return _found(loss, x, round)[0]


def _found(loss, x, round):
    """All z, and all square roots."""
    found, roots = [], []

    def root(z):
        roots.append(jnp.sqrt(z))
        return roots[-1]

    replace_kinks(loss, lambda z: (found.append(z), jnp.abs(z))[1], x, round, root=root)
    return found, roots


def _no_shifts(loss, x, round):
    return jax.tree.map(jnp.zeros_like, _found(loss, x, round))


def _weights(loss, point, round):
    """The coefficients of all |z|, and then of all square roots, at a pair (x, shifts of both)."""

    def shifted(shifts):
        kinks, roots = map(iter, shifts)

        def kink(z):
            return jnp.abs(z) + next(kinks)

        def root(z):
            return jnp.sqrt(z) + next(roots)

        return replace_kinks(loss, kink, point[0], round, root=root)

    return jax.grad(shifted)(point[1])


@eqx.filter_jit
def _inspect(problem, rounds, x, way) -> Any:
    """Whether the loss is affine in its |z| and roots, these z are affine and the rest is smooth, as its trace shows.

    Also the least coefficient of a |z| or a root over all rounds, the sums of |z| and of its changes along the way,
    times coefficients, the sum of these, and their number.
    """
    one = jax.tree.map(lambda leaf: leaf[0], rounds)
    zeros, _ = shifts = _no_shifts(problem.loss, x, one)

    def coefficients(point, round):
        return _weights(problem.loss, point, round)

    def turned(x, weights, round):
        return jax.vjp(lambda x: _values(problem.loss, x, round), x)[1](weights)

    is_affine = zeros and is_constant(coefficients, (x, shifts), one) and is_constant(turned, x, zeros, one)
    if not is_affine or has_other_kinks(problem.loss, x, one):
        return jnp.asarray(False), jnp.zeros(()), jnp.zeros(2), jnp.zeros(()), jnp.asarray(0)
    way = ravel_pytree(x)[1](way)

    def of_round(round):
        found = coefficients((x, shifts), round)
        weights, least = ravel_pytree(found[0])[0], ravel_pytree(found)[0].min()
        both = jax.jvp(lambda at: _values(problem.loss, at, round), (x,), (way,))
        sizes = jnp.stack([weights @ jnp.abs(ravel_pytree(part)[0]) for part in both])
        return least, sizes, weights.sum()

    least, sizes, weight = map_rounds(jax.vmap(of_round), batch_size(problem, x, rounds), rounds)
    count = len(least) * sum(z.size for z in zeros)
    return jnp.asarray(True), least.min(), sizes.sum(0), weight.sum(), jnp.asarray(count)


@eqx.filter_jit
def _rows(problem, rounds, x):
    def of_round(round):
        values = _values(problem.loss, x, round)
        slopes = jax.jacrev(lambda at: ravel_pytree(_values(problem.loss, at, round))[0])(x)
        rows = jax.vmap(lambda row: ravel_pytree(row)[0])(slopes)
        weights, _ = _weights(problem.loss, (x, _no_shifts(problem.loss, x, round)), round)
        return rows, ravel_pytree(values)[0], ravel_pytree(weights)[0]

    rows, values, weights = jax.vmap(of_round)(rounds)
    return rows.reshape(-1, rows.shape[-1]), values.reshape(-1), weights.reshape(-1)
