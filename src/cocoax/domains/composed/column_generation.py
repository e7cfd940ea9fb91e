r"""Linear minimisation over a domain and a few half-spaces, by column generation (Dantzig, Wolfe, 1960).

A point of $X\cap\{\langle a_i, x\rangle\le b_i\}$ is $\sum_j\lambda_j v_j$ with vertices of X, $\lambda$ in the simplex
and $\sum_j\lambda_j(\langle a_i, v_j\rangle - b_i) + s_i = 0$ with slacks $s\ge 0$. On this linear program the simplex
method keeps only k+1 columns, and X's own LMO finds the best one to enter: the vertex that minimises
$\langle c + \sum_i\mu_i a_i, v\rangle$, where $\mu$ are the prices of the rows. With one half-space this is the
secant method on its multiplier.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...core import tree
from ..base import AbstractVertex

MOST_CALLS = 60  # of the LMO, for each column
VERTEX = -1  # the kind of a column; that of a slack is its row


class Basis(NamedTuple):
    """The columns in use; each belongs to a vertex or to a slack."""

    vertices: AbstractVertex  # (k+1, ...)
    kinds: Int[Array, " columns"]
    columns: Float[Array, "columns columns"]
    cost: Float[Array, " columns"]

    def weights(self):
        """The weights w >= 0 of the columns, with columns @ w = (1, 0, ..., 0)."""
        target = jnp.zeros_like(self.cost).at[0].set(1)
        weights = jnp.maximum(jnp.linalg.solve(self.columns, target), 0)
        return weights / jnp.sum(jnp.where(self.kinds == VERTEX, weights, 0))

    def replace(self, slot, kind, column, cost, vertex):
        """The basis with a new column in `slot`; unchanged if `slot` is outside of the basis.

        `vertex` is ignored unless `kind` is `VERTEX`.
        """
        place = jnp.where(kind == VERTEX, slot, len(self.cost))

        def put(stack, new):  # cast, since the set may have been built before float64 was switched on
            return stack.at[place].set(new.astype(stack.dtype), mode="drop")

        return Basis(
            jax.tree.map(put, self.vertices, vertex),
            self.kinds.at[slot].set(kind, mode="drop"),
            self.columns.at[:, slot].set(column, mode="drop"),
            self.cost.at[slot].set(cost, mode="drop"),
        )


class Solution(NamedTuple):
    """The optimal basis, with the multiplier that proves how good it is."""

    basis: Basis
    weights: Float[Array, " columns"]
    value: Float[Array, ""]
    lower: Float[Array, ""]  # no feasible value is lower, as is proven by
    multiplier: Float[Array, " k"]
    gap: Float[Array, ""]


@eqx.filter_jit
def simplex(domain, direction, rows, bound, basis, most) -> Solution:
    """Minimise <direction, x> over the domain and the half-spaces <rows_i, x> <= bound_i, from a feasible basis.

    `most` limits the sum of the multiplier that proves the lower bound.
    """
    size, dtype = len(basis.cost), basis.cost.dtype
    unit_columns = jnp.eye(size, dtype=dtype)

    def go_on(state):
        _, _, _, closed, calls = state
        return ~closed & (calls < MOST_CALLS * size)

    def pivot(state):
        """One pivot: the best column enters, found by an LMO; the prices of the rows prove a lower bound."""
        basis, lower, multiplier, _, calls = state
        duals = jnp.linalg.solve(basis.columns.T, basis.cost)
        level, prices = duals[0], -duals[1:]
        safe = jnp.maximum(prices, 0)
        safe = safe / jnp.maximum(jnp.sum(safe) / most, 1)
        tilt = jax.tree.map(lambda leaf: jnp.tensordot(safe, leaf, axes=1), rows)
        vertex = domain.lmo(tree.add(direction, tilt))
        cost, column = vertex.dot(direction), column_of(vertex, rows, bound)
        proven = cost + safe @ column[1:]
        multiplier = jnp.where(proven > lower, safe, multiplier)
        lower = jnp.maximum(proven, lower)

        weights = basis.weights()
        rounding = 8 * jnp.finfo(dtype).eps * safe @ (1 + jnp.abs(bound))
        closed = basis.cost @ weights - lower <= tolerance(dtype) + rounding
        reduced = jnp.append(cost + prices @ column[1:] - level, prices)
        entering = jnp.argmin(reduced)
        column = jnp.where(entering == 0, column, unit_columns[entering])
        slot = _leaving(weights, jnp.linalg.solve(basis.columns, column))
        basis = basis.replace(
            jnp.where(closed, size, slot),
            (entering - 1).astype(basis.kinds.dtype),
            column,
            jnp.where(entering == 0, cost, 0),
            vertex,
        )
        return basis, lower, multiplier, closed, calls + 1

    nothing = jnp.asarray(-jnp.inf, dtype), jnp.zeros(size - 1, dtype)
    state = (basis, *nothing, jnp.asarray(False), jnp.asarray(0))
    basis, lower, multiplier, _, _ = jax.lax.while_loop(go_on, pivot, state)
    weights = basis.weights()
    value = basis.cost @ weights
    return Solution(basis, weights, value, lower, multiplier, jnp.maximum(value - lower, 0))


def _leaving(weights, rates):
    """The column that leaves the basis: the first to reach 0 in weights - step * rates as the step grows.

    Of columns that are nearly tied, the one with the largest rate, for stability (Harris, 1973).
    """
    eps = jnp.finfo(weights.dtype).eps
    blocks = rates > eps**0.75 * jnp.max(jnp.abs(rates))
    rates = jnp.where(blocks, rates, 1)
    longest = jnp.min(jnp.where(blocks, (weights + 4 * eps) / rates, jnp.inf))
    tied = blocks & (weights / rates <= longest)
    return jnp.argmax(jnp.where(tied, rates, -jnp.inf))


@eqx.filter_jit
def find_feasible(domain, rows, bound):
    """A solution with a feasible basis, whose `value` is the least possible excess over all rows.

    If that is positive, the intersection is empty, as the multiplier proves. The excess is one more column, which may
    compensate for any row; it is the only one that costs.
    """
    count, dtype = len(bound), bound.dtype
    vertex = domain.vertex()
    vertices = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count + 1, *leaf.shape)), vertex)
    column = column_of(vertex, rows, bound)
    worst = jnp.argmax(column[1:]) + 1
    columns = jnp.eye(count + 1, dtype=dtype).at[:, 0].set(column)
    basis = Basis(vertices, jnp.arange(-1, count, dtype=jnp.int32), columns, jnp.zeros(count + 1, dtype))
    excess = jnp.full(count + 1, -1, dtype).at[0].set(0)
    slot = jnp.where(column[worst] > 0, worst, count + 1)
    basis = basis.replace(slot, count, excess, 1, vertex)
    zero = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), rows)
    solution = simplex(domain, zero, rows, bound, basis, 1)

    # if the excess is still a column, at 0, a slack takes its place
    slot = jnp.where(jnp.any(solution.basis.kinds == count), jnp.argmax(solution.basis.kinds == count), count + 1)
    shares = jnp.linalg.inv(solution.basis.columns)[slot % (count + 1), 1:]
    slack = jnp.argmax(jnp.abs(shares))
    basis = solution.basis.replace(slot, slack.astype(jnp.int32), jnp.eye(count + 1, dtype=dtype)[slack + 1], 0, vertex)
    return solution._replace(basis=basis, weights=basis.weights())


def column_of(vertex, rows, bound):
    """The column of a vertex: (1, <a_1, v> - b_1, ..., <a_k, v> - b_k)."""
    return jnp.append(1, jax.vmap(vertex.dot)(rows) - bound).astype(bound.dtype)


def tolerance(dtype):
    return max(1e-10, 16 * float(jnp.finfo(dtype).eps))
