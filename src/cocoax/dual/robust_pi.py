"""Proportional-integral control of the multipliers that one bad round cannot spoil."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..core.facts import Facts
from ..core.parameters import discount
from ..core.tree import ratio
from .controller import AbstractController

_LONGEST = 4.0  # times the fourth root of rounds: what a size may count, in mean sizes
_NORMAL = 1.2533  # standard deviation over mean absolute deviation


class RobustControl(eqx.Module):
    """State of the controller. Means and counts are over the rounds in which g was at work (see `RobustPI`)."""

    owed: Float[Array, " m"]  # the sum of g
    integral: Float[Array, " m"]  # lambda
    smoothed: Float[Array, " m"]  # e, a running mean of g and what is repaid
    rounds: Float[Array, " m"]
    seen: Float[Array, " m"]  # those with g != 0
    size: Float[Array, " m"]  # mean |g|
    noise: Float[Array, " m"]  # mean |g - e|
    largest: Float[Array, " m"]  # unit so far

    def restated(self, factor: Any) -> "RobustControl":
        """The same state when the loss is multiplied by `factor`: multipliers and units grow with it."""
        numbers = self.integral * factor, self.largest * factor
        return eqx.tree_at(lambda control: (control.integral, control.largest), self, numbers)


class RobustPI(AbstractController):
    r"""Multipliers that follow the sum of g and its present value, with bounded influence of single rounds.

    With $B_i=1.25\,M_i\sqrt{k_i}$, where $M_i$ is a mean of $|g_i|$ over the $k_i$ rounds at work ($\lambda_i>0$ or
    $g_i>0$; not those with $g_i=0$), and $\tilde g_i$ = $g_i$ clipped to $\pm B_i$ plus what is repaid,

    $\mu_i = c\,\frac{\ell_i+\min(\lambda_i,10\ell_i)}{B_i},\qquad
    \lambda_i \leftarrow [\lambda_i + \mu_i\tilde g_i]_+,\qquad u_i = [\lambda_i + k\mu_ie_i]_+$

    where u is what the primal sees, e a running mean of $\tilde g$ (where $g_i\ne0$) and $\ell_i$ the unit of a
    multiplier (alone, the root mean square of $|\nabla f|$ over that of $|\nabla g_i|$).

    Overspending beyond noise is repaid over as many rounds as g was at work, $\max(1,\lambda_i/\ell_i)$ times more
    slowly. While a constraint hardly binds, one standard deviation counts as noise. Once the constraint drives half of
    the decisions, nothing does: the number of standard deviations is $[1-4w_i^2/(1+\sum_jw_j)^2]_+$, where $w_i$ is
    $\lambda_i$ over its largest unit.

    $M_i$ rises like a mean in which round k has the weight k, and falls like the geometric mean. No round counts for
    more than $4k_i^{1/4}M_i$ in it, so that one outlier at most triples it. An outlier in the first round is forgotten
    within 12 rounds. With `memory` all sums forget: they lose 1/memory of themselves per round. No bound is proven.

    >>> import cocoax as cx
    >>> learner = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.RobustPI())
    """

    facts = Facts(cost="8 m + 2 numbers, gradient norms", guarantee="no constants, no units", cites=("cocoax",))

    def __init__(self, gain: Any = 0.2, proportional: Any = 24.0, smoothing: Any = 0.7, memory: Any = None):
        super().__init__(gain, proportional, smoothing, memory)

    def rest(self, constraints: Any, dtype: Any) -> RobustControl:
        zeros = jnp.zeros(constraints, dtype)
        return RobustControl(*[zeros] * 8)

    def control(self, state: RobustControl, values: Any, unit: Any) -> tuple[Float[Array, " m"], RobustControl]:
        """(u, new state) by the formulas above, given the values g and the units l."""
        keep = discount(self.memory, values.dtype)
        gain, proportional, smoothing = self.numbers(values.dtype)
        at_work = (state.integral > 0) | (values > 0)
        here = at_work & (values != 0)
        longest = _LONGEST * state.size * jnp.sqrt(jnp.sqrt(state.seen))
        shown = jnp.where(state.seen > 0, jnp.minimum(jnp.abs(values), longest), jnp.abs(values))
        size = _mean(state.size, state.seen, shown, here)
        seen = keep * state.seen + here.astype(values.dtype)
        rounds = keep * state.rounds + at_work.astype(values.dtype)
        most = _NORMAL * size * jnp.sqrt(jnp.maximum(seen, 1))
        clipped = jnp.clip(values, -most, most)
        off = jnp.abs(clipped - state.smoothed)
        noise = _mean(state.noise, state.rounds, off, at_work & (off > 0))

        owed = keep * state.owed + values
        largest = jnp.maximum(keep * state.largest, unit)
        worth = ratio(state.integral, largest)
        noisy = self.tolerated(worth / (1 + worth.sum())) * _NORMAL * noise * jnp.sqrt(seen)
        surely = jnp.maximum(owed - noisy, 0)
        debt = jnp.minimum(surely / jnp.maximum(rounds, 1), most)
        repaying = clipped + debt * ratio(unit, jnp.maximum(unit, state.integral))
        rate = ratio(gain * (unit + jnp.minimum(state.integral, 10 * unit)), most)
        smoothed = jnp.where(values != 0, smoothing * state.smoothed + (1 - smoothing) * repaying, state.smoothed)
        integral = jnp.maximum(state.integral + rate * repaying, 0)
        weights = jnp.maximum(integral + proportional * rate * smoothed, 0)
        return weights, RobustControl(owed, integral, smoothed, rounds, seen, size, noise, largest)

    def tolerated(self, shares: Float[Array, " m"]) -> Float[Array, " m"]:
        """$[1-4s_i^2]_+$: how many standard deviations of overspending count as noise.

        $s_i$ is the constraint's share of what drives decisions.
        """
        return jnp.maximum(1 - (2 * shares) ** 2, 0)

    def urgency(self, state: RobustControl) -> Float[Array, " m"]:
        of_mean = jnp.sqrt((1 - self.smoothing) / (1 + self.smoothing)).astype(state.noise.dtype)
        return jnp.clip(ratio(state.smoothed, _NORMAL * state.noise * of_mean) - 3, 0, 1)

    def overspent(self, state: RobustControl) -> Float[Array, " m"]:
        """The sum of g, in standard deviations of its noise, where g is positive lately; elsewhere 0."""
        deviations = ratio(state.owed, _NORMAL * state.noise * jnp.sqrt(jnp.maximum(state.seen, 1)))
        return jnp.where(state.smoothed > 0, deviations, 0)


def _mean(old: Float[Array, " m"], count: Any, size: Any, counts: Bool[Array, " m"]) -> Float[Array, " m"]:
    r"""$M_k=M_{k-1}+\frac2{k+1}(s_k-M_{k-1})$ for k = `count` + 1: a mean that weighs the k-th size by k.

    Where the size is smaller, the mean is geometric: $M_k=M_{k-1}(s_k/M_{k-1})^{2/(k+1)}$. Only entries with `counts`
    change.
    """
    share = 2 / (count + 2)
    up = old + share * (size - old)
    down = old * jnp.clip(ratio(size, old), 0.01, 1) ** share
    new = jnp.where(count == 0, size, jnp.where(size > old, up, down))
    return jnp.where(counts, new, old)
