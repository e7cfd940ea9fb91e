r"""Linear losses and a few affine constraints over a set with an LMO: exactly, by column generation.

The dual $\max_{\lambda\ge0} \min_{x\in X} \langle c + J^\top\lambda, x\rangle - \langle\lambda, h\rangle$ has as few
variables as there are constraints; see `domains.composed.column_generation`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..domains.composed import column_generation
from .search import Infeasible, Search
from .structure import Structure


def solve_linear(search: Search, structure: Structure):
    """Judges the answer; raises `Infeasible` if no point meets the constraints."""
    domain, like, first = search.oracle.domain, search.oracle.like, search.first
    unravel = ravel_pytree(like)[1]
    norm = np.array([search.oracle.width(row) for row in structure.jacobian])
    norm = np.where(norm > 0, norm, 1.0)
    rows = jax.vmap(unravel)(jnp.asarray(structure.jacobian / norm[:, None]))
    bound = jnp.asarray((structure.jacobian @ first.point - first.constraint) / norm)
    size = search.oracle.width(first.slope) or 1.0
    found = column_generation.find_feasible(domain, rows, bound)
    search.check()
    if found.lower > 1e-9:
        multiplier = np.asarray(found.multiplier) / norm
        raise Infeasible(multiplier / multiplier.sum(), float(found.lower) / multiplier.sum())
    cost = unravel(jnp.asarray(first.slope / size))
    basis = found.basis
    kinds = basis.kinds == column_generation.VERTEX
    costs = jnp.where(kinds, jax.vmap(lambda vertex: vertex.dot(cost))(basis.vertices), 0)
    solution = column_generation.simplex(domain, cost, rows, bound, basis._replace(cost=costs), jnp.inf)
    weights = jnp.where(solution.basis.kinds == column_generation.VERTEX, solution.weights, 0)
    point = np.asarray(ravel_pytree(solution.basis.vertices.combine(weights))[0])
    multiplier = np.maximum(np.asarray(solution.multiplier), 0.0) * size / norm
    search.judge(search.objective.measure(point, multiplier), multiplier)
