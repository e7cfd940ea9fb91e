"""What Auto computes in a round from a few numbers: each function is one kernel on CPUs."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..core.compiling import one_kernel
from ..core.tree import ratio
from ..dual.base import Weights
from ..dual.robust_pi import RobustControl, RobustPI
from ..primal.slow_start import SlowStart, SlowStartState
from .overshoot import Curved, Overshoot
from .units import Squares, Units

_MOST_BOOST = 10.0


@one_kernel
def clipped(squares: Float[Array, " k"], caps: Float[Array, " k"]) -> tuple[Any, Any, Any]:
    """Lengths of gradients, factors that make none longer than the longest before, and how long the next ones may be:
    at most twice as long."""
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


@one_kernel
def weighed(
    dual: RobustPI, control: RobustControl, units: Units, squares: Squares | None, lengths, factors, values, caps, keep
) -> tuple[Weighed, RobustControl, Units]:
    """The weights of loss and constraints, given squared lengths of sums of gradients, lengths and factors of the
    constraints' gradients, the constraints and `caps`."""
    unit, wakes, size, units = units.unit(squares, lengths, factors, dual.overspent(control), keep)
    control = control.restated(jnp.where(wakes, size, 1))  # until then, the loss's unit was 1
    multiplier, control = dual.control(control, values, unit)
    strength = 1 + ratio(multiplier, unit).sum()
    weights = Weights(1 / strength, multiplier / strength)
    boost = 1 + dual.urgency(control).max(initial=0) * (jnp.minimum(strength, _MOST_BOOST) - 1)
    usual = weights.loss * caps[0] + (weights.constraint * caps[1:]).sum()
    slack = 1 / jnp.sqrt(jnp.sqrt(units.rounds))
    return Weighed(weights, boost, ratio(jnp.ones_like(usual), usual), slack, wakes), control, units


class Stepped(NamedTuple):
    """How far to go."""

    factor: Float[Array, ""]  # -factor h is added to the target; on boxes, -factor eta h
    rate: Float[Array, ""]  # eta; on boxes, that of the whole step
    overshoot: Overshoot


@one_kernel
def stepped(
    rule: SlowStart, state: SlowStartState, overshoot: Overshoot, curved: Curved, way: Any, given: Weighed, keep, rounds
) -> tuple[Stepped, Float[Array, ""], SlowStartState]:
    """(the step, what share to take back of the way from the start, the rule's new state).

    `way` has the diameter, the inner product of h and the way from the start, and the square of that way.
    """
    width, cost, square = way
    state = state.forget_costs(given.wakes)
    rate, back, state = rule.advanced(width, state, cost, jnp.sqrt(curved.square), jnp.sqrt(square))
    overshoot = _begun_anew(overshoot, given.wakes).observe(curved, keep, rounds)
    return Stepped(given.boost * overshoot.factor(given.boost * rate) * rate, rate, overshoot), back, state


@one_kernel
def stepped_on_box(overshoot: Overshoot, curved: Curved, given: Weighed, rounds) -> Stepped:
    rate, overshoot = _begun_anew(overshoot, given.wakes).observe_on_box(curved, rounds)
    return Stepped(given.boost * overshoot.factor(given.boost * rate), rate, overshoot)


def _begun_anew(overshoot: Overshoot, wakes) -> Overshoot:
    return Overshoot(jnp.where(wakes, 0, overshoot.curvature))
