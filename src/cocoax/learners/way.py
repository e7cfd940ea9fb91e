"""How far to go from what was played to where Auto aims: what a round's losses and constraints say of the way."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.tree import ratio
from ..domains.base import Point
from ..dual.base import Weights
from ..problem.problem import Problem
from .units import Units

_INSIDE = 1e-3  # how far from a pole to stay, over the root of the round


def inside(problem, aim: Point, start: Point, round, played, rounds) -> Point:
    """`aim`, or a point a little towards the start where this round is not finite at it."""
    loss, values = problem.values(aim, round, played if problem.has_movement else None)
    bad = ~(jnp.isfinite(loss) & jnp.isfinite(values).all())
    return tree.mix(aim, start, jnp.where(bad, _INSIDE / jnp.sqrt(rounds), 0))


def affordable(problem, owed, units: Units, aim, round, played, weights, rate) -> Float[Array, ""]:
    r"""How much of the way from `played` to `aim` to go.

    A step of the size `rate` towards `aim` that pays for its movement is shorter by rate times the price over the
    length. A constraint that has no gradient at rest, on movement alone, is kept as a budget: what was not used so far,
    and what this round adds, can be spent, and no more.
    """
    loss, values = problem.movement(aim, round, played)
    way = tree.sub(aim, played)
    price = rate * (weights.loss * loss + weights.constraint @ values)
    share = jnp.clip(1 - ratio(jnp.maximum(price, 0), tree.dot(way, way)), 0, 1)
    at_rest = problem.values(aim, round, aim)[1]
    of_movement = (units.ages == 0) & (values > 0)
    within = jnp.clip(ratio(-owed - at_rest, values), 0, 1)
    return jnp.minimum(share, jnp.where(of_movement, within, 1).min(initial=1))


def before_it_rises(
    problem: Problem, aim: Point, round, decision: Point, played: Point, now, weights: Weights, direction: Point
) -> Point:
    r"""`aim`, or the point on the way from the decision to it at which this round costs least.

    Weighed, it costs $c(0)+s\,c'(0)+s^2b$ at a share s of the way, where b is seen from the cost at `aim`. Where
    $c'(0)<0<b$, least is $s=-c'(0)/2b$. It is `aim` if another point than the decision was played, and c(0) not seen.
    """
    way = tree.sub(aim, decision)
    slope = tree.dot(direction, way)
    loss, values = problem.values(aim, round)
    bend = weights.loss * (loss - now[0]) + weights.constraint @ (values - now[1]) - slope
    falls = (slope < 0) & (bend > 0) & ~tree.is_nonzero(tree.sub(played, decision))
    return tree.mix(decision, aim, jnp.where(falls, jnp.clip(ratio(-slope, 2 * bend), 0, 1), 1))
