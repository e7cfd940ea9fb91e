"""A point of a set that follows a moving target, with one LMO call a round instead of a projection."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import tree
from ..core.tree import ratio
from ..domains.base import AbstractDomain, AbstractVertex, Point
from ..domains.span import AbstractSpan
from .base import first_guess

_SMALLEST = 1e-6  # weight of a rest that is moved


class Tracker(eqx.Module):
    """x in X, how far it is from the target y that it follows, and x's latest vertices with their weights.

    x = left rest + sum_k weights_k v_k, where the point `rest` of X stands for all vertices that are not
    stored, and all weights sum to 1.
    """

    point: Point  # x
    away: Point  # x - y, which has digits that y has not when it is small
    vertex: AbstractVertex  # last LMO answer, the next one's guess
    atoms: AbstractVertex  # v_1..v_K, stacked
    weights: Float[Array, " K"]
    rest: Point
    left: Float[Array, ""]

    @classmethod
    def begin(cls, domain: AbstractDomain, start: Point, atoms: int, warm: "Tracker | None" = None) -> "Tracker":
        vertex = first_guess(domain, start) if warm is None else warm.vertex
        stack = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], atoms, axis=0), vertex)
        dtype = tree.dtype(start)
        return cls._of(
            domain, tree.zeros_like(start), vertex, stack, jnp.zeros(atoms, dtype), start, jnp.ones((), dtype)
        )

    @classmethod
    def _of(cls, domain, away, vertex, atoms, weights, rest, left, point=None) -> "Tracker":
        """Truncate the parts as the domain does, and compute x from them again: rounding never leads out of X."""
        weights, left = _shares(weights, left)
        away, rest = domain.truncate(away), domain.truncate(rest, 1.0)
        if point is None:
            point = tree.add(tree.scale(left, rest), atoms.combine(weights)) if weights.size else rest
        return cls(point, away, vertex, atoms, weights, rest, left)

    @property
    def target(self) -> Point:
        """y."""
        return tree.sub(self.point, self.away)

    def follow(self, domain: AbstractDomain, update: Point, slack: Any = 0.0, centre: Point | None = None) -> "Tracker":
        r"""Add `update` to the target y, pull it towards X, and x towards it, with one LMO call.

        With $C=x-y$, $v=\arg\min_X\langle C,v\rangle$ and $gap=\langle C,x-v\rangle$, the set lies in
        $\{z: \langle C,z\rangle\ge\langle C,x\rangle-gap\}$. Where y does not, it is projected onto that half-space,
        but for `slack` times the diameter; then x makes a Frank-Wolfe step with exact line search towards y. Given
        `centre`, a point of X, the rest stays in the affine hull of X: so rounding does not add up over rounds.
        """
        away = tree.sub(self.away, update)
        square = tree.dot(away, away)
        vertex = domain.lmo(away, self.vertex)
        vertex = tree.where(square > 0, vertex, self.vertex)
        span = domain.span((away, self.rest), _stacked(self.atoms, vertex))
        away, rest = span.points
        atoms, weights, left = self.atoms, self.weights, self.left
        newest = weights.size
        point = tree.add(tree.scale(left, rest), span.sum(jnp.append(weights, 0)))
        move = tree.sub(span.vertex(newest), point)
        gap = jnp.maximum(-span.dot(away, move), 0)

        length = jnp.sqrt(square)
        slack = jnp.asarray(slack, square.dtype) * jnp.asarray(domain.diameter(2), square.dtype)
        excess = ratio(square - gap, length) - slack
        pull = ratio(jnp.maximum(excess, 0), length)
        step = jnp.clip(ratio((1 - pull) * gap, span.square(move)), 0, 1)
        walk = _Walk(span, tree.scale(1 - pull, away), weights, jnp.arange(newest), rest, left).moved(step, move)
        if weights.size:
            same = jax.vmap(lambda atom: _equal(atom, vertex))(atoms)
            place = jnp.where(same.any(), jnp.argmax(same), jnp.argmin(weights))
            leaving = jnp.where(same.any(), 0, weights[place])
            walk = walk.remembered(place, leaving, step).exchanged(place)
            atoms = jax.tree.map(lambda stack, leaf: stack.at[place].set(leaf), atoms, vertex)
        else:  # all of x is rest
            walk = walk._replace(rest=tree.add(rest, tree.scale(step, move)))
        walk = walk.filled(domain)
        at_once = [walk.point()] if weights.size and span.at_once else []
        away, rest, *point = span.written(walk.away, walk.rest, *at_once)
        new = Tracker._of(domain, away, vertex, atoms, walk.weights, rest, walk.left, *point)
        if centre is None:
            return new
        return eqx.tree_at(lambda tracker: tracker.rest, new, in_hull(domain, new.rest, centre))


def in_hull(domain: AbstractDomain, point: Point, centre: Point) -> Point:
    """The point without what rounding led out of the affine hull of X, in which `centre` lies."""
    if type(domain).tangent is AbstractDomain.tangent:  # all of space
        return point
    return tree.add(centre, domain.tangent(tree.sub(point, centre)))


class _Walk(NamedTuple):
    """x and x - y during a round, in coordinates of the span."""

    span: AbstractSpan
    away: Any
    weights: Float[Array, " K"]
    places: Int[Array, " K"]  # in the span, of what they weigh
    rest: Any
    left: Float[Array, ""]

    def point(self) -> Any:
        """x."""
        weights, left = _shares(self.weights, self.left)
        of_atoms = self.span.sum(jnp.zeros(len(weights) + 1, weights.dtype).at[self.places].set(weights))
        return tree.add(tree.scale(left, self.rest), of_atoms)

    def moved(self, step, move) -> "_Walk":
        return self._replace(away=tree.add(self.away, tree.scale(step, move)))

    def remembered(self, place, leaving, step) -> "_Walk":
        """After a step towards the newest vertex: store it in the place of another one, which joins the rest."""
        rest = tree.mix(self.rest, self.span.vertex(place), ratio(leaving, self.left + leaving))
        weights = (1 - step) * self.weights.at[place].set(self.weights[place] - leaving)
        weights = weights.at[place].set(weights[place] + step)
        places = self.places.at[place].set(weights.size)  # the newest is the last
        return self._replace(weights=weights, places=places, rest=rest, left=(1 - step) * (self.left + leaving))

    def exchanged(self, place) -> "_Walk":
        """Move weight from the worst part of x to the best stored vertex, by exact line search: no LMO.

        The newest vertex gives nothing: after the line search towards it, it costs as much as all parts on average,
        and if there are only two, rounding alone would decide which is worse.
        """
        span, weights, places, rest, left = self.span, self.weights, self.places, self.rest, self.left
        outside = left > _SMALLEST  # whether there is a rest
        costs = span.products(self.away)[places]
        of_rest = jnp.where(outside, span.dot(self.away, rest), 0)
        may_give = (weights > 0).at[place].set(False)
        best, worst = jnp.argmin(costs), jnp.argmax(jnp.where(may_give, costs, -jnp.inf))
        from_rest = outside & (of_rest >= jnp.where(may_give[worst], costs[worst], -jnp.inf))

        source = tree.where(from_rest, rest, span.vertex(places[worst]))
        available = jnp.where(from_rest, left, jnp.where(may_give[worst], weights[worst], 0))
        gain = jnp.where(from_rest, of_rest, costs[worst]) - costs[best]
        move = tree.sub(span.vertex(places[best]), source)
        amount = jnp.clip(ratio(gain, span.square(move)), 0, available)
        left = left - jnp.where(from_rest, amount, 0)
        weights = weights.at[best].set(weights[best] + amount)
        weights = weights.at[worst].set(weights[worst] - jnp.where(from_rest, 0, amount))
        return self.moved(amount, move)._replace(weights=weights, left=left)

    def filled(self, domain: AbstractDomain) -> "_Walk":
        """Move the rest within the ball inside X, if the domain knows one: no LMO either."""
        if domain.inradius() is None:
            return self
        span, rest, left = self.span, self.rest, self.left
        goal = tree.sub(rest, tree.scale(ratio(jnp.ones_like(left), left), self.away))
        move = tree.sub(span.inner(domain, goal), rest)
        step = jnp.clip(ratio(-span.dot(self.away, move), left * span.square(move)), 0, 1)
        step = jnp.where(left > _SMALLEST, step, 0)
        return self.moved(step * left, move)._replace(rest=tree.add(rest, tree.scale(step, move)))


def _equal(one, other):
    return jnp.stack([jnp.all(a == b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)]).all()


def _stacked(atoms, last):
    return jax.tree.map(lambda stack, leaf: jnp.concatenate([stack, leaf[None]]), atoms, last)


def _shares(weights, left):
    total = left + weights.sum()
    return weights / total, left / total
