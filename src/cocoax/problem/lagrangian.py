"""The best decision for one round, when each constraint has a price (its multiplier)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..domains.base import Point
from .linearity import is_linear
from .problem import Problem, Round

_STEPS = 60


class Answer(NamedTuple):
    """A decision, its loss and constraint values; tangents at `proof` bound how good it is (`proven_least`)."""

    x: Point
    loss: Float[Array, ""]
    constraint: Float[Array, " m"]
    proof: Point


def best_answer(
    problem: Problem,
    round: Round,
    multiplier: Any,
    weight: Any = 1.0,
    *,
    start: Point | None = None,
    steps: int = _STEPS,
) -> Answer:
    r"""$\arg\min_{x\in X} wf(x) + \langle\lambda, g(x)\rangle$: one LMO where f and g are linear, else Frank-Wolfe.

    The answer has the dtype of `start`, the point where f and g are differentiated first.
    """
    start = problem.domain.start() if start is None else start
    weight = jnp.asarray(weight, tree.dtype(start))
    if is_linear(problem, round):
        direction = problem.linearize(start, round)[2](weight, multiplier)
        x = problem.domain.lmo(direction).dense()
        loss, values = problem.values(x, round)
        return Answer(x, loss, values, start)
    return _frank_wolfe(problem, round, multiplier, weight, start, steps)


def proven_least(problem: Problem, tangent: tuple, weights: Any) -> Float[Array, ""]:
    """A lower bound on <weights, (f, g)(x)> over all x in X, from tangents (offsets, slopes) of the convex f and g.

    `minorants.tangents` makes the tangents. The bound uses `domain.lowest`, since a vertex from an inexact LMO proves
    nothing.
    """
    offsets, slopes = tangent
    direction = tree.combine(weights, slopes)
    return weights @ offsets + problem.domain.lowest(direction, problem.domain.lmo(direction))


def _frank_wolfe(problem, round, multiplier, weight, start, steps):
    """The best answer by pairwise Frank-Wolfe (Lacoste-Julien, Jaggi, 2015).

    Each step moves weight from the worst atom to the LMO's answer.
    """
    domain = problem.domain

    def total(x):
        loss, values = problem.values(x, round)
        return weight * loss + multiplier @ values

    def gradient(x):
        return problem.linearize(x, round)[2](weight, multiplier)

    def better(proof, here, slope, x, vertex):
        """The higher of two lower bounds, each with the point where it was found; valid as long as the LMO is exact."""
        bound = here - tree.dot(slope, tree.sub(x, vertex))
        return tree.where(bound > proof[0], (bound, x), proof)

    def step(number, carry):
        """One pairwise step, with Newton's length along it if that lowers the value."""
        x, atoms, shares, proof = carry
        here, slope = total(x), gradient(x)
        vertex = domain.lmo(slope).dense()
        along = jax.vmap(lambda atom: tree.dot(slope, atom))(atoms)
        worst = jnp.argmax(jnp.where(shares > 0, along, -jnp.inf))
        proof = better(proof, here, slope, x, vertex)
        ahead = tree.sub(vertex, jax.tree.map(lambda leaf: leaf[worst], atoms))
        bend = tree.dot(ahead, problem.curvature(x, round, weight, multiplier)(ahead))
        newton = jnp.clip(tree.ratio(-tree.dot(slope, ahead), tree.finite(bend)), 0, shares[worst])
        lengths = jnp.stack([jnp.where(bend > 0, newton, shares[worst]), 0.25 * newton, jnp.zeros_like(newton)])
        tried = jax.vmap(lambda length: total(tree.add(x, tree.scale(length, ahead))))(lengths)
        length = lengths[jnp.argmin(jnp.where(jnp.isfinite(tried), tried, jnp.inf))]
        atoms = jax.tree.map(lambda leaf, new: leaf.at[number + 1].set(new), atoms, vertex)
        shares = shares.at[worst].add(-length).at[number + 1].add(length)
        return tree.add(x, tree.scale(length, ahead)), atoms, shares, proof

    atoms = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (steps + 1, *leaf.shape)), start)
    shares = jnp.zeros(steps + 1, weight.dtype).at[0].set(1)
    nothing = jnp.full_like(weight, -jnp.inf), start
    x, _, _, proof = jax.lax.fori_loop(0, steps, step, (start, atoms, shares, nothing))
    slope = gradient(x)
    _, best = better(proof, total(x), slope, x, domain.lmo(slope).dense())
    loss, values = problem.values(x, round)
    return Answer(x, loss, values, best)
