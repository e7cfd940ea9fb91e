"""`Auto`, the learner for those who know no constants: version 2 of TrackedPI."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check, tree
from ..core.facts import Facts
from ..core.parameters import discount, rounds_remembered
from ..core.tree import ratio
from ..domains import ProbabilitySimplex
from ..domains.base import Point
from ..dual.base import Weights
from ..dual.robust_pi import RobustControl, RobustPI
from ..errors import LearnerError
from ..primal.base import cost
from ..primal.distance_bound import DistanceBound, DistanceBoundState
from ..primal.slow_start import SlowStart, SlowStartState
from ..primal.tracking import Tracker
from ..problem.poles import may_have_poles
from .averaged import Averaged
from .base import AbstractLearner, first_decision, outcome, point_played
from .beside_start import BesideStart
from .coherence import Coherence
from .entropic import Entropic
from .overshoot import Overshoot
from .replays import Replays, shapes
from .units import Units
from .way import affordable, before_it_rises, inside

_ATOMS = 8
_MOST_BOOST = 10.0


class _State(eqx.Module):
    tracker: Tracker
    step: SlowStartState | DistanceBoundState
    control: RobustControl
    units: Units
    coherence: Coherence | None
    overshoot: Overshoot
    caps: Float[Array, " k"]  # of |grad f| and of each |grad g|
    averaged: Averaged | None
    entropic: Entropic | None
    beside: BesideStart | None
    chosen: Point | None  # the decision, where it is another than the tracker's point
    replays: Replays | None


class TrackedPI2(AbstractLearner):
    r"""TrackedPI, version 2: no horizon, no constants, no units; one LMO a round, at any time.

    Gradients are first freed of what does not matter on the domain (`domain.tangent`), and clipped to the longest
    before, which at most doubles a round. Then

    * each constraint has a unit of its multiplier (`learners.units`), in which `dual.RobustPI` controls the weights u;
      if its gradients have no direction in common it weighs a fourth of that (`learners.coherence`), unless it is
      overspent beyond noise, or there is a `memory`;
    * the gradient h of $(f+\sum_iu_ig_i)/(1+\sum_iu_i/\ell_i)$ drives a target y by distance over gradients that begins
      small and grows (`primal.SlowStart`; on boxes `primal.DistanceBound`, by coordinate), shortened to
      $(1-e^{-o})/o$ where o is how far the step overshoots by the largest curvature seen along a step, which fades (on
      boxes, by the mean one).
      While a constraint is *surely* broken the step is up to $1+\sum_iu_i/\ell_i\le10$ times longer;
    * x follows y by one LMO (`primal.Tracked`, 8 atoms); y may stay $n^{-1/4}$ diameters outside what that LMO proves
      of the set, n being the number of rounds;
    * x, if it is made of vectors, is mixed with its mean over the rounds by what both would have cost (AdaHedge);
    * on a probability simplex, that is mixed with an entropic decision by what both would have cost (AdaHedge twice);
    * vectors are mixed with the start, until moving has surely paid (`learners.beside_start`);
    * on a probability simplex, decisions go there only as far as this round's cost falls along the way, as far as its
      value at the end shows (not where losses count movement, nor after another point was played);
    * where the loss or a constraint is not finite at the next decision (of vectors), it stays a little inside. Where
      they count movement, it goes only as far towards x as their price of moving allows; a limit on movement alone is
      a budget, of which never more is spent than was saved.

    A round costs one LMO, one gradient of f and of each g, one product with a Hessian, and up to two more values.

    **Arguments:**

    - `memory`: over how many rounds to look back; all by default. With a memory it follows prices and budgets that
      drift; without, it converges where they do not.
    - `lmos`: how many Frank-Wolfe steps x makes towards y in a round.
    - `replays`: how many earlier rounds to remember (each equally likely); gradients are means over them and the
      present round, all at the present decision. For rounds drawn alike, not for those that drift. Needs `like`, an
      example of a round: only its shapes and dtypes count.

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
    >>> bool(abs(game.decision - jnp.array([0.0, 0.75, 0.25])).max() < 0.01)
    True
    """

    facts = Facts(
        cost="1 LMO, 2 gradients",
        guarantee="no constants, no horizon, measured: see the arena",
        cites=("cocoax-trackedpi-2",),
    )

    version: ClassVar[int] = 2

    dual: RobustPI
    step_rule: SlowStart
    box_rule: DistanceBound
    memory: Float[Array, ""] | None
    lmos: int = eqx.field(static=True)
    replays: int = eqx.field(static=True)
    like: Any

    def __init__(self, memory: Any = None, *, lmos: Any = 1, replays: Any = 0, like: Any = None):
        self.dual = RobustPI(memory=memory)
        self.step_rule = SlowStart(memory=memory)
        self.box_rule = DistanceBound(memory=memory)
        self.memory = rounds_remembered(memory)
        self.lmos = check.whole(lmos, "lmos", LearnerError, low=1)
        self.replays = check.whole(replays, "replays", LearnerError, low=0)
        if (self.replays > 0) != (like is not None):
            raise LearnerError("replays= and like= go together; give Auto(replays=4, like=round), with any round")
        self.like = None if like is None else shapes(like)

    @property
    def known_as(self):
        return "Auto" if type(self) is Auto else super().known_as

    @property
    def factored(self):
        return self.replays == 0

    def check(self, problem):
        if problem.has_policies:
            raise LearnerError("Auto decides before a round is seen; to answer requests, use learners.AutoPrice()")

    def init(self, problem, *, key, horizon=None, start=None):
        self.check(problem)
        domain, start = problem.domain, first_decision(problem, start)
        zero = jnp.zeros((), tree.dtype(start))
        of_vectors = _is_of_vectors(start)
        return _State(
            Tracker.begin(domain, start, _ATOMS),
            (self.step_rule if domain.intervals() is None else self.box_rule).init(domain, start),
            self.dual.rest(problem.constraints, zero.dtype),
            Units.begin(problem, start),
            Coherence.begin(problem.constraints, start) if self.memory is None and problem.constraints else None,
            Overshoot(zero),
            jnp.zeros(problem.constraints + 1, zero.dtype),
            Averaged.begin(start) if of_vectors else None,
            _entropic(domain, start),
            BesideStart.begin(zero.dtype) if of_vectors else None,
            start if problem.has_movement or of_vectors else None,
            None if self.replays == 0 else Replays.begin(self.replays, self.like, key),
        )

    def decision(self, state):
        return state.tracker.point if state.chosen is None else state.chosen

    def observe(self, problem, state, round, *, played=None):
        domain, tracker, replays, decision = problem.domain, state.tracker, state.replays, self.decision(state)
        played = point_played(played, decision)
        loss, values = problem.values(played, round)
        gradients = problem.gradients(played, round) if replays is None else replays.gradients(problem, played, round)
        keep, poles = discount(self.memory, loss.dtype), may_have_poles(problem, played, round)
        caps = keep * state.caps
        if poles:
            usual = ratio(jnp.abs(jnp.append(loss, values)), jnp.asarray(domain.diameter(2), loss.dtype))
            gradients = _without_infinities(gradients, caps, usual)
        gradients = domain.tangent(gradients[0]), jax.vmap(domain.tangent)(gradients[1])
        factors, lengths, caps = _clipped(gradients, caps)

        # how much the loss and each constraint weigh
        on_box = isinstance(state.step, DistanceBoundState)
        far, overspent = state.step.far if on_box else None, self.dual.overspent(state.control)
        unit, size, units = state.units.observe(domain, gradients, factors, lengths, far, overspent, keep)
        multiplier, control = self.dual.control(state.control.restated(size), values, unit)
        coherence = state.coherence
        if coherence is not None:  # weigh less where gradients do not agree, but all where it is surely overspent
            sampled = state.units.sampled(keep)
            coherence = coherence.observe(domain, gradients[1], factors[1:], lengths[1:], sampled)
            multiplier = multiplier * jnp.maximum(coherence.share, jnp.clip(overspent - 1, 0, 1))
        strength = 1 + ratio(multiplier, unit).sum()
        weights = Weights(1 / strength, multiplier / strength)
        parts = weights.loss * factors[0], weights.constraint * factors[1:]
        direction = tree.add(tree.scale(parts[0], gradients[0]), tree.combine(parts[1], gradients[1]))
        boost = 1 + self.dual.urgency(control).max(initial=0) * (jnp.minimum(strength, _MOST_BOOST) - 1)

        # the target moves, and x after it; where the loss has just got its first gradient, costs have another unit
        wakes = units.awake & ~state.units.awake
        known = state.step, state.overshoot, state.averaged, state.entropic, state.beside
        distances, overshoot, averaged, entropic, beside = (part and part.forget_costs(wakes) for part in known)
        start, moved = distances.start, tree.sub(tracker.point, distances.start)
        square = tree.dot(direction, direction)
        hessian = problem.curvature(played, round, weights.loss, weights.constraint)
        if on_box:
            eta, distances = self.box_rule.advance(domain, distances, direction, moved)
            step = jax.tree.map(jnp.multiply, eta, direction)
            gain = tree.dot(direction, step)
            rate = ratio(gain, square)
            curvature = ratio(ratio(_curvature(tree.dot(step, hessian(step))), gain), rate)
            overshoot = overshoot.observe_on_box(curvature, square > 0, units.rounds)
            update = tree.scale(-boost * overshoot.factor(boost * rate), step)
        else:
            length, usual = jnp.sqrt(square), weights.loss * caps[0] + (weights.constraint * caps[1:]).sum()
            scale = ratio(jnp.ones_like(usual), usual)  # one over the length would be another pass over the direction
            along = scale * tree.dot(direction, hessian(tree.scale(scale, direction)))
            curvature = ratio(_curvature(along), (scale * length) ** 2)
            ahead = ratio(length, curvature)
            rate, back, distances = self.step_rule.advance(domain, distances, direction, moved, ahead)
            overshoot = overshoot.observe(curvature, keep, units.rounds)
            factor = boost * overshoot.factor(boost * rate) * rate
            update = tree.add(tree.scale(-factor, direction), tree.scale(-back, moved))
        slack = 1 / jnp.sqrt(jnp.sqrt(units.rounds))
        followed = tracker.follow(domain, update, slack, start)
        if self.lmos > 1:
            around = domain, tree.zeros_like(update), slack, start
            followed = jax.lax.fori_loop(0, self.lmos - 1, lambda _, followed: followed.follow(*around), followed)
        overspent, always = self.dual.overspent(control), averaged is not None
        units = units.moved(tracker.point, followed.point, gradients[1], factors[1:], overspent, keep, always)

        # what is played: x, mixed with its mean, with entropy and with the start
        costs, point, aim = tree.scale(boost, direction), tracker.point, followed.point
        if averaged is not None:
            averaged, before = averaged.observe(point, costs, keep).moved(domain, aim, units.rounds), averaged
            point, aim = before.mixed_with(point), averaged.mixed_with(aim)
        if entropic is not None:
            entropic, before = entropic.observe(point, costs, keep), entropic
            point, aim = before.mixed_with(point), entropic.mixed_with(aim)
        if beside is not None:
            beside = beside.observe(tree.dot(costs, tree.sub(point, start)), keep)
            aim = beside.mixed_with(aim, start)
        if on_box:
            aim = domain.project(aim)  # rounding does not lead out of it
        if state.chosen is not None and poles:
            aim = inside(problem, aim, start, round, played, units.rounds)
        if problem.has_movement:
            aim = affordable(problem, control.owed, units, aim, round, played, weights, rate)
        elif entropic is not None and replays is None:
            on_way = before_it_rises(problem, aim, round, decision, (loss, values), weights, direction)
            # where another point was played, the cost of the decision was not seen
            aim = tree.where(tree.is_nonzero(tree.sub(played, decision)), aim, on_way)
        state = _State(
            followed,
            distances,
            control,
            units,
            coherence,
            overshoot,
            caps,
            averaged,
            entropic,
            beside,
            None if state.chosen is None else aim,
            None if replays is None else replays.add(round),
        )
        finite = jnp.isfinite(square) & jnp.isfinite(caps).all()
        calls = cost(lmo_calls=self.lmos, gradient_calls=2 + self.replays, finite=finite)
        return state, outcome(loss, values, weights, calls)


def _clipped(gradients: tuple[Point, Point], caps: Float[Array, " k"]):
    """(factors that make no gradient longer than the longest before, the lengths that they leave, how long the next
    ones may be: at most twice as long). Clipped gradients are not stored: on matrices, that takes a pass over memory.
    """
    lengths = jnp.append(tree.norm(gradients[0]), jax.vmap(tree.norm)(gradients[1]))
    most = jnp.where(caps > 0, caps, lengths)
    factors = jnp.where(lengths > most, ratio(most, lengths), 1)
    return factors, factors * lengths, jnp.maximum(caps, jnp.minimum(lengths, 2 * most))


def _curvature(along):
    """<d, H d> as computed, without what is not finite, or less than 0 by rounding."""
    return jnp.maximum(tree.finite(along), 0)


def _entropic(domain, start):
    """Entropy beside Euclid, on a whole simplex: one with an LMO of its own may be a part of it."""
    if isinstance(domain, ProbabilitySimplex) and type(domain).lmo is ProbabilitySimplex.lmo:
        return Entropic.begin(domain.total, start)
    return None


def _is_of_vectors(point: Point) -> bool:
    """Whether it is made of vectors: of matrices, no second copy is kept."""
    return not tree.has_element(point) and all(jnp.ndim(leaf) <= 1 for leaf in jax.tree.leaves(point))


def _without_infinities(gradients: tuple[Point, Point], longest: Float[Array, " k"], usual: Float[Array, " k"]):
    return _finite(gradients[0], longest[0], usual[0]), jax.vmap(_finite)(gradients[1], longest[1:], usual[1:])


def _finite(gradient: Point, longest, usual) -> Point:
    """Infinite entries, such as the slope of a root at 0, count as the longest gradient so far; in the first one, as
    all its other entries together, else as `usual`, the value over the diameter: numbers that have its unit. Else as 1.
    """

    def bounded(cap):
        def of_leaf(x):
            return x if tree.is_element(x) else jnp.where(jnp.isinf(x), jnp.sign(x) * cap, x)

        return jax.tree.map(of_leaf, gradient, is_leaf=tree.is_element)

    caps = jnp.stack([longest, tree.norm(bounded(0)), usual, jnp.ones_like(usual)])
    return bounded(caps[jnp.argmax(caps > 0)])


Auto = TrackedPI2
"""The learner to begin with: the latest version of TrackedPI."""
