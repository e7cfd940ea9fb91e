"""The learner for those who know no constants: `Auto`."""

import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.facts import Facts
from ..core.parameters import discount, rounds_remembered
from ..core.tree import ratio
from ..domains import ProbabilitySimplex
from ..domains.base import Point
from ..dual.base import Weights
from ..dual.robust_pi import RobustControl, RobustPI
from ..primal.base import cost
from ..primal.slow_start import SlowStart, SlowStartState
from ..primal.tracking import Tracker
from .base import AbstractLearner, first_decision, outcome, point_played
from .entropic import Entropic
from .units import Clipped, Units

_ATOMS = 8
_MOST_BOOST = 10.0
_INSIDE = 1e-3  # how far from a pole to stay, over the root of the round


class _State(eqx.Module):
    tracker: Tracker
    step: SlowStartState
    control: RobustControl
    units: Units
    curvature: Float[Array, ""]  # the largest along a step; on boxes, the mean
    caps: tuple[Float[Array, ""], Float[Array, " m"]]  # of |grad f| and of each |grad g|
    entropic: Entropic | None  # on simplices
    chosen: Point | None  # the decision, where it is another than the tracker's point


class TrackedPI2(AbstractLearner):
    r"""TrackedPI, version 2: no horizon, no constants, no units; one LMO a round, at any time.

    Gradients are first freed of what does not matter on the domain (`domain.tangent`), and clipped to the longest
    before, which at most doubles a round. Then

    * each constraint has a unit of its multiplier (`learners.units`), in which `dual.RobustPI` controls the weights u;
    * the gradient h of $(f+\sum_iu_ig_i)/(1+\sum_iu_i/\ell_i)$ drives a target y by distance over gradients that begins
      small (`primal.SlowStart`; on boxes for each coordinate), shortened to $(1-e^{-o})/o$ where o is how far the step
      overshoots by the largest curvature seen along a step (on boxes, by the mean one). While a constraint is *surely*
      broken the step is up to $1+\sum_iu_i/\ell_i\le10$ times longer;
    * x follows y by one LMO (`primal.Tracked`, 8 atoms); y may stay $n^{-1/4}$ diameters outside what that LMO proves
      of the set, n being the number of rounds;
    * on a probability simplex, x is mixed with an entropic decision by what both would have cost (AdaHedge twice);
    * where the loss or a constraint is not finite at the next decision (of vectors), it stays a little inside. Where
      they count movement, it goes only as far towards x as their price of moving allows; a limit on movement alone is
      a budget, of which never more is spent than was saved.

    A round costs one LMO, one gradient of f and of each g, one product with a Hessian, and one more value of each.

    **Arguments:**

    - `memory`: over how many rounds to look back; all by default. With a memory it follows prices and budgets that
      drift; without, it converges where they do not.

    *Proven:* decisions lie in the set and never use the future. *Measured only:* everything else, in the arena
    (`cocoax race arena`). For a hard promise on the violation, wrap it in `Capped`.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(3),
    ...     loss=lambda x, r: jnp.vdot(r, x),
    ...     constraint=lambda x, r: x[2] - 0.25,
    ... )
    >>> rounds = jnp.tile(jnp.array([3.0, 2.0, 1.0]), (300, 1))
    >>> game = cx.play(problem, Auto(), rounds, key=jax.random.key(0))
    >>> abs(game.decision).round(1).tolist()
    [0.0, 0.8, 0.2]
    """

    facts = Facts(
        cost="1 LMO, 2 gradients",
        guarantee="no constants, no horizon, measured: see the arena",
        cites=("cocoax-trackedpi-2",),
    )

    version: ClassVar[int] = 2

    dual: RobustPI
    step_rule: SlowStart
    memory: Float[Array, ""] | None

    def __init__(self, memory: Any = None):
        self.dual = RobustPI(memory=memory)
        self.step_rule = SlowStart(memory=memory)
        self.memory = rounds_remembered(memory)

    @property
    def factored(self):
        return True

    def init(self, problem, *, key, horizon=None, start=None):
        domain, start = problem.domain, first_decision(problem, start)
        zero = jnp.zeros((), tree.dtype(start))
        return _State(
            Tracker.begin(domain, start, _ATOMS),
            self.step_rule.init(domain, start),
            self.dual.rest(problem.constraints, zero.dtype),
            Units.begin(problem, start),
            zero,
            (zero, jnp.zeros(problem.constraints, zero.dtype)),
            Entropic.begin(domain.total, start) if isinstance(domain, ProbabilitySimplex) else None,
            start if problem.has_movement or _is_of_vectors(start) else None,
        )

    def decision(self, state):
        return state.tracker.point if state.chosen is None else state.chosen

    def observe(self, problem, state, round, *, played=None):
        domain, tracker = problem.domain, state.tracker
        played = point_played(played, self.decision(state))
        loss, values = problem.values(played, round)
        gradients = problem.gradients(played, round)
        keep = discount(self.memory, loss.dtype)
        clip = functools.partial(_clipped, domain)
        of_loss, loss_cap = clip(gradients[0], keep * state.caps[0])
        of_constraints, caps = jax.vmap(clip)(gradients[1], keep * state.caps[1])
        clips = of_loss.factor, of_constraints.factor

        overspent = self.dual.overspent(state.control)
        unit, wakes, size, units = state.units.observe(domain, of_loss, of_constraints, state.step.far, overspent, keep)
        control = state.control.restated(jnp.where(wakes, size, 1))  # until then, the loss's unit was 1
        curvature = jnp.where(wakes, 0, state.curvature)
        multiplier, control = self.dual.control(control, values, unit)
        strength = 1 + ratio(multiplier, unit).sum()
        weights = Weights(1 / strength, multiplier / strength)
        direction = tree.add(
            tree.scale(weights.loss * clips[0], of_loss.gradient),
            tree.combine(weights.constraint * clips[1], of_constraints.gradient),
        )

        step, back, distances = self.step_rule.advance(domain, state.step.forget_costs(wakes), direction, tracker.point)
        urgency = self.dual.urgency(control).max(initial=0)
        boost = 1 + urgency * (jnp.minimum(strength, _MOST_BOOST) - 1)
        square, gain = tree.dot(direction, direction), tree.dot(step, direction)
        rate = ratio(gain, square)
        shape = tree.scale(ratio(jnp.ones_like(gain), jnp.sqrt(gain)), step)
        hessian = problem.curvature(played, round, weights.loss, weights.constraint)
        along = ratio(jnp.maximum(tree.finite(tree.dot(shape, hessian(shape))), 0), rate)
        if domain.intervals() is None:
            curvature = jnp.maximum(keep * curvature, along)
        else:
            curvature = curvature + jnp.where(square > 0, 2 / (units.rounds + 1), 0) * (along - curvature)
        overshoot = boost * curvature * rate
        factor = boost * jnp.where(overshoot > 0, ratio(-jnp.expm1(-overshoot), overshoot), 1)
        followed = tracker.follow(
            domain, tree.scale(-1.0, tree.add(tree.scale(factor, step), back)), slack=units.rounds**-0.25
        )

        entropic = state.entropic
        if entropic is not None:
            entropic = entropic.observe(tracker.point, tree.scale(boost, direction), keep)
        units = units.moved(tree.sub(followed.point, tracker.point), of_constraints)
        followed = followed.centred(domain, distances.start)
        chosen = state.chosen
        if chosen is not None:
            aim = followed.point if entropic is None else entropic.mixed_with(followed.point)
            aim = _inside(problem, aim, distances.start, round, played, units.rounds)
            chosen = aim
            if problem.has_movement:
                share = _share_of_way(problem, control.owed, units, aim, round, played, weights, rate)
                chosen = tree.mix(played, aim, share)
        state = _State(followed, distances, control, units, curvature, (loss_cap, caps), entropic, chosen)
        finite = jnp.isfinite(square) & jnp.isfinite(caps).all()
        return state, outcome(loss, values, weights, cost(lmo_calls=1, gradient_calls=2, finite=finite))


