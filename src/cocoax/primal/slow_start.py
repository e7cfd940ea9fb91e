"""Distances that begin small, double while that pays, and are taken back where it did not."""

import functools
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..core import tree
from ..core.parameters import discount, parameter, rounds_remembered
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from .steps import AbstractStep

_SURE = 1.5  # standard deviations of the sum of costs
_BELIEVED, _FASTEST = 0.25, 8.0  # share of what curvature shows, and how many times farther in a round
_ALIGNED = 0.25  # cosine of the way from the start with the way down, from which on curvature is believed


class SlowStartState(eqx.Module):
    """`far`, `good` and `total` are numbers; on boxes, one for each coordinate."""

    start: Point
    far: Any  # r, the distance to go
    good: Any  # r when `cost` was lowest
    total: Any  # sum of r^2 |h|^2
    cost: Float[Array, ""]  # sum of <h, x - start>: what playing cost more than the start would have
    squares: Float[Array, ""]  # of its terms
    lowest: Float[Array, ""]  # cost so far
    patience: Float[Array, ""]  # 4^k after k stops
    growing: Bool[Array, ""]

    def forget_costs(self, when) -> "SlowStartState":
        """Begin the sums anew, where gradients have got another unit."""
        sums = self.total, self.cost, self.squares, self.lowest
        begun = jax.tree.map(lambda leaf: jnp.where(when, 0, leaf), sums)
        return eqx.tree_at(lambda s: (s.total, s.cost, s.squares, s.lowest), self, begun)


