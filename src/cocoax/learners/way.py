"""How far to go from a decision to where Auto aims: what a round's losses and constraints say of the way."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.tree import ratio
from ..domains.base import Point
from ..dual.base import Weights
from ..primal.tracking import in_hull
from ..problem.problem import Problem, Round
from .units import Units

_INSIDE = 1e-3  # how far from a pole to stay, over the root of the round
_ROUNDING = 8.0  # half units in the last place of costs, which a bend must exceed


def inside(problem: Problem, aim: Point, start: Point, round: Round, played: Point, rounds) -> Point:
    """`aim`, or a point a little towards the start where this round is not finite at it."""
    loss, values = problem.values(aim, round, played if problem.has_movement else None)
    bad = ~(jnp.isfinite(loss) & jnp.isfinite(values).all())
    return tree.mix(aim, start, jnp.where(bad, _INSIDE / jnp.sqrt(rounds), 0))


def affordable(
    problem: Problem, owed, units: Units, aim: Point, round: Round, played: Point, weights: Weights, rate
) -> Point:
    r"""A point on the way from what was played to `aim` that movement allows.

    A step of the size `rate` towards `aim` that pays for its movement is shorter by rate times the price over the
    length. A constraint that has no gradient at rest, on movement alone, is kept as a budget: what was not used so far,
    and what this round adds, can be spent, and no more.
    """
    loss, values = problem.movement(aim, round, played)
    way = tree.sub(aim, played)
    price = rate * _weighed(weights, loss, values)
    share = jnp.clip(1 - ratio(jnp.maximum(price, 0), tree.dot(way, way)), 0, 1)
    at_rest = problem.values(aim, round, aim)[1]
    of_movement = (units.ages == 0) & (values > 0)
    within = jnp.clip(ratio(-owed - at_rest, values), 0, 1)
    return tree.mix(played, aim, jnp.minimum(share, jnp.where(of_movement, within, 1).min(initial=1)))


def before_it_rises(
    problem: Problem, aim: Point, round: Round, decision: Point, seen, weights: Weights, direction: Point
) -> Point:
    r"""`aim`, or the point on the way from the decision to it at which this round costs least.

    Weighed, it costs $c(0)+s\,c'(0)+s^2b$ at a share s of the way. Loss and constraints in c(0) were `seen`, $c'(0)$ is
    the slope of h (of clipped gradients), and b is what the cost at `aim` leaves. If $c'(0)<0<b$, and b is more than
    rounding, least is $s=-c'(0)/2b$.
    """
    slope = tree.dot(direction, tree.sub(aim, decision))
    loss, values = problem.values(aim, round)
    bend = _weighed(weights, loss - seen[0], values - seen[1]) - slope
    rounding = _ROUNDING * jnp.finfo(bend.dtype).eps * _weighed(weights, jnp.abs(seen[0]), jnp.abs(seen[1]))
    turns = (slope < 0) & (bend > rounding) & (-slope < 2 * bend) & jnp.isfinite(bend)
    lowest = tree.mix(decision, aim, jnp.where(turns, ratio(-slope, 2 * bend), 1))
    return tree.where(turns, in_hull(problem.domain, lowest, aim), aim)  # rounding does not add up over rounds


def _weighed(weights: Weights, loss, values) -> Float[Array, ""]:
    return weights.loss * loss + weights.constraint @ values
