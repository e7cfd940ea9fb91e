"""Affine functions below the loss and the constraints of all rounds so far: proofs that hold for every learner."""

import contextlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import tree
from ..core.sums import compensated_add
from ..domains.base import AbstractDomain, Point
from ..errors import DomainError, ProblemError
from .problem import Problem, Round

_BATCH, _LARGE = 32, 1024  # rounds whose slopes are first added up alone, of so many entries: see `_batch`
_EVALUATED = 4  # roundings of a sum that is evaluated
_MOST = 8.0  # times the mean multiplier
_NARROWER = 4  # times at most, with one LMO each
_CLOSE = 0.02  # of the bound: what a better multiplier must be able to gain


class _Sums(eqx.Module):
    loss: Float[Array, ""]  # sum of f_s(x_s), with the cost of movement
    # sum of h_s(x_s) - <grad h_s(x_s), x_s>, for the n = m + 1 functions h = f, g_1, ..., g_m
    offset: Float[Array, " n"]
    # sum of grad f_s(x_s), and of all grad g_s(x_s) along a leading axis; apart, as to stack them takes time
    slope: tuple[Point, Point] | Any
    multiplier: Float[Array, " m"]  # sum of those that were played
    constraint: Float[Array, " m"]  # sum of g_s(x_s), with what movement adds
    # what rounds: sums of |h_s(x_s)|, and of |grad h_s(x_s)| times a length that no point of X has
    size: Float[Array, "2 n"]


