"""Tracked: gradient descent whose target is followed, not projected."""

from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .. import theory
from ..core import check, tree
from ..core.facts import Facts
from ..core.parameters import argument
from ..errors import LearnerError
from .base import AbstractPrimal, cost
from .steps import AbstractStep, Constant, Distance, Norm, as_step
from .tracking import Tracker


class _State(eqx.Module):
    tracker: Tracker
    step: Any


class Tracked(AbstractPrimal):
    r"""Any gradient method, made projection-free with exactly one LMO and one gradient per round.

    There are two points. y makes the gradient steps, $y \leftarrow y - \eta_t\nabla_t$, and is never projected. x, a
    point of X, is played, and follows y by Frank-Wolfe steps with exact line search. Where the LMO's answer proves that
    y lies outside X, y is pulled back to the half-space that it proves; this brings y no further from any point of X.

    **Arguments:**

    - `step`: the step sizes: one of `primal.steps`, a number, or an Optax optimiser that needs no more than
      gradients and parameters. By default
      $\eta_t = R(\sum_{s\le t}\|\nabla_s\|^{4/3})^{-3/4}$, which needs neither a horizon nor any constant.
    - `atoms`: how many vertices to keep, among which weight is exchanged once per round, without an LMO.

    Only the part of gradients that matters on X is used (`domain.tangent`), and where a ball inside X is known
    (`domain.inradius`), x moves freely in it.

    Proven, with exact LMOs, for the default steps and every sequence, after every round t, for any `atoms`
    (`theory.regret.tracked`): Regret $\le 4.86\,R\left(\sum_{s\le t}\|\nabla_s\|^{4/3}\right)^{3/4}
    \le 4.86\,RD\,t^{3/4}$. With one number for all rounds, `theory.regret.tracked_constant`; with `SlowStart`,
    `theory.regret.slow_start`. For other steps nothing is proven.

    >>> import cocoax as cx
    >>> learner = cx.learners.PrimalDual(cx.primal.Tracked(atoms=8), cx.dual.RegularizedAscent(1.0, 0.1))
    """

    deterministic: ClassVar[bool] = True
    alpha: ClassVar[Fraction] = Fraction(3, 4)
    facts = Facts(cost="1 LMO", guarantee="after every round, no constants, proven", cites=("cocoax",), regret=alpha)

    atoms: int = eqx.field(static=True)
    step_rule: AbstractStep = argument("step")

    def __init__(self, step: Any = None, *, atoms: Any = 0):
        self.step_rule = as_step(step)
        self.atoms = check.whole(atoms, "atoms", LearnerError, low=0)

    @property
    def needs(self):
        rule = self.step_rule
        return ("lipschitz",) if isinstance(rule, Constant) and rule.size is None else ()

    @property
    def factored(self):
        return isinstance(self.step_rule, Norm | Constant | Distance)

    def _constants(self, domain):
        rule = self.step_rule
        if not (isinstance(rule, Norm) and (tree.is_traced(rule.power) or abs(rule.power - 4 / 3) < 1e-6)):
            raise LearnerError("Tracked has constants for its default steps only; give Tracked() without a step")
        return theory.constants.tracked(domain.diameter(2))

    def init(self, domain, bounds, *, start, key, warm=None):
        tracker = Tracker.begin(domain, start, self.atoms, None if warm is None else warm.tracker)
        return _State(tracker, self.step_rule.init(domain, start))

    def decision(self, state):
        return state.tracker.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        gradient = domain.tangent(revealed.gradient(revealed.played))
        update, step = self.step_rule.update(domain, state.step, gradient, revealed.played, next_bounds)
        if jax.tree.map(jnp.shape, update) != jax.tree.map(jnp.shape, gradient):
            raise LearnerError("a step rule's update must return what to add to the target, in the gradient's shape")
        tracker = state.tracker.follow(domain, update)
        return _State(tracker, step), cost(lmo_calls=1, gradient_calls=1, finite=tree.all_finite(gradient))

    def restart(self, domain, state, bounds, *, key):
        return self.init(domain, bounds, start=state.tracker.point, key=key, warm=state), cost()
