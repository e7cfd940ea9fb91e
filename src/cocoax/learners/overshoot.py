"""Steps that are shortened where the curvature seen so far says that they would overshoot."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core.tree import ratio


class Overshoot(eqx.Module):
    r"""A step $\eta h$ becomes $\eta h(1-e^{-o})/o$, where $o=\eta\kappa$ and $\kappa$ is the curvature along steps.

    $\kappa$ is the largest curvature so far, of which after round n $\frac{2n}{2n+1}$ is kept: what was seen once fades
    like $n^{-1/2}$, as steps do. So a start that is curved a thousand times more than all later decisions does not keep
    steps short for ever. On boxes, where $\eta$ has an entry for each coordinate, $\kappa$ is a mean of which the k-th
    weighs as k, and $\eta$ in o is that of the gain, $\langle\eta h,h\rangle/|h|^2$.
    """

    curvature: Float[Array, ""]

    def forget_costs(self, when) -> "Overshoot":
        """Begin anew, where gradients have got another unit."""
        return Overshoot(jnp.where(when, 0, self.curvature))

    def observe(self, curvature, keep, rounds) -> "Overshoot":
        """After a round in which it was so large along the step."""
        return Overshoot(jnp.maximum(keep * self.curvature * (2 * rounds / (2 * rounds + 1)), curvature))

    def observe_on_box(self, curvature, moves, rounds) -> "Overshoot":
        """After a round on a box in which it was so large along the step, if the step `moves`."""
        share = jnp.where(moves, 2 / (rounds + 1), 0)
        return Overshoot(self.curvature + share * (curvature - self.curvature))

    def factor(self, rate) -> Float[Array, ""]:
        """By what a step of this rate is multiplied."""
        overshoot = self.curvature * rate
        return jnp.where(overshoot > 0, ratio(-jnp.expm1(-overshoot), overshoot), 1)