class Minorants(eqx.Module):
    r"""Sums over rounds, by which regret is known without a second pass over them.

    A convex h lies above its tangents: $h_s(x)\ge h_s(x_s)+\langle\nabla h_s(x_s),x-x_s\rangle$. Summed over rounds,
    $\sum_sf_s(x)\ge c_0+\langle S_0,x\rangle$ and $\sum_sg_{s,i}(x)\ge c_i+\langle S_i,x\rangle$. So for every x in X
    with $\sum_sg_s(x)\le0$, and all $\lambda\ge0$,

    $\sum_sf_s(x) \ge c_0+\sum_i\lambda_ic_i+\min_{y\in X}\left\langle S_0+\sum_i\lambda_iS_i,\,y\right\rangle$

    which takes one LMO. And if the same is positive without $c_0$ and $S_0$, no such x exists. Sums are compensated.
    With movement, the tangents are those of decisions that stay, as a fixed decision does.
    """

    sums: _Sums
    lost: _Sums  # what rounding has taken from them; of slopes also, with a minus, those of the last few rounds
    rounds: Int[Array, ""]

    @classmethod
    def none(cls, problem: Problem, like: Point) -> "Minorants":
        """The sums over no rounds, for decisions like `like`."""
        if tree.has_element(like):
            raise ProblemError("a certificate needs decisions that are written down, not factored matrices")
        m, kind = problem.constraints, tree.dtype(like)
        slope = tree.zeros_like(like), jax.tree.map(lambda leaf: jnp.zeros((m, *leaf.shape), leaf.dtype), like)
        of_constraints, of_all = jnp.zeros(m, kind), jnp.zeros(m + 1, kind)
        sums = _Sums(jnp.zeros((), kind), of_all, slope, of_constraints, of_constraints, jnp.stack([of_all, of_all]))
        return cls(sums, sums, jnp.zeros((), jnp.int32))

    def with_round(self, problem: Problem, x: Point, round: Round, outcome: Any) -> "Minorants":
        """The sums after one more round, in which x was played; the values in `outcome` include movement."""
        values, at_x, loss_gradient, constraint_gradients = _tangents(problem, x, round)
        size = _sizes(problem.domain, x, values, loss_gradient, constraint_gradients)
        added = _Sums(outcome.loss, values - at_x, None, outcome.multiplier, outcome.constraint, size)
        small, small_lost = (eqx.tree_at(lambda s: s.slope, each, None) for each in (self.sums, self.lost))
        pairs = jax.tree.map(compensated_add, small, small_lost, added)
        sums, lost = jax.tree.transpose(jax.tree.structure(added), jax.tree.structure((0, 0)), pairs)
        slopes = tree.sub(self.lost.slope, (loss_gradient, constraint_gradients))
        (total, slopes), _ = jax.lax.while_loop(  # once or never
            lambda state: state[1],
            lambda state: (_settled(*state[0]), jnp.asarray(False)),
            ((self.sums.slope, slopes), (self.rounds + 1) % _batch(x) == 0),
        )
        sums, lost = (
            eqx.tree_at(lambda s: s.slope, each, slope, is_leaf=lambda node: node is None)
            for each, slope in ((sums, total), (lost, slopes))
        )
        return Minorants(sums, lost, self.rounds + 1)

    def cautious(self, domain: AbstractDomain, eps: float) -> "Minorants":
        """The same minorants, lowered by a bound on their rounding errors.

        `eps` is the relative rounding error of the rounds' own numbers; the rounding of <slope, y> is included. The
        bound uses `size`, a sum of magnitudes, so that cancellation cannot hide an error.
        """
        kind = self.sums.size.dtype
        reach = tree.norm(domain.start()).astype(kind) + _diameter(domain).astype(kind)
        here = _EVALUATED * float(jnp.finfo(kind).eps)
        roundings = 1 + (1 + _batch(self.like)) / 2  # of a slope: its own, and half a bit for each sum
        of_rounds = eps * (self.sums.size[0] + roundings * self.sums.size[1])
        slack = of_rounds + here * (jnp.abs(self.sums.offset) + reach * jax.vmap(tree.norm)(self.slope))
        return eqx.tree_at(lambda one: one.sums.offset, self, self.sums.offset - slack)

    @property
    def slope(self) -> Point:
        """The sums of all gradients, of f and then of each g, along a leading axis."""
        return _stacked(*tree.sub(self.sums.slope, self.lost.slope))

    def __add__(self, other: "Minorants") -> "Minorants":
        """The sums over both sets of rounds."""
        return jax.tree.map(jnp.add, self, other)

    @property
    def like(self) -> Point:
        """Something of a decision's form."""
        return self.sums.slope[0]

    @property
    def total_loss(self) -> Float[Array, ""]:
        """The sum of all losses as they were played."""
        return self.sums.loss

    @property
    def violation(self) -> Float[Array, " m"]:
        """The sum of all constraints as they were played."""
        return self.sums.constraint

    @property
    def mean_multiplier(self) -> Float[Array, " m"]:
        """The mean of the multipliers that were played."""
        return jnp.maximum(self.sums.multiplier / jnp.maximum(self.rounds, 1).astype(self.sums.loss.dtype), 0)

    def lower_bound(self, domain: AbstractDomain, multiplier: Any, guess: Any = None) -> Float[Array, ""]:
        """A lower bound on the total loss of every feasible x, valid for any multiplier >= 0.

        `guess` is a vertex that may be the minimiser.
        """
        return self._lowest(domain, jnp.concatenate([jnp.ones_like(multiplier, shape=1), multiplier]), guess)

    def regret_bound(self, domain: AbstractDomain, multiplier: Any, guess: Any = None) -> Float[Array, ""]:
        """An upper bound on the regret against every feasible x, valid for any multiplier >= 0.

        It is infinite if a sum is not finite, for example after an overflow.
        """
        bound = self.sums.loss - self.lower_bound(domain, multiplier, guess)
        return jnp.where(jnp.isfinite(bound), bound, jnp.inf)

    def good_regret_bound(self, domain: AbstractDomain, limit: Any = lambda multiplier: multiplier) -> Float[Array, ""]:
        """`regret_bound` at a good multiplier, with rounding errors included; works in compiled code.

        `limit` maps that multiplier to the one that is used.
        """
        cautious = self.cautious(domain, float(jnp.finfo(self.sums.loss.dtype).eps))
        multiplier, vertex = cautious.good_multiplier(domain)
        return cautious.regret_bound(domain, limit(multiplier), vertex)

    def least_violation(self, domain: AbstractDomain, multiplier: Any) -> Float[Array, ""]:
        """A lower bound on <multiplier, sum_s g_s(x)> over X. If it is positive, no x is feasible."""
        return self._lowest(domain, jnp.concatenate([jnp.zeros_like(multiplier, shape=1), multiplier]))

    def good_multiplier(self, domain: AbstractDomain) -> tuple[Float[Array, " m"], Any]:
        """(multiplier, vertex): the best multiple of the mean multiplier that a few LMO calls find; in compiled code.

        Along the multiple the lower bound is concave, and each vertex gives a line above it. From two multiples, the
        next one is where a rising and a falling line meet.
        """
        direction, slopes = self.mean_multiplier, self.slope
        loss_slope = jax.tree.map(lambda leaf: leaf[0], slopes)
        constraint_slope = tree.combine(direction, jax.tree.map(lambda leaf: leaf[1:], slopes))

        def line(multiple, guess):
            """(height at multiple 0, slope, value at `multiple`) of the line that the best vertex gives, and that
            vertex.
            """
            vertex = domain.lmo(tree.add(loss_slope, tree.scale(multiple, constraint_slope)), guess)
            height = self.sums.offset[0] + vertex.dot(loss_slope)
            slope = direction @ self.sums.offset[1:] + vertex.dot(constraint_slope)
            return (height, slope, height + multiple * slope), vertex

        def meeting(rising, falling):
            """Where two lines meet, and how high: no multiple gives more."""
            multiple = jnp.clip(tree.ratio(falling[0] - rising[0], rising[1] - falling[1]), 0, _MOST)
            return multiple, jnp.minimum(*(one[0] + multiple * one[1] for one in (rising, falling)))

        def may_gain(carry):
            step, rising, falling, (value, _), _ = carry
            gain = meeting(rising, falling)[1] - value
            return (step < _NARROWER) & (gain > _CLOSE * jnp.abs(self.sums.loss - value))

        def narrower(carry):
            """One step: try the multiple where the two lines meet, and keep the line that it gives."""
            step, rising, falling, best, guess = carry
            multiple, _ = meeting(rising, falling)
            found, guess = line(multiple, guess)
            rising, falling = (
                tree.where(is_it, found, old) for is_it, old in ((found[1] > 0, rising), (found[1] <= 0, falling))
            )
            return step + 1, rising, falling, tree.where(found[2] > best[0], (found[2], multiple), best), guess

        one, vertex = jnp.ones_like(self.sums.loss), tree.astype(domain.vertex(), self.sums.loss.dtype)
        if not len(direction):
            return direction, domain.lmo(loss_slope, vertex)
        middle, vertex = line(one, vertex)
        rises = middle[1] > 0
        other = jnp.where(rises, _MOST, 0).astype(one.dtype)
        end, vertex = line(other, vertex)
        rising, falling = (tree.where(is_it, middle, end) for is_it in (rises, ~rises))
        best = tree.where(middle[2] > end[2], (middle[2], one), (end[2], other))
        begin = jnp.zeros((), jnp.int32), rising, falling, best, vertex
        *_, (_, multiple), vertex = jax.lax.while_loop(may_gain, narrower, begin)
        return multiple * direction, vertex

    def at(self, y: Point) -> Float[Array, " n"]:
        """The values at y of the minorants of the loss and of each constraint."""
        return self.sums.offset + jax.vmap(lambda slope: tree.dot(slope, y))(self.slope)

    def _lowest(self, domain, weights, guess=None):
        return weights @ self.sums.offset + domain.lowest(tree.combine(weights, self.slope), guess)


