"""The top eigenvector of a symmetric operator that is known by its products only."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_STEPS = 32
_RESTARTS = 100


class Ritz(NamedTuple):
    """The best eigenvector that a Krylov space holds."""

    vector: Float[Array, " n"]
    residual: Float[Array, ""]  # |A q - theta q| / |A|


def lanczos(product: Callable, first: Float[Array, " n"], steps: int) -> Ritz:
    r"""The top Ritz pair $(\theta, q)$ of A on $\mathrm{span}\{q_1, Aq_1, \dots, A^{k-1}q_1\}$.

    The basis is orthogonalised fully. If the space has fewer dimensions than steps, the missing vectors are
    zero, and their diagonal entries lie below the Rayleigh quotient of $q_1$: none can pass for the top.
    """
    steps = min(steps, first.size)
    rounding = 10 * jnp.finfo(first.dtype).eps

    def extend(k, spaces):
        basis, images = spaces
        image = images[k - 1]
        rest = image - (basis @ image) @ basis
        rest = rest - (basis @ rest) @ basis
        is_new = jnp.linalg.norm(rest) > rounding * jnp.linalg.norm(image)
        vector = jnp.where(is_new, unit(rest), 0)
        return basis.at[k].set(vector), images.at[k].set(product(vector))

    empty = jnp.zeros((steps, first.size), first.dtype)
    spaces = empty.at[0].set(first), empty.at[0].set(product(first))
    basis, images = jax.lax.fori_loop(1, steps, extend, spaces)

    restricted = basis @ images.T
    quotient = restricted[0, 0]
    below = quotient - 1 - jnp.abs(quotient)
    missing = jnp.all(basis == 0, axis=1)
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


def unit(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """x / |x|, or 0 at 0."""
    length = jnp.linalg.norm(x)
    return x / jnp.where(length > 0, length, 1)
