"""The paper's two algorithms (D. Lee, N. Ho-Nguyen, D. Lee), as corrected."""

from fractions import Fraction
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .. import theory
from ..core import check, tree
from ..core.facts import Facts
from ..dual.base import AbstractDual
from ..dual.regularized_ascent import RegularizedAscent
from ..errors import LearnerError
from ..primal.base import AbstractPrimal, RoundBounds
from ..primal.mfw import MFW
from ..primal.perturbation import AbstractPerturbation
from ..theory.traced_powers import ceil_power
from .base import (
    AbstractLearner,
    first_decision,
    outcome,
    parameter,
    planned,
    point_played,
    positive_parameter,
)
from .primal_dual import AbstractPrimalDual, bounds_by_weights
from .reveal import Reveal, gradient_norms


class _BlocksState(eqx.Module):
    primal: Any
    dual: Any
    rule: AbstractDual  # tuned for this game
    block_sum: Float[Array, " m"]  # of the constraint values in this block
    horizon: Int[Array, ""]  # T
    block: Int[Array, ""]  # K
    block_capacity: int = eqx.field(static=True)
    round: Int[Array, ""]  # t
    key: Any


class Blocks(AbstractLearner):
    r"""Algorithm 1: any primal method, restarted in blocks, with one dual step a block.

    Blocks of $K = \lceil T^{1/(3-2\alpha)}\rceil$ rounds, $Q=\lceil T/K\rceil$ of them, the last one short. In block q
    the primal sees $h_t = f_t + \langle\lambda_q, g_t\rangle$, restarted from the current decision with
    $D(1+\lambda_q)$ (errata E22, E23); after it

    $\lambda_{q+1} = [(1-\theta\mu)\lambda_q + \mu\sum_{t\in\text{block }q} g_t(x_t)]_+,\qquad
    \theta = 3(C_1D+C_2L)K^\alpha T^{-\beta},\quad \mu=\frac{1}{\theta(Q+1)}$

    with $\beta\in[0,\frac{1-\alpha}{3-2\alpha}]$. Proven: $E$ Regret $=O(T^{\frac{2-\alpha}{3-2\alpha}+\beta})$ and
    $E$ violation $=O(T^{\frac{5-3\alpha}{6-4\alpha}-\frac\beta2})$; `theory.algorithm1` gives the numbers. With m
    constraints theta is m times larger. `theta_scale` other than 1 is for practice;
    `theory.algorithm1(theta_scale=...)` tells what remains proven.

    >>> import cocoax as cx
    >>> learner = cx.learners.Blocks(cx.primal.OCG())
    """

    facts = Facts(
        cost="its primal's, and one dual step a block",
        guarantee="regret T^((2-a)/(3-2a)), violation T^((5-3a)/(6-4a)) over a primal with regret T^a, proven",
        cites=("lee-projection-free",),
    )

    primal: AbstractPrimal
    dual: AbstractDual
    beta: Float[Array, ""]
    theta_scale: Float[Array, ""]

    def __init__(self, primal: Any, dual: Any = None, *, beta: Any = 0.0, theta_scale: Any = 1.0):
        dual = RegularizedAscent() if dual is None else dual
        self.primal = check.instance(primal, AbstractPrimal, LearnerError, "Blocks needs one of cocoax.primal")
        self.dual = check.instance(dual, AbstractDual, LearnerError, "Blocks takes one of cocoax.dual second")
        if not self.dual.predictable or self.dual.settles:
            raise LearnerError(
                f"Blocks moves its dual once a block, by the sum of the values in it; {type(self.dual).__name__} moves "
                "every round, so give it to PrimalDual"
            )
        if self.dual.is_tuned and not tree.is_traced(beta, theta_scale) and (beta, theta_scale) != (0.0, 1.0):
            raise LearnerError("a dual with numbers of its own leaves nothing for beta and theta_scale to tune")
        if not primal.has_theorem:
            raise LearnerError(
                f"Blocks is tuned by the regret bound of its primal, but {type(primal).__name__} states none; use "
                "PrimalDual, or define alpha and _constants(domain)"
            )
        limit = (1 - primal.alpha) / (3 - 2 * primal.alpha)
        self.beta = parameter(beta, "beta", 0, float(limit), f" for {type(primal).__name__}")
        self.theta_scale = positive_parameter(theta_scale, "theta_scale")

    def _regularity(self, problem):
        needs = self.primal.needs
        c2 = self.primal.constants(problem.domain).c2
        if not (isinstance(c2, int | float) and c2 == 0):
            needs = (*needs, "smoothness")
        return problem.constants(self.primal.norm, needs, f"Blocks with {type(self.primal).__name__}")

    def _tuned(self, problem, horizon, block):
        if self.dual.is_tuned:
            return self.dual
        regularity = self._regularity(problem)
        theta = theory.blocks_theta(
            self.primal.constants(problem.domain),
            regularity.lipschitz,
            regularity.smoothness,
            block=block.astype(float),
            horizon=horizon.astype(float),
            beta=self.beta,
            constraints=max(problem.constraints, 1),
            scale=self.theta_scale,
        )
        blocks = (-(-horizon // block)).astype(theta.dtype)
        return RegularizedAscent(theta, theory.blocks_mu(theta, blocks))

    def init(self, problem, *, key, horizon=None, start=None):
        horizon = planned(horizon, "Blocks")
        exponent = Fraction(1) / (3 - 2 * self.primal.alpha)
        block = ceil_power(horizon.rounds, exponent, horizon.capacity)
        capacity = theory.ceil_power(horizon.capacity, exponent)
        rule = self._tuned(problem, horizon.rounds, block)
        start = first_decision(problem, start)
        dual = rule.init(problem.constraints, tree.dtype(start))
        bounds = bounds_by_weights(self._regularity(problem))(rule.forecast(dual), block, capacity)
        primal = self.primal.init(problem.domain, bounds, start=start, key=jax.random.fold_in(key, 0))
        one = jnp.ones((), jnp.int32)
        block_sum = jnp.zeros(problem.constraints, tree.dtype(start))
        return _BlocksState(primal, dual, rule, block_sum, horizon.rounds, block, capacity, one, key)

    def decision(self, state):
        return self.primal.decision(state.primal)

    def observe(self, problem, state, round, *, played=None):
        rule, bounds_for = state.rule, bounds_by_weights(self._regularity(problem))
        played = point_played(played, self.decision(state))
        weights = rule.forecast(state.dual)
        loss, values, pull = problem.linearize(played, round)
        revealed = Reveal(problem, round, weights, played, pull)
        step_key, restart_key = jax.random.split(jax.random.fold_in(state.key, state.round))

        first = (state.round - 1) // state.block * state.block  # rounds before this block
        length = jnp.clip(state.horizon - first, 1, state.block)
        bounds = bounds_for(weights, length, state.block_capacity)
        primal, step_cost = self.primal.step(problem.domain, state.primal, revealed, bounds, key=step_key)
        block_sum = state.block_sum + values

        def end_block():
            _, dual = rule.weigh(state.dual, block_sum, lambda: gradient_norms(problem, round, played))
            length = jnp.clip(state.horizon - state.round, 1, state.block)
            bounds = bounds_for(rule.forecast(dual), length, state.block_capacity)
            restarted, restart_cost = self.primal.restart(problem.domain, primal, bounds, key=restart_key)
            return restarted, dual, jnp.zeros_like(block_sum), step_cost + restart_cost

        primal, dual, block_sum, total_cost = jax.lax.cond(
            state.round == first + length, end_block, lambda: (primal, state.dual, block_sum, step_cost)
        )
        fixed = (state.horizon, state.block, state.block_capacity)
        new = _BlocksState(primal, dual, rule, block_sum, *fixed, state.round + 1, state.key)
        return new, outcome(loss, values, weights, total_cost, self.rounds_left(state))

    def rounds_left(self, state):
        return state.horizon - state.round + 1


class PDMFW(AbstractPrimalDual):
    r"""Algorithm 2: primal-dual Meta-Frank-Wolfe, for smooth losses and constraints.

    `primal.MFW` with $K=\lceil\sqrt T\rceil$ on $h_t = f_t + \lambda_tg_t$, and every round

    $\lambda_{t+1} = [(1-\theta\mu)\lambda_t + \mu\,g_t(x_t)]_+,\qquad \theta = \frac{12RD\sqrt d}{N},\quad
    \mu = \frac{1}{\theta(T+2)},\quad N = T^{\frac12+\beta}$

    Perturbations are uniform on $[0, 2D\sqrt dN]^d$, or centred, with D in the linf and R in the l1 norm (errata
    E1-E4, E9); `"ball"` works in the l2 norm, with $\sqrt{2\kappa_d}$ in the place of $\sqrt d$ and radius
    $\sqrt{2\kappa_d}DN$. Proven for $\beta\in[0,\frac12]$: $E$ Regret $=O(T^{\frac12+\beta})$, $E$ violation
    $=O(T^{\frac34-\frac\beta2})$; `theory.pdmfw` gives the numbers. `theta_scale` other than 1 is for
    practice; `theory.pdmfw(theta_scale=...)` tells what remains proven. A perturbation of your own is drawn at the
    theorem's size.

    >>> import cocoax as cx
    >>> learner = cx.learners.PDMFW(perturbation="centred")
    """

    facts = Facts(
        cost="ceil(sqrt T) LMOs and gradients",
        guarantee="smooth, expected, proven",
        cites=("lee-projection-free",),
        regret=Fraction(1, 2),
        violation=Fraction(3, 4),
    )

    primal: MFW
    beta: Float[Array, ""]
    theta_scale: Float[Array, ""]

    def __init__(self, *, beta: Any = 0.0, theta_scale: Any = 1.0, perturbation: Any = "cube"):
        self.primal = MFW(perturbation)
        self.beta = parameter(beta, "beta", 0, 0.5)
        self.theta_scale = positive_parameter(theta_scale, "theta_scale")

    @property
    def perturbation(self) -> AbstractPerturbation:
        """The noise of its leaders."""
        return self.primal.noise

    def _regularity(self, problem):
        return problem.constants(self.primal.norm, ("lipschitz", "smoothness"), "PDMFW")

    def bounds(self, problem):
        """The same all game: the bound for which MFW's own perturbations are as large as the theorem's."""
        regularity, dimension, noise = self._regularity(problem), problem.domain.dimension, self.primal.noise

        def bounds(weights, horizon, capacity):
            level = theory.pdmfw_level(horizon.astype(float), self.beta)
            margin = theory.pdmfw_size(level, 1.0, dimension, noise.name) / noise.size(1.0, horizon, dimension)
            return RoundBounds(margin * regularity.lipschitz, jnp.asarray(regularity.smoothness), horizon, capacity)

        return bounds

    def rule(self, problem, horizon):
        domain, noise = problem.domain, self.primal.noise
        theta = theory.pdmfw_theta(
            theory.pdmfw_level(horizon.astype(float), self.beta),
            self._regularity(problem).lipschitz,
            noise.diameter(domain),
            domain.dimension,
            noise.name,
            constraints=max(problem.constraints, 1),
            scale=self.theta_scale,
        )
        return RegularizedAscent(theta, theory.pdmfw_mu(theta, horizon.astype(theta.dtype)))
