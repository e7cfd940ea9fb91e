"""Several primals side by side: what is played is their mean, by how well each has done (AdaHedge)."""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..core import check, tree
from ..core.facts import Facts
from ..domains.base import Point
from ..errors import LearnerError
from .base import AbstractPrimal, Revealed, cost
from .hedge import Hedge


class _State(eqx.Module):
    states: tuple[Any, ...]
    hedge: Hedge
    point: Point


class Mixture(AbstractPrimal):
    r"""$x_t=\sum_kp_{tk}x_t^k$: several primals, each with a game of its own, and shares by AdaHedge on their losses.

    Primal k plays $x_t^k$, and sees the gradient there. The shares are $p_{tk}\propto e^{-\eta_tH_{tk}}$ with
    $H_{tk}=\sum_{s<t}h_s(x_s^k)$ and $\eta_t=\ln K/\Delta_t$, $\Delta$ being the mixability gap. So an unknown
    step size, radius or prior is learned: give one primal for each candidate.

    *Proven,* for convex losses that differ by at most S between the primals in a round: after every round,
    Regret $\le\min_k\mathrm{Regret}_k+2\sqrt{V\ln K}+S(\frac43\ln K+4)$, where
    $V=\sum_s\mathrm{Var}_{p_s}h_s(x_s^k)$ is at most $\frac14S^2t$ (`theory.regret.mixture`; by convexity, the mean is
    no worse than the primals on average).

    **Arguments:**

    - `primals`: those that do not draw coins.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> scales = [cx.primal.DiagonalNewton(scale) for scale in (0.5, 0.1, 0.02)]
    >>> problem = cx.Problem(cx.domains.Box([-1.0, -1.0], [1.0, 1.0]), lambda x, r: jnp.sum((x - r) ** 2))
    >>> learner = cx.learners.PrimalDual(cx.primal.Mixture(scales), cx.dual.RobustPI())
    >>> game = cx.play(problem, learner, jnp.full((50, 2), 0.5), key=jax.random.key(0))
    >>> game.decision.round(2).tolist()
    [0.5, 0.5]
    """

    deterministic: ClassVar[bool] = True
    facts = Facts(
        cost="its primals', a value each",
        guarantee="the best of its primals' and AdaHedge's, proven",
        cites=("derooij2014",),
    )

    primals: tuple[AbstractPrimal, ...]

    def __init__(self, primals: Sequence[AbstractPrimal]):
        if not isinstance(primals, Sequence) or not primals:
            raise LearnerError(f"Mixture needs a list of primals, got {check.described(primals)}")
        for one in primals:
            check.instance(one, AbstractPrimal, LearnerError, "Mixture needs a list of cocoax.primal")
            if not one.deterministic:
                raise LearnerError(f"Mixture needs primals that do not draw coins, got {type(one).__name__}")
        self.primals = tuple(primals)

    @property
    def needs(self):
        return tuple(dict.fromkeys(name for one in self.primals for name in one.needs))

    def init(self, domain, bounds, *, start, key, warm=None):
        warms = [None] * len(self.primals) if warm is None else warm.states
        states = tuple(
            one.init(domain, bounds, start=start, key=key, warm=warm)
            for one, warm in zip(self.primals, warms, strict=True)
        )
        count = len(self.primals)
        hedge = Hedge.begin(jnp.full(count, 1 / count, tree.dtype(start)))
        return _State(states, hedge, self._mixed(states, hedge))

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        points = [one.decision(own) for one, own in zip(self.primals, state.states, strict=True)]
        losses = jnp.stack([revealed.value(point) for point in points])
        stepped = [
            one.step(domain, own, _PlayedElsewhere(revealed, point), next_bounds, key=key)
            for one, own, point in zip(self.primals, state.states, points, strict=True)
        ]
        states = tuple(own for own, _ in stepped)
        spent = sum((spent for _, spent in stepped), start=cost(finite=jnp.isfinite(losses).all()))
        hedge = state.hedge.observe(losses, losses.max() - losses.min(), 1.0)
        return _State(states, hedge, self._mixed(states, hedge)), spent

    def restart(self, domain, state, bounds, *, key):
        point = state.point
        restarted = self.init(domain, bounds, start=point, key=key, warm=state)
        return eqx.tree_at(lambda s: s.point, restarted, point), cost()

    def _mixed(self, states, hedge) -> Point:
        """The primals' decisions, weighted by their shares."""
        points = [one.decision(own) for one, own in zip(self.primals, states, strict=True)]
        return tree.combine(hedge.shares, jax.tree.map(lambda *leaves: jnp.stack(leaves), *points))


class _PlayedElsewhere:
    """The revealed round for a primal whose own decision was `played`, instead of the mixture."""

    def __init__(self, revealed: Revealed, played: Point):
        self._revealed, self.played = revealed, played
        self.gradient, self.parts = revealed.gradient, revealed.parts
        self.value, self.constraint = revealed.value, revealed.constraint

    def sampled(self, sample) -> "_PlayedElsewhere":
        return _PlayedElsewhere(self._revealed.sampled(sample), self.played)
