"""Extreme eigenvectors and singular pairs by matrix-vector products only: Krylov spaces and powers."""

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

MOST_AT_ONCE = 4
_STEPS = 32
_KEPT = 16
_NUDGE = 0.01
_SEED = 2  # vertices hold the directions of other seeds: no search begins at one


class Ritz(NamedTuple):
    """The best eigenvectors that a space holds, the best first, and how far that one is from being one."""

    vectors: Float[Array, "k n"]
    images: Float[Array, "k n"]
    rest: Float[Array, " n"]  # A q - theta q
    residual: Float[Array, ""]  # |A q - theta q| / |A|


def lanczos(product: Callable, first: Float[Array, " n"], steps: int) -> Float[Array, " n"]:
    r"""The top Ritz vector of A on $\mathrm{span}\{q_1, Aq_1, \dots, A^{k-1}q_1\}$."""
    nothing = jnp.zeros((0, first.size), first.dtype)
    basis, images = _krylov_space(product, first, steps, nothing, nothing)
    return unit(_ritz(basis, images, 1).vectors[0])


def top_eigenvector(product: Callable, decompose: Callable, n: int, dtype) -> Float[Array, " n"]:
    r"""Lanczos with thick restarts (Wu, Simon, 2000), or `decompose()` once that would have been cheaper.

    A restart keeps the best Ritz vectors, and goes on from the residual of the first. A search stops if that is at
    rounding, which bounds the distance to *some* eigenvalue. To be the top one is then almost certain, not proven:
    every restart also looks into a new fixed random direction, and one restart at least is made. A decomposition
    takes about as long as n products: where a search has made so many, the top eigenvalues lie too close together.
    """
    tolerance = max(1e-9, 16 * float(jnp.finfo(dtype).eps))
    key = jax.random.key(_SEED)

    def converged(ritz):
        return ritz.residual <= tolerance

    def go_on(state):
        ritz, restarts = state
        return (restarts < 2) | (~converged(ritz) & (restarts * _STEPS < n))

    def restart(state):
        ritz, restarts = state
        drawn = unit(jax.random.normal(jax.random.fold_in(key, restarts), (n,), dtype))
        first = _new_direction(unit(ritz.rest) + _NUDGE * drawn, ritz.vectors)
        basis, images = _krylov_space(product, first, _STEPS, ritz.vectors, ritz.images)
        return _ritz(basis, images, _KEPT), restarts + 1

    nothing = jnp.zeros((_KEPT, n), dtype)
    unknown = Ritz(nothing, nothing, nothing[0], jnp.asarray(jnp.inf, dtype))
    ritz, _ = jax.lax.while_loop(go_on, restart, (unknown, jnp.asarray(0)))
    # a loop, because in a batch both sides of a condition are always computed
    vector, _ = jax.lax.while_loop(
        lambda state: ~state[1], lambda _: (decompose(), jnp.asarray(True)), (unit(ritz.vectors[0]), converged(ritz))
    )
    return vector


def ritz_range(product: Callable, first: Float[Array, " n"], steps: int):
    """The lowest and highest Ritz values on the Krylov space of `first`: both lie between A's eigenvalues."""
    nothing = jnp.zeros((0, first.size), first.dtype)
    basis, images = _krylov_space(product, first, steps, nothing, nothing)
    restricted = basis @ images.T
    values = jnp.linalg.eigvalsh(restricted + jnp.diag(jnp.where(_missing(basis), restricted[0, 0], 0)))
    return values[0], values[-1]


def ritz_gap(n: int, steps: int, failure):
    r"""The $\epsilon$ with which $\xi < (1-\epsilon)\lambda_1$ has at most the probability `failure`.

    $\xi$ is the top Ritz value of $0 \preceq A \in \mathbb{S}^n$ after k steps from a uniform unit vector b
    (Kuczynski, Wozniakowski, 1992). Testing the Krylov space with Chebyshev's polynomial
    $T_{2k-1}(\sqrt{t})/\sqrt{t}$ shows that then $|b_1| < 1/\cosh((2k-1)\,\mathrm{artanh}\sqrt\epsilon)$, and
    $P(|b_1| < \tau) \le \tau\sqrt{2n/\pi}$.
    """
    steps = min(steps, n)
    odds = jnp.maximum(jnp.sqrt(2 * n / jnp.pi) / failure, 1)
    return jnp.tanh(jnp.arccosh(odds) / (2 * steps - 1)) ** 2


def golub_kahan(forward: Callable, backward: Callable, first: Float[Array, " n"], steps: int):
    r"""Unit (u, v) with the largest $u^\top C v$ for u in $\mathrm{span}\{Cv_1, (CC^\top)Cv_1, \dots\}$.

    Each step takes one product with C and one with its transpose.
    """
    lefts = unit(forward(first))[None]
    images = backward(lefts[0])[None]
    for _ in range(1, min(steps, lefts.size)):
        left = _new_direction(forward(unit(images[-1])), lefts)
        lefts, images = jnp.vstack([lefts, left]), jnp.vstack([images, backward(left)])
    weights = _perron(images @ images.T)
    return unit(weights @ lefts), unit(weights @ images)