class SlowStart(AbstractStep):
    r"""Distance over weighted gradients, from a distance that is too small rather than too large.

    $\eta_t = \bar r_t^2\left(2\sum_{s\le t}\bar r_s^2\|\nabla_s\|^2\right)^{-1/2}$, where $\bar r_t$ is at least the
    largest distance from the start so far. It begins at `first` times the diameter and doubles, up to `most` times
    the diameter, in rounds in which being farther from the start did not cost: $\langle\nabla_t,x_t-x_1\rangle\le0$.
    With $A=\sum\langle\nabla_s,x_s-x_1\rangle$ and $B$ the sum of its squared terms: if
    $A>1.5\sqrt B$, growing did not pay; then $\bar r$ goes back to its value where A was lowest, earlier $\bar r_s$
    shrink in proportion, and the target is taken back by as much as leads x to that distance. After k such stops,
    doubling goes on once $-A>2^k\sqrt B$. Stops and resumptions begin A and B anew. Where the set is a product of
    intervals (`domain.intervals`), all but the test is done for each coordinate by itself. `memory`: sums forget,
    1/memory of themselves a round. A caller that knows the curvature $\kappa$ along the gradient may give
    $\|\nabla_t\|/\kappa$, the way to the lowest point along it (`advance`): then the distance grows up to eight
    times a round, towards a quarter of that, in rounds in which the way from the start still leads down, by an angle
    of at most 75 degrees. (For squares, the round's optimum is at least so far away; losses with kinks may have a
    little curvature that says nothing.)

    Proven for `Tracked(SlowStart())`, on other sets and without memory: Regret $=O(T^{5/6})$ up to logarithms, for
    every sequence of convex losses (`theory.regret.slow_start`).

    >>> import cocoax as cx
    >>> learner = cx.learners.PrimalDual(cx.primal.Tracked(cx.primal.SlowStart()), cx.dual.RobustPI())
    """

    first: Float[Array, ""]
    most: Float[Array, ""]
    memory: Float[Array, ""] | None

    def __init__(self, first: Any = 1e-3, *, most: Any = 0.1, memory: Any = None):
        self.first = parameter(first, "first", 1e-9, 1)
        self.most = parameter(most, "most", 1e-9, 1)
        self.memory = rounds_remembered(memory)

    def init(self, domain, start):
        sizes, zero = widths(domain, start), jnp.zeros((), tree.dtype(start))
        first = jax.tree.map(lambda width: self.first.astype(width.dtype) * width, sizes)
        nothing = jax.tree.map(jnp.zeros_like, sizes)
        return SlowStartState(start, first, first, nothing, zero, zero, zero, zero + 1, jnp.ones((), bool))

    def update(self, domain, state: SlowStartState, gradient, point, bounds=None):
        moved = tree.sub(point, state.start)
        rate, back, state = self.advance(domain, state, gradient, moved)
        step = tree.add(scaled(domain, rate, gradient), scaled(domain, back, moved))
        return tree.scale(-1.0, step), state

    def advance(
        self, domain: AbstractDomain, state: SlowStartState, gradient: Point, moved: Point, ahead: Any = 0.0
    ) -> tuple[Any, Any, SlowStartState]:
        """(eta, what share to take back of the way from the start, the new state), after a gradient at start + moved.

        The first two are numbers; on boxes, one for each coordinate. `ahead` is the way to the lowest point along the
        gradient, where curvature shows one; else 0.
        """
        cost_now, length, distance = tree.dot(gradient, moved), _lengths(domain, gradient), _lengths(domain, moved)
        keep = discount(self.memory, state.cost.dtype)
        cost, squares = keep * state.cost + cost_now, keep * state.squares + cost_now**2

        better = state.growing & (cost <= state.lowest)
        good = jax.tree.map(
            lambda good, far, reached: jnp.where(better, jnp.maximum(far, reached), good),
            state.good,
            state.far,
            distance,
        )
        lowest = jnp.where(better, cost, state.lowest)
        farther = jax.tree.leaves(jax.tree.map(lambda far, good: jnp.any(far > good), state.far, good))
        above = jnp.where(state.growing, cost, -cost) * jnp.abs(cost)  # squares, to save roots
        far_off = above > jnp.where(state.growing, _SURE**2, state.patience) * squares
        stop = state.growing & far_off & functools.reduce(operator.or_, farther)
        resume = ~state.growing & far_off
        patience = jnp.where(stop, 4, 1) * state.patience
        growing = (state.growing & ~stop) | resume
        back = jax.tree.map(lambda good, d: jnp.where(stop, jnp.maximum(1 - ratio(good, d), 0), 0), good, distance)
        cost, squares, lowest = (jnp.where(stop | resume, 0, number) for number in (cost, squares, lowest))

        sizes = widths(domain, state.start)

        def grown(width, far, good, total, length, distance):
            total = keep * jnp.where(stop, total * ratio(good, far) ** 2, total)
            farther = jnp.where(cost_now < -_ALIGNED * length * distance, ratio(_BELIEVED * ahead, far), 0)
            times = jnp.where(total > 0, jnp.clip(farther, 2, _FASTEST), 1)
            longer = jnp.maximum(far, jnp.minimum(times * far, self.most.astype(far.dtype) * width))
            grows = growing & (length > 0) & (cost_now <= 0)
            far = jnp.where(stop, good, jnp.maximum(jnp.where(grows, longer, far), distance))
            total = total + (far * length) ** 2
            return far, jnp.where(resume, far, good), total, ratio(far**2, jnp.sqrt(2 * total))

        parts = jax.tree.map(grown, sizes, state.far, good, state.total, length, distance)
        far, good, total, rate = jax.tree.transpose(jax.tree.structure(sizes), jax.tree.structure((0,) * 4), parts)
        state = SlowStartState(state.start, far, good, total, cost, squares, lowest, patience, growing)
        return rate, back, state


def widths(domain: AbstractDomain, start: Point) -> Any:
    """The diameter of X; on boxes, the length of each interval."""
    intervals = domain.intervals()
    return tree.astype(jnp.asarray(domain.diameter(2)) if intervals is None else intervals, tree.dtype(start))


def _lengths(domain, x):
    """The length of x; on boxes, that of each entry."""
    return tree.norm(x) if domain.intervals() is None else jax.tree.map(jnp.abs, x)


def scaled(domain: AbstractDomain, factor: Any, x: Point) -> Point:
    """factor x, by a number; on boxes, entry by entry."""
    return tree.scale(factor, x) if domain.intervals() is None else jax.tree.map(jnp.multiply, factor, x)
