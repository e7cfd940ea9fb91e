"""A sample of past requests, and the prices at which it would keep the constraints."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from ..core import tree
from ..core.tree import ratio
from ..domains.base import Point

_WIDE, _NARROW = 8.0, 8.0 ** (1 / 7)  # factors around the last price, and between two neighbours of that grid
_GOLDEN, _PLASTIC = 2654435769, 3242174889  # 2^32 over the golden ratio, and over the plastic number


class Sample(eqx.Module):
    """Requests of the past, linearised: of the loss <a, x>, of the constraints b + Bx."""

    loss: Float[Array, "n d"]  # a
    constraint: Float[Array, "n m d"]  # B
    offset: Float[Array, "n m"]  # b
    round: Int[Array, " n"]  # when it was seen; -1 for an empty place
    sizes: Float[Array, "n 1+m"]  # squared lengths of the tangent parts of a and B

    @classmethod
    def empty(cls, size: int, constraints: int, start: Point) -> "Sample":
        flat, _ = ravel_pytree(start)
        zeros = jnp.zeros((size, constraints, flat.size), flat.dtype)
        sizes = jnp.zeros((size, 1 + constraints), flat.dtype)
        return cls(
            zeros[:, 0] if constraints else sizes[:, :0], zeros, zeros[..., 0], jnp.full(size, -1, jnp.int32), sizes
        )

    def store(self, problem, expected, point: Point, number, place) -> "Sample":
        values = problem.values(point, expected)[1]
        loss_gradient, constraint_gradients = problem.gradients(point, expected)
        rows = jax.vmap(lambda gradient: ravel_pytree(gradient)[0])(constraint_gradients)
        tangent = problem.domain.tangent
        squares = jax.vmap(lambda gradient: tree.norm(tangent(gradient)) ** 2)(constraint_gradients)
        sizes = jnp.concatenate([(tree.norm(tangent(loss_gradient)) ** 2)[None], squares])
        offset = values - rows @ ravel_pytree(point)[0]
        new = Sample(ravel_pytree(loss_gradient)[0], rows, offset, number, sizes)
        return jax.tree.map(lambda old, one: old.at[place].set(one.astype(old.dtype), mode="drop"), self, new)

    def part(self, first, size: int) -> "Sample":
        """The requests from `first` on."""
        return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first, size), self)

    def weights(self, number, window) -> Float[Array, " n"]:
        """Shares of the requests, which fade with their age where there is a window."""
        there = (self.round >= 0).astype(self.loss.dtype)
        if window is not None:
            there = there * jnp.exp(-(number - self.round).astype(there.dtype) / window)
        return there / jnp.maximum(there.sum(), jnp.finfo(there.dtype).tiny)

    def spending(self, domain, unravel, weights, prices, of_loss=1.0) -> Float[Array, " m"]:
        """The mean of the constraints, where every request has its best answer at these prices."""
        directions = of_loss * self.loss + jnp.einsum("m,nmd->nd", prices, self.constraint)
        answers = jax.vmap(lambda one: ravel_pytree(domain.lmo(unravel(one)).dense())[0])(directions)
        return weights @ (self.offset + jnp.einsum("nmd,nd->nm", self.constraint, answers))

    def units(self, weights) -> Float[Array, " m"]:
        """Of prices: the size of the loss's gradients over that of the constraints'."""
        squares = weights @ self.sizes
        return ratio(jnp.sqrt(squares[0]), jnp.sqrt(squares[1:]))


def place(size: int, number, memory) -> Int[Array, ""]:
    """Where request `number` is stored of `size` places; beyond them if it is not: each of n is there in size / n.

    With a memory, old ones are replaced so fast that they are about three memories old. Which request replaces which is
    no accident: multiples of irrational numbers, modulo 1, are spread evenly. So a batch of games stores in the same
    rounds, and the others cost nothing.
    """
    rate = size / (number + 1).astype(float)
    if memory is not None:
        rate = jnp.maximum(rate, size / (3 * memory))
    place = jnp.where(number < size, number, (_spread(number, _PLASTIC) * size).astype(jnp.int32))
    return jnp.where((number < size) | (_spread(number, _GOLDEN) < rate), place, size)


def one_price(spending, target, price, unit):
    """The price of one constraint at which `spending` is `target`: two rounds of search around the last price.

    It moves by a factor of 8 at most, so that one odd request does not throw it far.
    """
    near = jnp.where(price > 0, jnp.clip(price, 1e-6 * unit, 1e6 * unit), unit)
    low, high, _ = _bracket(spending, target, near, _WIDE)
    low, high, spent = _bracket(spending, target, jnp.sqrt(low * high), _NARROW)
    share = jnp.clip(ratio(spent[0] - target, spent[0] - spent[1]), 0, 1)
    found = low * (high / low) ** share
    free = spending(jnp.zeros_like(price)[None])[0] <= target
    return jnp.where(free, 0, found)


def _bracket(spending, target, centre, factor):
    """Two neighbours of a grid of prices that have the target between them, if the grid has, and their spending."""
    grid = centre * factor ** jnp.linspace(-1, 1, 8, dtype=centre.dtype)
    spent = jax.vmap(lambda one: spending(one[None])[0])(grid)
    above = jnp.clip((spent > target).sum(), 1, 7)  # spending falls: the first prices are too low
    return grid[above - 1], grid[above], jnp.stack([spent[above - 1], spent[above]])


def several_prices(spending, target, prices, units, squares, rate, steps: int):
    """(prices, squares) after some steps of AdaGrad on the dual function, in the units of each price.

    `spending(prices, number)` is that of a part of the sample.
    """

    def step(number, carry):
        prices, squares = carry
        over = (spending(prices, number) - target) * units  # per unit of loss
        squares = 0.99 * squares + over**2
        move = rate * ratio(over, jnp.sqrt(squares)) * (units + prices)
        return jnp.maximum(prices + move, 0), squares

    return jax.lax.fori_loop(0, steps, step, (prices, squares))


def _spread(number, multiple: int) -> Float[Array, ""]:
    """A number in [0, 1): the fractional part of a multiple of an irrational number."""
    return (number.astype(jnp.uint32) * jnp.uint32(multiple)).astype(float) / 2.0**32


def unravel_like(point: Point) -> Any:
    return ravel_pytree(point)[1]
