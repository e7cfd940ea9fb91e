"""Extreme eigenvectors and singular pairs, from products only: Krylov spaces and powers."""

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_STEPS = 32
_RESTARTS = 100
_NUDGE = 0.01


class Ritz(NamedTuple):
    """The best eigenvector that a Krylov space holds."""

    vector: Float[Array, " n"]
    residual: Float[Array, ""]  # |A q - theta q| / |A|


def lanczos(product: Callable, first: Float[Array, " n"], steps: int) -> Ritz:
    r"""The top Ritz pair $(\theta, q)$ of A on $\mathrm{span}\{q_1, Aq_1, \dots, A^{k-1}q_1\}$.

    If the space has fewer dimensions than steps, the missing vectors are zero, and their diagonal entries lie
    below the Rayleigh quotient of $q_1$: none can pass for the top.
    """
    basis, images, missing = _krylov_space(product, first, steps)
    restricted = basis @ images.T
    quotient = restricted[0, 0]
    below = quotient - 1 - jnp.abs(quotient)
    values, vectors = jnp.linalg.eigh(restricted + jnp.diag(jnp.where(missing, below, 0)))
    vector, image = vectors[:, -1] @ basis, vectors[:, -1] @ images
    largest = jnp.max(jnp.linalg.norm(images, axis=1))
    residual = jnp.linalg.norm(image - values[-1] * vector) / jnp.where(largest > 0, largest, 1)
    return Ritz(unit(vector), residual)


def top_eigenvector(product: Callable, first: Float[Array, " n"]) -> Float[Array, " n"]:
    """Lanczos, restarted until the relative residual, which bounds the eigenvalue's error, is at rounding."""
    tolerance = max(1e-9, 8 * float(jnp.finfo(first.dtype).eps))

    def go_on(state):
        ritz, restarts = state
        return (ritz.residual > tolerance) & (restarts < _RESTARTS)

    def restart(state):
        ritz, restarts = state
        return lanczos(product, ritz.vector, _STEPS), restarts + 1

    unknown = Ritz(first, jnp.asarray(jnp.inf, first.dtype))
    ritz, _ = jax.lax.while_loop(go_on, restart, (unknown, jnp.asarray(0)))
    return ritz.vector


def ritz_range(product: Callable, first: Float[Array, " n"], steps: int):
    """The lowest and highest Ritz values on the Krylov space of `first`: both lie between A's eigenvalues."""
    basis, images, missing = _krylov_space(product, first, steps)
    restricted = basis @ images.T
    values = jnp.linalg.eigvalsh(restricted + jnp.diag(jnp.where(missing, restricted[0, 0], 0)))
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
    """Products with the matrix over |matrix first|_inf and with its transpose, and whether that is zero.

    Vectors are scaled, since another pass over the matrix would cost as much as a product.
    """
    largest = jnp.max(jnp.abs(matrix @ first))
    zero = largest <= jnp.finfo(matrix.dtype).tiny
    largest = jnp.where(zero, 1, largest)
    return lambda x: (matrix @ x) / largest, lambda x: (x @ matrix) / largest, zero


def nudged(guess: Array, dtype) -> Array:
    """The guess with a little fixed randomness: one orthogonal to the answer would otherwise never turn."""
    return (guess + _NUDGE * fixed_directions(guess.shape)).astype(dtype)


def fixed_directions(shape: tuple[int, ...], seed=0) -> Array:
    """A unit vector, or a matrix of unit columns, in general position."""
    drawn = np.random.default_rng(seed).standard_normal(shape)
    return jnp.asarray(drawn / np.linalg.norm(drawn, axis=0))


def unit(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """x / |x|, or 0 at 0."""
    length = jnp.linalg.norm(x)
    return x / jnp.where(length > 0, length, 1)


def _krylov_space(product, first, steps):
    """An orthonormal basis as rows, its images, and which rows are missing, since the space has fewer dimensions."""
    steps = min(steps, first.size)

    def extend(k, spaces):
        basis, images = spaces
        vector = _new_direction(images[k - 1], basis)
        return basis.at[k].set(vector), images.at[k].set(product(vector))

    empty = jnp.zeros((steps, first.size), first.dtype)
    spaces = empty.at[0].set(first), empty.at[0].set(product(first))
    basis, images = jax.lax.fori_loop(1, steps, extend, spaces)
    return basis, images, jnp.all(basis == 0, axis=1)


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
