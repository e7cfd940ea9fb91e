"""A point of a set that follows a moving target by one LMO call a round: projection without projecting."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _tree as tree
from .._tree import ratio
from ..domains.base import AbstractDomain, AbstractVertex, Point
from .base import first_guess

_SMALLEST = 1e-6  # weight of a rest that is moved


class Tracker(eqx.Module):
    """x in X, the target y that it follows, and x's latest vertices with their weights.

    x = rest + sum_k weights_k v_k, where `rest` is what no kept vertex accounts for, a point of X times
    1 - sum weights.
    """

    point: Point  # x
    target: Point  # y
    vertex: AbstractVertex  # last LMO answer, the next one's guess
    atoms: AbstractVertex | None  # v_1..v_K, stacked
    weights: Float[Array, " K"]
    rest: Point

    @classmethod
    def begin(cls, domain: AbstractDomain, start: Point, atoms: int, warm: "Tracker | None" = None) -> "Tracker":
        vertex = first_guess(domain, start) if warm is None else warm.vertex
        weights = jnp.zeros(atoms, tree.dtype(start))
        if not atoms:
            return cls(start, start, vertex, None, weights, start)
        stack = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], atoms, axis=0), vertex)
        return cls(start, start, vertex, stack, weights, start)

    def follow(self, domain: AbstractDomain, target: Point, slack: Any = 0.0) -> "Tracker":
        r"""Pull the target y towards X, and x towards the target, with one LMO call.

        With $C=x-y$, $v=\arg\min_X\langle C,v\rangle$ and $gap=\langle C,x-v\rangle$, the set lies in
        $\{z: \langle C,z\rangle\ge\langle C,x\rangle-gap\}$. Where y does not, it is projected onto that half-space,
        but for `slack` times the diameter; then x makes a Frank-Wolfe step with exact line search towards y.
        """
        away = tree.sub(self.point, target)
        square = tree.dot(away, away)
        vertex = domain.lmo(away, self.vertex)
        vertex = tree.where(square > 0, vertex, self.vertex)
        move = tree.sub(vertex.dense(), self.point)
        gap = jnp.maximum(-tree.dot(away, move), 0)

        length = jnp.sqrt(square)
        excess = ratio(square - gap, length) - slack * domain.diameter(2).astype(square.dtype)
        pull = ratio(jnp.maximum(excess, 0), length)
        step = jnp.clip(ratio((1 - pull) * gap, tree.dot(move, move)), 0, 1)
        target = tree.add(target, tree.scale(pull, away))
        if self.atoms is None:
            point = vertex.mix(self.point, step)
            return Tracker(point, target, vertex, None, self.weights, point)._fill(domain)
        remembered, place = self._remember(vertex, step, target)
        return remembered._exchange(place)._fill(domain)

    def _remember(self, vertex, step, target) -> "tuple[Tracker, Array]":
        """Step to a vertex, in the place of the lightest unless it is kept already; that one becomes rest."""
        same = jax.vmap(lambda atom: _equal(atom, vertex))(self.atoms)
        place = jnp.where(same.any(), jnp.argmax(same), jnp.argmin(self.weights))
        old = _at(self.atoms, place)
        leaving = jnp.where(same.any(), 0, self.weights[place])
        rest = tree.add(self.rest, tree.scale(leaving, old.dense()))
        weights = self.weights.at[place].add(-leaving) * (1 - step)
        atoms = jax.tree.map(lambda stack, leaf: stack.at[place].set(leaf), self.atoms, vertex)
        point, weights = vertex.mix(self.point, step), weights.at[place].add(step)
        return Tracker(point, target, vertex, atoms, weights, tree.scale(1 - step, rest)), place

    def _exchange(self, newest) -> "Tracker":
        """Move weight from the worst part of x to the best kept one, by exact line search: no LMO.

        The newest vertex gives nothing: after the line search towards it, it costs as much as all parts on average,
        and where there are but two, only rounding would tell which is worse.
        """
        assert self.atoms is not None
        away, left = tree.sub(self.point, self.target), 1 - self.weights.sum()
        outside = left > _SMALLEST  # whether there is a rest
        costs = jax.vmap(lambda atom: atom.dot(away))(self.atoms)
        of_rest = ratio(tree.dot(away, self.rest), jnp.where(outside, left, 0))
        held = (self.weights > 0).at[newest].set(False)
        best, worst = jnp.argmin(costs), jnp.argmax(jnp.where(held, costs, -jnp.inf))
        from_rest = outside & (of_rest >= jnp.where(held[worst], costs[worst], -jnp.inf))

        source = tree.where(
            from_rest, tree.scale(ratio(jnp.ones_like(left), left), self.rest), _at(self.atoms, worst).dense()
        )
        available = jnp.where(from_rest, left, jnp.where(held[worst], self.weights[worst], 0))
        gain = jnp.where(from_rest, of_rest, costs[worst]) - costs[best]
        move = tree.sub(_at(self.atoms, best).dense(), source)
        amount = jnp.clip(ratio(gain, tree.dot(move, move)), 0, available)
        rest = tree.scale(1 - jnp.where(from_rest, ratio(amount, left), 0), self.rest)
        weights = self.weights.at[best].add(amount).at[worst].add(jnp.where(from_rest, 0, -amount))
        point = tree.add(self.point, tree.scale(amount, move))
        return Tracker(point, self.target, self.vertex, self.atoms, weights, rest)

    def _fill(self, domain: AbstractDomain) -> "Tracker":
        """Move what no kept vertex accounts for within the ball inside X, if one is known: no LMO either."""
        if domain.inradius() is None:
            return self
        left, lag = 1 - self.weights.sum(), tree.sub(self.target, self.point)
        wanted = tree.scale(ratio(jnp.ones_like(left), left), tree.add(self.rest, lag))
        move = tree.sub(tree.scale(left, domain.inner(wanted)), self.rest)
        step = jnp.clip(ratio(tree.dot(lag, move), tree.dot(move, move)), 0, 1)
        step = jnp.where(left > _SMALLEST, step, 0)
        point, rest = (tree.add(each, tree.scale(step, move)) for each in (self.point, self.rest))
        return Tracker(point, self.target, self.vertex, self.atoms, self.weights, rest)


def _at(atoms, index) -> AbstractVertex:
    return jax.tree.map(lambda leaf: leaf[index], atoms)


def _equal(one, other):
    return jnp.stack([jnp.all(a == b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)]).all()
