"""What Auto computes in a round by arithmetic: for small sets, each function is one kernel on CPUs."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..core import tree
from ..core.compiling import one_kernel
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from ..dual.base import Weights
from ..dual.robust_pi import RobustControl, RobustPI
from ..primal.distance_bound import DistanceBound, DistanceBoundState
from ..primal.slow_start import SlowStart, SlowStartState
from ..primal.tracking import in_hull
from .averaged import Averaged
from .beside_start import BesideStart
from .coherence import Coherence
from .entropic import Entropic
from .overshoot import Curved, Overshoot
from .units import Clipped, Units

_MOST_BOOST = 10.0


@one_kernel
def clipped(of_loss: Point, of_constraints: Point, caps: Float[Array, " k"]) -> tuple[Any, Any, Any]:
    """Lengths of gradients, factors that make none longer than the longest before, and how long the next ones may be:
    at most twice as long."""
    squares = jax.vmap(lambda gradient: tree.dot(gradient, gradient))(of_constraints)
    return _clipped(jnp.append(tree.dot(of_loss, of_loss), squares), caps)


@one_kernel
def _clipped(squares, caps):
    lengths = jnp.sqrt(squares)
    most = jnp.where(caps > 0, caps, lengths)
    factors = jnp.where(lengths > most, ratio(most, lengths), 1)
    return lengths, factors, jnp.maximum(caps, jnp.minimum(lengths, 2 * most))


class Weighed(NamedTuple):
    """How much each part of the round weighs in the direction h."""

    weights: Weights
    boost: Float[Array, ""]  # how many times longer the step is
    scale: Float[Array, ""]  # one over a length that h seldom exceeds
    slack: Float[Array, ""]  # how far the target may stay outside
    wakes: Bool[Array, ""]  # whether the loss has just got its first gradient


class Aimed(NamedTuple):
    """Where to go."""

    given: Weighed
    control: RobustControl
    units: Units
    coherence: Coherence | None
    direction: Point  # h
    of_constraints: Clipped
    caps: Float[Array, " k"]


def aimed(
    domain: AbstractDomain,
    dual: RobustPI,
    control: RobustControl,
    units: Units,
    coherence: Coherence | None,
    gradients,
    far,
    values,
    caps,
    keep,
) -> Aimed:
    """The direction h, from the gradients of f and of all g. On boxes, `far` has the distances of the coordinates."""
    of_loss, of_constraints = domain.tangent(gradients[0]), jax.vmap(domain.tangent)(gradients[1])
    lengths, factors, caps = clipped(of_loss, of_constraints, caps)
    of_loss = Clipped(of_loss, lengths[0], factors[0])
    of_constraints = Clipped(of_constraints, lengths[1:], factors[1:])
    units = units.with_loss(domain, of_loss, keep)
    if coherence is not None:
        coherence = coherence.observe(domain, of_constraints, units.sampled(keep))
    agreeing = None if coherence is None else coherence.share
    parts = dual, control, units, agreeing, of_loss, of_constraints, far, values, caps, keep
    given, control, changed, direction = directed(*parts)
    return Aimed(given, control, eqx.combine(changed, units), coherence, direction, of_constraints, caps)


@one_kernel
def directed(
    dual: RobustPI,
    control: RobustControl,
    units: Units,
    agreeing: Float[Array, " m"] | None,
    of_loss: Clipped,
    of_constraints: Clipped,
    far,
    values,
    caps,
    keep,
) -> tuple[Weighed, RobustControl, Units, Point]:
    """The weights of loss and constraints, and h."""
    units, squares = units.with_constraints(of_constraints, far, keep)
    lengths, factors = of_constraints.length, of_constraints.factor
    seen = squares, agreeing, lengths, factors, values, caps
    given, control, numbers = _weighed(dual, control, units.numbers, *seen, keep)
    direction = tree.add(
        tree.scale(given.weights.loss * of_loss.factor, of_loss.gradient),
        tree.combine(given.weights.constraint * factors, of_constraints.gradient),
    )
    return given, control, eqx.combine(numbers, units.without_loss), direction


@one_kernel
def _weighed(dual, control, units, squares, agreeing, lengths, factors, values, caps, keep):
    overspent = dual.overspent(control)
    unit, wakes, size, units = units.unit(squares, lengths, factors, overspent, keep)
    control = control.restated(jnp.where(wakes, size, 1))  # until then, the loss's unit was 1
    multiplier, control = dual.control(control, values, unit)
    if agreeing is not None:  # weigh less where gradients do not agree, but all where it is surely overspent
        multiplier = multiplier * jnp.maximum(agreeing, jnp.clip(overspent - 1, 0, 1))
    strength = 1 + ratio(multiplier, unit).sum()
    weights = Weights(1 / strength, multiplier / strength)
    boost = 1 + dual.urgency(control).max(initial=0) * (jnp.minimum(strength, _MOST_BOOST) - 1)
    usual = weights.loss * caps[0] + (weights.constraint * caps[1:]).sum()
    slack = 1 / jnp.sqrt(jnp.sqrt(units.rounds))
    return Weighed(weights, boost, ratio(jnp.ones_like(usual), usual), slack, wakes), control, units


class Stepped(NamedTuple):
    """How far to go."""

    update: Point  # what is added to the target
    rate: Float[Array, ""]  # eta; on boxes, that of the whole step
    overshoot: Overshoot
    square: Float[Array, ""]  # |h|^2


@one_kernel
def stepped(
    rule: SlowStart,
    state: SlowStartState,
    overshoot: Overshoot,
    direction: Point,
    bent: Point,
    point: Point,
    width: Float[Array, ""],
    given: Weighed,
    keep: Float[Array, ""],
    rounds: Float[Array, ""],
) -> tuple[Stepped, SlowStartState]:
    """(the step, the rule's new state). `bent` is the product of a Hessian with `given.scale` h."""
    moved = tree.sub(point, state.start)
    square, cost, along = tree.dots(direction, [direction, moved, bent])
    along, way = _curvature(given.scale * along), (width, cost, tree.dot(moved, moved))
    numbers = rule, state.numbers, overshoot, square, along, way, given, keep, rounds
    factor, back, rate, overshoot, numbers = _stepped(*numbers)
    update = tree.add(tree.scale(-factor, direction), tree.scale(-back, moved))
    return Stepped(update, rate, overshoot, square), numbers


@one_kernel
def _stepped(rule, state, overshoot, square, along, way, given, keep, rounds):
    width, cost, moved = way
    state, length = state.forget_costs(given.wakes), jnp.sqrt(square)
    curvature = ratio(along, (given.scale * length) ** 2)
    ahead = ratio(length, curvature)
    rate, back, state = rule.advanced(width, state, cost, length, jnp.sqrt(moved), ahead)
    overshoot = _begun_anew(overshoot, given.wakes).observe(curvature, keep, rounds)
    return given.boost * overshoot.factor(given.boost * rate) * rate, back, rate, overshoot, state


@one_kernel
def advanced(
    rule: DistanceBound, state: DistanceBoundState, direction, point, widths, wakes
) -> tuple[Point, Point, DistanceBoundState]:
    """On a box: (eta, the step eta h, the rule's new state)."""
    moved = tree.sub(point, state.start)
    eta, state = rule.advanced(widths, state.forget_costs(wakes), direction, moved)
    return eta, jax.tree.map(jnp.multiply, eta, direction), state.changing


@one_kernel
def stepped_on_box(overshoot: Overshoot, direction, eta, step, bent, given: Weighed, rounds) -> Stepped:
    """How far to go; `bent` is the product of a Hessian with `step`, eta h."""
    square, gain = tree.dots(direction, [direction, step])
    curved = Curved(square, gain, ratio(_curvature(tree.dot(step, bent)), gain))
    factor, rate, overshoot = _shortened(overshoot, curved, given.boost, given.wakes, rounds)
    update = jax.tree.map(lambda eta, h: -factor * (eta * h), eta, direction)
    return Stepped(update, rate, overshoot, curved.square)


@one_kernel
def _shortened(overshoot, curved, boost, wakes, rounds):
    rate, overshoot = _begun_anew(overshoot, wakes).observe_on_box(curved, rounds)
    return boost * overshoot.factor(boost * rate), rate, overshoot


def _curvature(along):
    return jnp.maximum(tree.finite(along), 0)


def _begun_anew(overshoot: Overshoot, wakes) -> Overshoot:
    return Overshoot(jnp.where(wakes, 0, overshoot.curvature))


class Mixtures(NamedTuple):
    """What the tracker's point is mixed with: on simplices entropy, of vectors their mean and the start."""

    averaged: Averaged | None
    entropic: Entropic | None
    beside: BesideStart | None

    def forget_costs(self, when) -> "Mixtures":
        """Begin sums of costs anew, where gradients have got another unit."""
        averaged, entropic, beside = self
        return Mixtures(
            averaged and averaged.forget_costs(when),
            entropic and entropic.forget_costs(when),
            beside and beside.forget_costs(when),
        )


def mixed(
    domain: AbstractDomain, mixtures: Mixtures, start: Point, old: Point, new: Point, *others
) -> tuple[Mixtures, Units, Point]:
    """What is played after a move of the tracker's point from `old` to `new`; rounding does not lead out of X."""
    mixtures, units, aim = _mixed(mixtures, start, old, new, *others)
    averaged = mixtures.averaged
    if averaged is not None:  # over many rounds its rounding adds up
        mixtures = mixtures._replace(averaged=Averaged(in_hull(domain, averaged.mean, new), averaged.both))
    return mixtures, units, aim if domain.intervals() is None else domain.project(aim)


@one_kernel
def _mixed(
    mixtures: Mixtures,
    start: Point,
    old: Point,
    new: Point,
    units: Units,
    of_constraints: Clipped,
    overspent,
    costs,
    wakes,
    keep,
) -> tuple[Mixtures, Units, Point]:
    """`mixed`, but for the domain, in a round with these costs."""
    averaged, entropic, beside = mixtures.forget_costs(wakes)
    point, aim = old, new
    if averaged is not None:
        point = averaged.mixed_with(old)
        averaged = averaged.observe(old, costs, keep).moved(new, units.rounds)
        aim = averaged.mixed_with(new)
    if entropic is not None:
        before, entropic = entropic, entropic.observe(point, costs, keep)
        point, aim = before.mixed_with(point), entropic.mixed_with(aim)
    if beside is not None:
        beside = beside.observe(tree.dot(costs, tree.sub(point, start)), keep)
        aim = beside.mixed_with(aim, start)
    units = units.moved(old, new, of_constraints, overspent, keep, always=averaged is not None)
    return Mixtures(averaged, entropic, beside), units.without_loss, aim
