"""TrackedPI, version 1 of the learner for those who know no constants; `Auto` is version 2."""

from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..core import tree
from ..core.facts import Facts
from ..core.parameters import discount, rounds_remembered
from ..core.tree import ratio
from ..domains.base import Point
from ..dual.base import Weights
from ..dual.pi import PI, Control
from ..primal.base import cost
from ..primal.steps import Distance
from ..primal.tracking import Tracker
from .base import AbstractLearner, first_decision, outcome, point_played

_ATOMS = 8
_FIRST = 0.1  # of the diameter: the first guess of the distance to go
_MOST_BOOST = 10.0


class _State(eqx.Module):
    tracker: Tracker
    step: Any
    control: Control
    loss_gradients: Point  # their sum
    awake: Bool[Array, ""]  # whether the loss has had one
    squares: Float[Array, " m"]  # sum of |grad g|^2
    rounds: Float[Array, ""]
    curvature: Float[Array, ""]  # the largest along a step


class TrackedPI(AbstractLearner):
    r"""TrackedPI, version 1: no horizon, no constants, no units; one LMO a round, at any time.

    Gradients are first freed of what does not matter on the domain (`domain.tangent`). Then

    * each constraint has a natural unit of its multiplier, $\ell_i$: the length of the mean gradient of the loss over
      the root mean square of $|\nabla g_i|$. In it, `dual.PI` controls the weights u. (Until the loss has a gradient,
      constraints alone are followed, in units of 1.);
    * the gradient h of $(f+\sum_iu_ig_i)/(1+\sum_iu_i/\ell_i)$, carried over from the decision x to a target y by one
      product with the Hessian, drives y by distance over weighted gradients, $\eta$ (`primal.steps.Distance`), with
      $(1-e^{-\eta\kappa})/\kappa$ for $\eta$, where $\kappa$ is the largest curvature along a step so far. While a
      constraint is *surely* broken (the running mean of its values is beyond three of its standard deviations) the
      step is up to $1+\sum_iu_i/\ell_i\le10$ times longer;
    * x follows y by one LMO (`primal.Tracked`, 8 atoms); y may stay $n^{-1/4}$ diameters outside what that LMO proves
      of the set, n being the number of rounds.

    A round costs one LMO, one gradient of f and of each g, and two products with a Hessian, about as much as gradients.

    **Arguments:**

    - `memory`: over how many rounds to look back; all by default. With a memory it follows prices and budgets that
      drift; without, it converges where they do not.

    *Proven:* decisions lie in the set and never use the future; scaling the loss, a constraint or the geometry by a
    power of two changes no bit of them (other factors, and factored matrices, only rounding). Without constraints and
    memory, for every sequence of convex L-smooth losses with gradients up to D, and exact LMOs,
    Regret $= O(R(D+LR)\,T^{5/6}\ell^{1/6})$, where $\ell$ is a logarithm of T and of the ratio of the largest
    gradient to the first (docs/auto.md has the proof; its constants are of no practical use). *Measured only:*
    everything else, in the arena (`cocoax race arena`). For a hard promise on the violation, wrap it in `Capped`.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(3),
    ...     loss=lambda x, r: jnp.vdot(r, x),
    ...     constraint=lambda x, r: x[2] - 0.25,
    ... )
    >>> rounds = jnp.tile(jnp.array([3.0, 2.0, 1.0]), (300, 1))
    >>> game = cx.play(problem, TrackedPI(), rounds, key=jax.random.key(0))
    >>> abs(game.decision).round(1).tolist()
    [0.0, 0.8, 0.2]
    """

    facts = Facts(
        cost="1 LMO, 3 gradients",
        guarantee="without constraints, proven; no constants, no horizon: see the arena",
        cites=("cocoax-trackedpi-1",),
        regret=Fraction(5, 6),
    )

    version: ClassVar[int] = 1

    dual: PI
    step_rule: Distance
    memory: Float[Array, ""] | None

    def __init__(self, memory: Any = None):
        self.dual = PI(memory=memory)
        self.step_rule = Distance(_FIRST, memory=memory)
        self.memory = rounds_remembered(memory)

    @property
    def factored(self):
        return True

    def init(self, problem, *, key, horizon=None, start=None):
        start = first_decision(problem, start)
        dtype = tree.dtype(start)
        return _State(
            Tracker.begin(problem.domain, start, _ATOMS),
            self.step_rule.init(problem.domain, start),
            self.dual.rest(problem.constraints, dtype),
            tree.zeros_like(start),
            jnp.zeros((), bool),
            jnp.zeros(problem.constraints, dtype),
            jnp.zeros((), dtype),
            jnp.zeros((), dtype),
        )

    def decision(self, state):
        return state.tracker.point

    def observe(self, problem, state, round, *, played=None):
        domain, tracker = problem.domain, state.tracker
        from_target = tracker.away if played is None else tree.sub(point_played(played, tracker.point), tracker.target)
        played = point_played(played, tracker.point)
        loss, values = problem.values(played, round)
        gradients = problem.gradients(played, round)
        of_loss, of_constraints = domain.tangent(gradients[0]), jax.vmap(domain.tangent)(gradients[1])

        keep = discount(self.memory, loss.dtype)
        rounds = keep * state.rounds + 1
        loss_gradients = domain.truncate(tree.add(tree.scale(keep, state.loss_gradients), of_loss))
        squares = keep * state.squares + jax.vmap(lambda gradient: tree.dot(gradient, gradient))(of_constraints)
        size = tree.norm(loss_gradients)
        awake = state.awake | (size > 0)
        state = _woken(state, awake & ~state.awake, size / rounds)
        unit = ratio(jnp.where(awake, size / rounds, 1), jnp.sqrt(squares / rounds))
        multiplier, control = self.dual.control(state.control, values, unit)

        strength = 1 + ratio(multiplier, unit).sum()
        weights = Weights(1 / strength, multiplier / strength)
        here = tree.add(tree.scale(weights.loss, of_loss), tree.combine(weights.constraint, of_constraints))
        hessian = problem.curvature(played, round, weights.loss, weights.constraint)
        direction = tree.sub(here, tree.finite(domain.tangent(hessian(from_target))))
        length = tree.norm(direction)
        usual = weights.loss * size / rounds + weights.constraint @ jnp.sqrt(squares / rounds)
        # a scale that does not need `length`: saves a pass over memory
        usable = (usual > 0) & jnp.isfinite(usual)
        scale = jnp.where(usable, 1 / jnp.where(usable, usual, 1), 1)
        along = ratio(scale * tree.dot(direction, hessian(tree.scale(scale, direction))), (scale * length) ** 2)
        curvature = jnp.maximum(keep * state.curvature, tree.finite(along))

        rate, step = self.step_rule.rate(state.step, length, played)
        urgency = self.dual.urgency(control).max(initial=0)
        boost = 1 + urgency * (jnp.minimum(strength, _MOST_BOOST) - 1)
        overshoot = curvature * boost * rate  # eta kappa
        factor = boost * jnp.where(overshoot > 0, ratio(-jnp.expm1(-overshoot), overshoot), 1)
        tracker = tracker.follow(domain, tree.scale(-factor * rate, direction), slack=rounds**-0.25)

        finite = jnp.isfinite(length) & jnp.isfinite(squares).all()
        state = _State(tracker, step, control, loss_gradients, awake, squares, rounds, curvature)
        return state, outcome(loss, values, weights, cost(lmo_calls=1, gradient_calls=3, finite=finite))


def _woken(state: _State, wakes, unit) -> _State:
    """The loss has its first gradient: what was done in units of 1 before is restated in the loss's."""
    integral = state.control.integral * jnp.where(wakes, unit, 1)
    start, far, total = state.step
    return eqx.tree_at(
        lambda s: (s.control.integral, s.step, s.curvature),
        state,
        (integral, (start, far, jnp.where(wakes, 0, total)), jnp.where(wakes, 0, state.curvature)),
    )
