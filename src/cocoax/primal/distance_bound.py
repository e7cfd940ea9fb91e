"""Steps on boxes that are as long as the distance to the optimum, as far as convexity bounds it."""

import functools
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.parameters import discount, parameter, rounds_remembered
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from ..errors import DomainError
from .steps import AbstractStep

_TIMES = 4.0  # how many times the bound is believed
_WENT = 0.5  # share of the way gone, or of an interval once its end was reached, that counts as a distance
_AT_END = 1e-3  # of an interval


class DistanceBoundState(eqx.Module):
    start: Point
    below: Point  # from the lower ends to the start
    bound: Float[Array, ""]  # d, in widths of the intervals
    gain: Float[Array, ""]  # sum of d^2 <h, start - x>
    far: Point  # the distances r
    total: Point  # sum of r^2 h^2
    sums: Point  # of d^2 h

    def forget_costs(self, when) -> "DistanceBoundState":
        """Begin the sums anew, where gradients have got another unit."""
        sums = self.gain, self.total, self.sums
        begun = jax.tree.map(lambda leaf: jnp.where(when, 0, leaf), sums)
        return eqx.tree_at(lambda s: (s.gain, s.total, s.sums), self, begun)


class DistanceBound(AbstractStep):
    r"""Distance over weighted gradients by coordinate, with distances that a lower bound proves; for boxes alone.

    $\eta_{ti}=r_{ti}^2\left(2\sum_{s\le t}r_{si}^2\nabla_{si}^2\right)^{-1/2}$. The distances $r_{ti}$, which never
    shrink, are at least $d_tw_i$, where $w_i$ is the length of the interval; half of the way from the start to the
    decision; and half of $w_i$ once the decision has gone to an end of the interval. d begins as `first` and is at most
    `most`. As in D-adaptation (Defazio and Mishchenko, 2023) it grows by what convexity proves: for every z of the box
    that is no worse than the decisions,
    $\sum d_s^2\langle\nabla_s,x_1-x_s\rangle\le\langle S,x_1-z\rangle\le\Phi(D)=\sum_i|S_i|\min(Dw_i,e_i)$ with
    $S=\sum d_s^2\nabla_s$, $e_i$ the way from the start to the end of the interval on the side of $-S_i$, and D the
    largest $|z-x_1|_i/w_i$. $\Phi$ is concave, so D is at least $d\,\frac{\text{left side}}{\Phi(d)}$ if that is more
    than d; then d becomes four times that. `memory`: sums forget, 1/memory of themselves a round.

    >>> import cocoax as cx
    >>> learner = cx.learners.PrimalDual(cx.primal.Tracked(cx.primal.DistanceBound()), cx.dual.RobustPI())
    """

    first: Float[Array, ""]
    most: Float[Array, ""]
    memory: Float[Array, ""] | None

    def __init__(self, first: Any = 2e-4, *, most: Any = 0.25, memory: Any = None):
        self.first = parameter(first, "first", 1e-9, 1)
        self.most = parameter(most, "most", 1e-9, 1)
        self.memory = rounds_remembered(memory)

    def init(self, domain, start):
        widths, dtype = interval_widths(domain, start), tree.dtype(start)
        first, zero = self.first.astype(dtype), jnp.zeros((), dtype)
        nothing = tree.zeros_like(start)
        lowest = domain.lmo(jax.tree.map(jnp.ones_like, start)).dense()
        far = tree.scale(first, widths)
        return DistanceBoundState(start, tree.sub(start, lowest), first, zero, far, nothing, nothing)

    def update(self, domain, state: DistanceBoundState, gradient, point, bounds=None):
        eta, state = self.advance(domain, state, gradient, tree.sub(point, state.start))
        return jax.tree.map(lambda eta, h: -eta * h, eta, gradient), state

    def advance(
        self, domain: AbstractDomain, state: DistanceBoundState, gradient: Point, moved: Point
    ) -> tuple[Point, DistanceBoundState]:
        """(eta, the new state), after a gradient at start + moved."""
        widths = interval_widths(domain, state.start)
        keep = discount(self.memory, state.gain.dtype)
        old = state.bound
        gain = keep * state.gain - old**2 * tree.dot(gradient, moved)
        sums = jax.tree.map(lambda total, h: keep * total + old**2 * h, state.sums, gradient)

        def reachable(total, width, below):
            room = jnp.where(total > 0, below, width - below)
            return (jnp.abs(total) * jnp.minimum(old * width, room)).sum()

        most_gain = functools.reduce(operator.add, jax.tree.leaves(jax.tree.map(reachable, sums, widths, state.below)))
        proven = old * ratio(gain, most_gain)
        bound = jnp.clip(_TIMES * proven, old, jnp.maximum(self.most.astype(old.dtype), old))

        def distance(far, width, moved, below):
            left = jnp.minimum(moved + below, width - below - moved)
            ended = (moved != 0) & (left <= _AT_END * width)
            gone = jnp.where(ended, width, jnp.abs(moved))
            return jnp.maximum(far, jnp.maximum(bound * width, _WENT * gone))

        far = jax.tree.map(distance, state.far, widths, moved, state.below)
        total = jax.tree.map(lambda total, r, h: keep * total + (r * h) ** 2, state.total, far, gradient)
        eta = jax.tree.map(lambda r, total: ratio(r**2, jnp.sqrt(2 * total)), far, total)
        return eta, DistanceBoundState(state.start, state.below, bound, gain, far, total, sums)


def interval_widths(domain: AbstractDomain, start: Point) -> Point:
    """The lengths of all intervals, in the dtype of the start."""
    widths = domain.intervals()
    if widths is None:
        raise DomainError(f"DistanceBound needs a product of intervals, as Box is one, got {type(domain).__name__}")
    return tree.astype(widths, tree.dtype(start))
