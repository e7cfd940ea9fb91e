"""Affine functions below the loss and the constraints of all rounds so far: proofs that hold for every learner."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import tree
from ..core.sums import compensated_add
from ..domains.base import AbstractDomain, Point
from ..errors import ProblemError
from .problem import Problem, Round

_BATCH = 32  # rounds whose slopes are added up before they go into the sum: large arrays are then read half as often
_MOST = 8.0  # times the mean multiplier
_NARROWER = 4  # times, with one LMO each


class _Sums(eqx.Module):
    loss: Float[Array, ""]  # sum of f_s(x_s), with the cost of movement
    offset: Float[
        Array, " n"
    ]  # sum of h_s(x_s) - <grad h_s(x_s), x_s>, for the n = m + 1 functions h = f, g_1, ..., g_m
    slope: Point  # sum of grad h_s(x_s), along a leading axis
    multiplier: Float[Array, " m"]  # sum of those that were played
    constraint: Float[Array, " m"]  # sum of g_s(x_s), with what movement adds


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
        """Those of no rounds, for decisions like this one."""
        if tree.has_element(like):
            raise ProblemError("a certificate needs decisions that are written down, not factored matrices")
        m, kind = problem.constraints, tree.dtype(like)
        slope = jax.tree.map(lambda leaf: jnp.zeros((m + 1, *leaf.shape), leaf.dtype), like)
        sums = _Sums(jnp.zeros((), kind), jnp.zeros(m + 1, kind), slope, jnp.zeros(m, kind), jnp.zeros(m, kind))
        return cls(sums, sums, jnp.zeros((), jnp.int32))

    def with_round(self, problem: Problem, x: Point, round: Round, outcome: Any) -> "Minorants":
        """After a round in which x was played, with this outcome (whose values count movement)."""
        offset, slope = tangents(problem, x, round)
        added = _Sums(outcome.loss, offset, None, outcome.multiplier, outcome.constraint)
        small, small_lost = (eqx.tree_at(lambda s: s.slope, each, None) for each in (self.sums, self.lost))
        pairs = jax.tree.map(compensated_add, small, small_lost, added)
        sums, lost = jax.tree.transpose(jax.tree.structure(added), jax.tree.structure((0, 0)), pairs)
        slopes = tree.sub(self.lost.slope, slope)
        (total, slopes), _ = jax.lax.while_loop(  # once or never
            lambda state: state[1],
            lambda state: (_settled(*state[0]), jnp.asarray(False)),
            ((self.sums.slope, slopes), self.rounds % _BATCH == _BATCH - 1),
        )
        sums, lost = (
            _Sums(each.loss, each.offset, slope, each.multiplier, each.constraint)
            for each, slope in ((sums, total), (lost, slopes))
        )
        return Minorants(sums, lost, self.rounds + 1)

    @property
    def slope(self) -> Point:
        """The sum of all gradients."""
        return tree.sub(self.sums.slope, self.lost.slope)

    def __add__(self, other: "Minorants") -> "Minorants":
        """Those of both together."""
        return jax.tree.map(jnp.add, self, other)

    @property
    def like(self) -> Point:
        """Something of a decision's form."""
        return jax.tree.map(lambda leaf: leaf[0], self.sums.slope)

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
        """No feasible x has a total loss below this, for any multiplier. `guess`: a vertex that may be the lowest."""
        return self._lowest(domain, jnp.concatenate([jnp.ones_like(multiplier, shape=1), multiplier]), guess)

    def regret_bound(self, domain: AbstractDomain, multiplier: Any, guess: Any = None) -> Float[Array, ""]:
        """The regret against every feasible x is at most this, for any multiplier."""
        return self.sums.loss - self.lower_bound(domain, multiplier, guess)

    def least_violation(self, domain: AbstractDomain, multiplier: Any) -> Float[Array, ""]:
        """<multiplier, sum_s g_s(x)> is at least this for all x in X: if it is positive, no x is feasible."""
        return self._lowest(domain, jnp.concatenate([jnp.zeros_like(multiplier, shape=1), multiplier]))

    def good_multiplier(self, domain: AbstractDomain) -> tuple[Float[Array, " m"], Any]:
        """The best multiple of the mean multiplier that a few LMOs find, in compiled code; and a vertex for it.

        The lower bound is concave along it, and below the line that each vertex gives: the next multiple is where two
        lines meet, one rising and one falling.
        """
        direction, slopes = self.mean_multiplier, self.slope
        of_loss = jax.tree.map(lambda leaf: leaf[0], slopes)
        of_constraints = tree.combine(direction, jax.tree.map(lambda leaf: leaf[1:], slopes))

        def line(multiple, guess):
            """(height at 0, slope, value), and the vertex."""
            vertex = domain.lmo(tree.add(of_loss, tree.scale(multiple, of_constraints)), guess)
            height = self.sums.offset[0] + vertex.dot(of_loss)
            slope = direction @ self.sums.offset[1:] + vertex.dot(of_constraints)
            return (height, slope, height + multiple * slope), vertex

        def narrower(_, carry):
            rising, falling, best, guess = carry
            gap = rising[1] - falling[1]
            multiple = jnp.clip(tree.ratio(falling[0] - rising[0], gap), 0, _MOST)
            found, guess = line(multiple, guess)
            rising, falling = (
                tree.where(is_it, found, old) for is_it, old in ((found[1] > 0, rising), (found[1] <= 0, falling))
            )
            return rising, falling, tree.where(found[2] > best[0], (found[2], multiple), best), guess

        zero, most = jnp.zeros_like(self.sums.loss), jnp.full_like(self.sums.loss, _MOST)
        first, guess = line(zero, tree.astype(domain.vertex(), zero.dtype))
        last, guess = line(most, guess)
        best = tree.where(first[2] > last[2], (first[2], zero), (last[2], most))
        *_, (_, multiple), guess = jax.lax.fori_loop(0, _NARROWER, narrower, (first, last, best, guess))
        return multiple * direction, guess

    def at(self, y: Point) -> Float[Array, " n"]:
        """The minorants of the loss and of the constraints at y."""
        return self.sums.offset + jax.vmap(lambda slope: tree.dot(slope, y))(self.slope)

    def _lowest(self, domain, weights, guess=None):
        return weights @ self.sums.offset + domain.lowest(tree.combine(weights, self.slope), guess)


def _settled(total, lost):
    """The same pair, in which only rounding is left for the second."""
    new = tree.sub(total, lost)
    return new, tree.add(tree.sub(new, total), lost)


def tangents(problem: Problem, x: Point, round: Round) -> tuple[Float[Array, " n"], Point]:
    """(offsets, slopes) of the tangents at x of the loss and of each constraint, for decisions that stay."""
    value, values = problem.values(x, round, x)
    of_loss, of_constraints = problem.gradients(x, round)
    slope = jax.tree.map(lambda f, g: jnp.concatenate([f[None], g]), of_loss, of_constraints)
    return jnp.concatenate([value[None], values]) - jax.vmap(lambda one: tree.dot(one, x))(slope), slope