def _is_of_vectors(point: Point) -> bool:
    """Whether it is made of vectors: of matrices, no second copy is kept."""
    return not tree.is_element(point) and all(jnp.ndim(leaf) <= 1 for leaf in jax.tree.leaves(point))


def _inside(problem, aim: Point, start: Point, round, played, rounds) -> Point:
    """`aim`, or a point a little towards the start where this round is not finite at it."""
    loss, values = problem.values(aim, round, played if problem.has_movement else None)
    bad = ~(jnp.isfinite(loss) & jnp.isfinite(values).all())
    return tree.mix(aim, start, jnp.where(bad, _INSIDE * rounds**-0.5, 0))


def _share_of_way(problem, owed, units: Units, aim, round, played, weights, rate) -> Float[Array, ""]:
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
    affordable = jnp.clip(ratio(-owed - at_rest, values), 0, 1)
    return jnp.minimum(share, jnp.where(of_movement, affordable, 1).min(initial=1))


def _clipped(domain, gradient: Point, cap) -> tuple[Clipped, Float[Array, ""]]:
    """The gradient's tangent with a factor that makes it no longer than the longest before, and how long the next one
    may be: at most twice as long. Infinite entries, as those of a root at 0, count as that long."""
    if not tree.is_element(gradient):
        finite = jnp.where(cap > 0, cap, 1)
        gradient = jax.tree.map(lambda x: jnp.where(jnp.isinf(x), jnp.sign(x) * finite, x), gradient)
    gradient = domain.tangent(gradient)
    length = tree.norm(gradient)
    most = jnp.where(cap > 0, cap, length)
    factor = jnp.where(length > most, ratio(most, length), 1)
    return Clipped(gradient, length, factor), jnp.maximum(cap, jnp.minimum(length, 2 * most))


Auto = TrackedPI2
"""The learner to begin with: the latest version of TrackedPI."""
