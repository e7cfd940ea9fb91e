"""A bet that a challenger is better than a favourite, in which at most a constant is lost to the favourite."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..core.tree import ratio

STAKE = 0.25  # epsilon: what may be lost, in units of the scale
RATES = 2.0 ** -np.arange(1, 13)  # eta
PRIOR = 13 / 12 / np.arange(1, 13) / np.arange(2, 14)  # pi


class Bet(eqx.Module):
    r"""The challenger's share $p_t$ of what is played, so that the favourite is never better by more than a constant.

    In a round the favourite costs $z_t$ more than the challenger, and $p_tz_t$ is gained on the favourite. With
    $w=z/S$ and the rates $\eta=2^{-j}$, $j\le12$, of prior $\pi\propto\frac1{j(j+1)}$,
    $p_t=\min\left(1,\ \varepsilon\sum_\eta\pi_\eta\eta P_\eta\right)$, where the products $P_\eta$ begin at 1 and grow
    by $1+\eta\tilde w_s$; $\tilde w_s=0$ if $p_s$ was cut to 1 and $w_s>0$, and $\tilde w_s=w_s$ else. A round with
    $|z_t|>S$ sets S to $2|z_t|$. The products then are 1 plus what was won, $P_\eta$ in the new unit, but in total at
    most one unit.

    So after every round, for every sequence, the loss is at most the favourite's plus $3\max_s|z_s|$
    (`theory.regret.favourite`), and at most the challenger's plus a root of $\sum_sz_s^2$
    (`theory.regret.challenger`; both proofs are there). It is like (A, B)-Prod (Sani, Neu, Lazaric, 2014), but needs
    neither a horizon nor a known scale.
    """

    logs: Float[Array, " rates"]  # logarithms of P
    scale: Float[Array, ""]  # S

    @classmethod
    def begin(cls, dtype) -> "Bet":
        return cls(jnp.zeros(RATES.size, dtype), jnp.zeros((), dtype))

    @property
    def share(self) -> Float[Array, ""]:
        """p, of the challenger."""
        return jnp.minimum(self._stake(PRIOR * RATES), 1)

    def observe(self, gain: Float[Array, ""]) -> "Bet":
        """The bet after a round in which the favourite cost `gain` more than the challenger."""
        grows = jnp.abs(gain) > self.scale
        scale = jnp.where(grows, 2 * jnp.abs(gain), self.scale)
        counted = jnp.where((self._stake(PRIOR * RATES) > 1) & (gain > 0), 0, ratio(gain, scale))
        unit = ratio(self.scale, scale)
        won = unit / jnp.maximum(unit * self._stake(PRIOR), 1)
        logs = jnp.where(
            grows,
            jnp.log1p(won * jnp.exp(self.logs)),
            self.logs + jnp.log1p(RATES.astype(gain.dtype) * counted),
        )
        return Bet(logs, scale)

    def _stake(self, weights):
        return STAKE * jnp.dot(weights.astype(self.logs.dtype), jnp.exp(self.logs))
