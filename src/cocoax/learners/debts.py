"""What was overspent, and what is done about it: prices of risk, and shares of not trading."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..core.tree import ratio
from ..dual.robust_pi import RobustPI
from ..problem.problem import Problem, Round

_PATIENCE = 5.0  # rounds over which a debt of movement without noise is paid back
_SLOWNESS = 3.0  # mean absolute deviations of a debt at which there is no movement at all


class Debts(eqx.Module):
    r"""What each constraint owes, $G_i=\sum g_i$. Where it is not positive, nothing is done.

    A constraint on where one is has a price, that of `dual.RobustPI`. One on movement, which depends on the decision
    before, has two refuges: to hold what is held, and to repeat the last decision. A running mean $\Delta_i$ says by
    how much each would have relieved it, and decisions move by
    $\min\left(1,\frac{[G_i]_+}{5\Delta_i+3N_i\sqrt t}\right)$ towards the better one, where $N_i$ is the mean absolute
    deviation of $g_i$: noise alone makes debts of $N_i\sqrt t$.
    """

    control: Any  # RobustPI's state
    prices: Float[Array, " m"]  # u, of the constraints that are not on movement
    owed: Float[Array, " m"]  # G
    noise: Float[Array, " m"]  # N
    rounds: Float[Array, ""]
    moves: Bool[Array, " m"]  # whether it is one on movement
    refuges: Float[Array, "two d"]  # for the next round
    relief: Float[Array, "two m"]  # mean of g(aim) - g(refuge), the k-th round weighing as k

    @classmethod
    def begin(cls, dual: RobustPI, constraints: int, start: Float[Array, " d"]) -> "Debts":
        zeros = jnp.zeros(constraints, start.dtype)
        return cls(
            dual.init(constraints, start.dtype),
            zeros,
            zeros,
            zeros,
            jnp.zeros((), start.dtype),
            zeros > 0,
            jnp.broadcast_to(start, (2, start.size)),
            jnp.zeros((2, constraints), start.dtype),
        )

    def observe(self, dual: RobustPI, problem: Problem, round: Round, values, norms, aim, refuges) -> "Debts":
        """After a round that came to `values`, and in which `aim` had been wanted; `refuges` are for the next one."""
        rounds, owed = self.rounds + 1, self.owed + values
        noise = self.noise + (jnp.abs(values - owed / rounds) - self.noise) / rounds
        wanted, at_rest = problem.values(aim, round)[1], problem.values(aim, round, aim)[1]
        moves = self.moves | (wanted != at_rest)
        here = jax.vmap(lambda x: problem.values(x, round)[1])(self.refuges)
        relief = self.relief + 2 / (rounds + 1) * (wanted[None] - here - self.relief)
        weights, control = dual.weigh(self.control, values, norms)
        prices = jnp.where(moves | (owed <= 0), 0, weights.constraint)
        return Debts(control, prices, owed, noise, rounds, moves, refuges, relief)

    @property
    def shares(self) -> Float[Array, " m"]:
        """How far to go to the refuge, of the constraints on movement."""
        best = jnp.maximum(self.relief.max(0), 0)
        usual = _SLOWNESS * self.noise * jnp.sqrt(self.rounds)
        shares = jnp.clip(ratio(jnp.maximum(self.owed, 0), _PATIENCE * best + usual), 0, 1)
        return jnp.where(self.moves & (best > 0), shares, 0)

    def relieved(self, aim: Float[Array, " d"]) -> Float[Array, " d"]:
        """The aim, moved towards the refuges."""
        shares, refuges = self.shares, self.refuges[jnp.argmax(self.relief, 0)]
        return aim + (shares / jnp.maximum(shares.sum(), 1)) @ (refuges - aim[None])
