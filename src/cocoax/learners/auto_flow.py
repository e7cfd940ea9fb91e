"""`AutoFlow`, for shares of routes: losses with much curvature on products of simplices, under budgets."""

from ..core.facts import Facts
from ..dual.robust_pi import RobustPI
from ..primal.entropic_newton import EntropicNewton, groups_of
from .projected import AbstractUntuned


class AutoFlow(AbstractUntuned):
    r"""Traffic, and whatever else is split over alternatives, group by group; no constants, no horizon.

    `primal.EntropicNewton`, with multipliers by `dual.RobustPI`. Where losses have much curvature and rounds are nearly
    alike, as days on the roads, this is what `Auto` lacks. With everybody on the shortest route, delays that grow with
    the fourth power of the flow have gradients 20 times as long as near the equilibrium, and Auto's steps, over the
    root of all squared gradients, stay too short for hundreds of days.

    *Proven:* decisions lie in the set and never use the future. *Measured only:* everything else (docs/real_data.md).

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> roads = cx.domains.PartitionMatroid([[0, 1], [2, 3]], [1, 1])
    >>> problem = cx.Problem(roads, lambda x, r: jnp.sum(r * x**5), lambda x, r: x[0] - 0.6)
    >>> rounds = jnp.tile(jnp.array([1.0, 16.0, 1.0, 1.0]), (100, 1))
    >>> game = cx.play(problem, AutoFlow(), rounds, key=jax.random.key(0))
    >>> bool(abs(game.decision - jnp.array([0.6, 0.4, 0.5, 0.5])).max() < 0.02), bool(game.constraint.mean() < 0.01)
    (True, True)
    """

    facts = Facts(
        cost="2 gradients",
        guarantee="on products of simplices, no constants, no horizon, measured: see docs/real_data.md",
        cites=("kivinen1997", "cocoax"),
    )

    primal: EntropicNewton
    dual: RobustPI

    def __init__(self):
        self.primal = EntropicNewton()
        self.dual = RobustPI()

    def check(self, problem):
        super().check(problem)
        groups_of(problem.domain, "AutoFlow")