def _batch(x: Point) -> int:
    """How many rounds' slopes are collected before they are added to the total.

    More than one for large decisions, whose arrays are then read less often.
    """
    return _BATCH if tree.size(x) > _LARGE else 1


def _settled(total, lost):
    """A compensated sum (total, lost) with the same value, whose second part is only rounding error."""
    new = tree.sub(total, lost)
    return new, tree.add(tree.sub(new, total), lost)


def _stacked(loss_gradient, constraint_gradients):
    """The slopes of the loss and of the constraints, along one leading axis."""
    return jax.tree.map(lambda f, g: jnp.concatenate([f[None], g]), loss_gradient, constraint_gradients)


def tangents(problem: Problem, x: Point, round: Round) -> tuple[Float[Array, " n"], Point]:
    """(offsets, slopes) of tangents at x that lie below the loss and each constraint, for decisions that do not move.

    Offsets are lowered by a bound on rounding errors, as in `Minorants.cautious`.
    """
    values, at_x, loss_gradient, constraint_gradients = _tangents(problem, x, round)
    size, offset = _sizes(problem.domain, x, values, loss_gradient, constraint_gradients), values - at_x
    slack = size[0] + (2 + _EVALUATED) * size[1] + _EVALUATED * jnp.abs(offset)
    return offset - float(jnp.finfo(offset.dtype).eps) * slack, _stacked(loss_gradient, constraint_gradients)


def _sizes(domain, x, values, loss_gradient, constraint_gradients):
    """(2, n): |h(x)| for the loss and each constraint, and a bound on |<grad h(x), y>| over X.

    Rounding errors are proportional to these.
    """
    lengths = jnp.concatenate([tree.norm(loss_gradient)[None], jax.vmap(tree.norm)(constraint_gradients)])
    reach = tree.norm(x) + _diameter(domain).astype(lengths.dtype)
    return jnp.stack([jnp.abs(values), reach * lengths])


def _tangents(problem, x, round):
    """(values at x, <slopes, x>, slope of the loss, slopes of the constraints)."""
    value, values = problem.values(x, round, x)
    loss_gradient, constraint_gradients = problem.gradients(x, round)
    at_x = problem.derivative(x, round, x)
    if at_x is None:
        at_x = tree.dot(loss_gradient, x), jax.vmap(lambda slope: tree.dot(slope, x))(constraint_gradients)
    values, at_x = (jnp.concatenate([of_f[None], of_g]) for of_f, of_g in ((value, values), at_x))
    return values, at_x, loss_gradient, constraint_gradients


def _diameter(domain):
    """The domain's l2 diameter, or its l1 diameter, which is larger; 0 if neither is known."""
    for ord in (2, 1):
        with contextlib.suppress(DomainError):
            return jnp.asarray(domain.diameter(ord))
    return jnp.zeros(())
