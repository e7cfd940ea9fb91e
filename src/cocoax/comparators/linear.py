r"""Linear losses and a few affine constraints over a set with an LMO: exactly, by column generation.

The dual $\max_{\lambda\ge0} \min_{x\in X} \langle c + J^\top\lambda, x\rangle - \langle\lambda, h\rangle$ has as few
variables as there are constraints; see `domains.composed.column_generation`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..domains.composed import column_generation
from .search import Search


def solve_linear(search: Search):
    """Reports the answer; raises `Infeasible` if it is proven that no point meets the constraints."""
    structure = search.structure
    domain, like, first = search.oracle.domain, search.oracle.like, search.first
    falls = [row @ (first.point - search.oracle.lmo(row)) for row in structure.jacobian]
    norm = search.constraint_scale + np.maximum(falls, 0.0)
    bound = (structure.jacobian @ first.point - first.constraint) / norm
    size = search.oracle.width(first.slope) or 1.0
    rows, found = _feasible(domain, structure.jacobian / norm[:, None], bound, like)
    search.check()
    if found.lower > 1e-9:
        return search.refute(first.point, first.constraint, structure.jacobian, np.asarray(found.multiplier) / norm)
    point, multiplier = _best(domain, first.slope / size, rows, bound, found.basis, like)
    multiplier = np.maximum(np.asarray(multiplier), 0.0) * size / norm
    search.report(search.objective.measure(np.asarray(point), multiplier), multiplier)


@eqx.filter_jit
def _feasible(domain, jacobian, bound, like):
    rows = jax.vmap(ravel_pytree(like)[1])(jacobian)
    return rows, column_generation.find_feasible(domain, rows, bound)


@eqx.filter_jit
def _best(domain, slope, rows, bound, basis, like):
    """The best point and its multipliers, from a feasible basis."""
    cost = ravel_pytree(like)[1](slope)
    kinds = basis.kinds == column_generation.VERTEX
    costs = jnp.where(kinds, jax.vmap(lambda vertex: vertex.dot(cost))(basis.vertices), 0)
    solution = column_generation.simplex(domain, cost, rows, bound, basis._replace(cost=costs), jnp.inf)
    weights = jnp.where(solution.basis.kinds == column_generation.VERTEX, solution.weights, 0)
    return ravel_pytree(solution.basis.vertices.combine(weights))[0], solution.multiplier