def golub_kahan_at_once(both: Callable, first: Float[Array, " n"], steps: int):
    r"""`golub_kahan`, and whether C is 0, by one call of `both` a step: $x, s \mapsto (Cx/s, C^\top Cx/s^2, s)$, where
    the first call finds s.

    New left directions are what is new in products, and their images follow by linearity, with fewer digits the less
    is new. Once half of them are lost, there is no other direction: that can be soon after `MOST_AT_ONCE` steps.
    """
    left, image, scale = both(first, None)
    rights, lefts, images = first[None], unit(left)[None], (image / _divisor(left))[None]
    new = 1
    for _ in range(1, steps):
        rights = jnp.vstack([rights, unit(image - (rights @ image) @ rights)])
        left, image, _ = both(rights[-1], scale)
        shares = lefts @ left
        rest, of_rest = left - shares @ lefts, image - shares @ images
        new = new * jnp.linalg.norm(rest) / _divisor(left)
        factor = jnp.where(new > jnp.finfo(first.dtype).eps ** 0.5, 1 / _divisor(rest), 0)
        lefts, images = jnp.vstack([lefts, factor * rest]), jnp.vstack([images, factor * of_rest])
    weights = _perron(images @ images.T)
    return unit(weights @ lefts), unit(weights @ images), scale <= jnp.finfo(first.dtype).tiny


def block_krylov(product: Callable, first: Float[Array, "n k"], blocks: int) -> Float[Array, "n k"]:
    r"""The lowest k Ritz vectors of A on $\mathrm{span}\{Q, AQ, \dots, A^{b-1}Q\}$, where bk must not exceed n."""
    basis, k = first, first.shape[1]
    for _ in range(1, blocks):
        # Householder's QR gives orthonormal columns whatever the rank
        basis = jnp.linalg.qr(jnp.hstack([basis, product(basis[:, -k:])])).Q
    return basis @ jnp.linalg.eigh(basis.T @ product(basis)).eigenvectors[:, :k]


def power(product: Callable, first: Array, steps: int, normalise: Callable) -> Array:
    """The normalised products of `first`, one after the other."""
    for _ in range(steps):
        first = normalise(product(first))
    return first


def scaled_products(matrix, first):
    """Products of unit vectors with the matrix over |matrix first|_inf and with its transpose, and whether that is
    zero.

    Vectors are scaled, since another pass over the matrix would cost as much as a product, and made short, so that
    no product overflows.
    """
    short = 0.5 / max(matrix.shape) ** 0.5
    largest = jnp.max(jnp.abs(matrix @ (short * first)))
    zero = largest <= jnp.finfo(matrix.dtype).tiny
    largest = jnp.where(zero, 1, largest)
    return lambda x: (matrix @ (short * x)) / largest, lambda x: ((short * x) @ matrix) / largest, zero


def nudged(guess: Array, dtype) -> Array:
    """The guess with a little fixed randomness: one orthogonal to the answer would otherwise never turn."""
    return (guess + _NUDGE * fixed_directions(guess.shape, _SEED).astype(guess.dtype)).astype(dtype)


def fixed_directions(shape: tuple[int, ...], seed=0) -> Array:
    """A unit vector, or a matrix of unit columns, in general position."""
    drawn = np.random.default_rng(seed).standard_normal(shape)
    return jnp.asarray(drawn / np.linalg.norm(drawn, axis=0))


def unit(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """x / |x|, or 0 at 0."""
    return x / _divisor(x)


def _divisor(x):
    length = jnp.linalg.norm(x)
    return jnp.where(length > 0, length, 1)


def _krylov_space(product, first, steps, basis, images):
    """Orthonormal rows that span the given ones and a Krylov space, and their images. If the space has fewer
    dimensions than rows, the others are zero."""
    known, steps = len(basis), min(steps, first.size)

    def extend(k, spaces):
        basis, images = spaces
        vector = _new_direction(images[k - 1], basis)
        return basis.at[k].set(vector), images.at[k].set(product(vector))

    empty = jnp.zeros((steps, first.size), first.dtype)
    spaces = (
        jnp.concatenate([basis, empty.at[0].set(first)]),
        jnp.concatenate([images, empty.at[0].set(product(first))]),
    )
    return jax.lax.fori_loop(known + 1, known + steps, extend, spaces)


def _ritz(basis, images, count):
    """Zero rows count as eigenvectors below all others: none can pass for the top."""
    restricted = basis @ images.T
    below = jnp.where(_missing(basis), -1 - jnp.linalg.norm(restricted), 0)
    values, shares = jnp.linalg.eigh(restricted + jnp.diag(below))
    largest = jnp.max(jnp.linalg.norm(images, axis=1))
    best = shares.T[::-1][:count]
    vectors, images = best @ basis, best @ images
    rest = images[0] - values[-1] * vectors[0]
    return Ritz(vectors, images, rest, jnp.linalg.norm(rest) / jnp.where(largest > 0, largest, 1))


def _missing(basis):
    return jnp.all(basis == 0, axis=1)


def _new_direction(x, basis):
    """The direction of x without its part in the span of the rows, or 0 if nothing but rounding is left of it."""
    rest = x - (basis @ x) @ basis
    rest = rest - (basis @ rest) @ basis
    is_new = jnp.linalg.norm(rest) > 10 * jnp.finfo(x.dtype).eps * jnp.linalg.norm(x)
    return jnp.where(is_new, unit(rest), 0)


def _perron(matrix):
    """The top eigenvector of a small symmetric matrix with entries >= 0, from its power 2^16.

    Elementwise, because LAPACK takes a batch one by one, and a batched product of small matrices is no faster.
    """
    for _ in range(4):
        trace = jnp.trace(matrix)
        matrix = matrix / jnp.where(trace > 0, trace, 1)
        for _ in range(4):
            matrix = functools.reduce(operator.add, [jnp.outer(row, row) for row in matrix])
    return matrix.sum(axis=1)
