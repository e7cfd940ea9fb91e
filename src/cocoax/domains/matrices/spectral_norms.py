"""Balls of matrix norms whose LMO needs all singular values."""

from typing import Any

import equinox as eqx
import jax

from ...core.facts import DomainFacts, with_facts
from ..base import AbstractDomain
from ..vectors.balls import rescale
from ..vectors.norms import LpBall
from ..vertices import Dense
from .base import AbstractSingular, as_matrix_shape


class SchattenBall(AbstractSingular):
    r"""$X = \{x \in \mathbb{R}^{m\times n} : \sum_i \sigma_i(x)^p \le r^p\}$ for $1 \le p \le \infty$.

    The LMO is that of `LpBall` on the singular values of the direction, by one dense decomposition. For p = 1 it
    is the nuclear-norm ball, where `NuclearNormBall` is faster. Projections are known for p = 1, 2 and infinity.

    >>> import jax.numpy as jnp
    >>> ball = SchattenBall((2, 3), radius=5.0, p=2)
    >>> ball.lmo(jnp.array([[3.0, 0.0, 0.0], [0.0, -4.0, 0.0]])).dense().round(4).tolist()
    [[-3.0, 0.0, 0.0], [0.0, 4.0, 0.0]]
    """

    facts = DomainFacts("one decomposition")

    sizes: tuple[int, int] = eqx.field(static=True)
    values: LpBall

    def __init__(self, shape: Any, radius: Any, p: Any):
        self.sizes = as_matrix_shape(shape, "Schatten ball")
        self.values = LpBall(min(self.sizes), radius, p)

    def lmo(self, direction, guess=None):
        direction, _ = rescale(direction)
        with jax.default_matmul_precision("highest"):
            return Dense(self.with_spectrum(lambda values: self.values.lmo(values).dense(), direction))

    def project(self, x):
        return super().project(x) if self.values.plain is not None else AbstractDomain.project(self, x)


@with_facts(DomainFacts("one decomposition"))
def SpectralNormBall(shape: Any, radius: Any) -> SchattenBall:
    r"""$X = \{x \in \mathbb{R}^{m\times n} : \max_i \sigma_i(x) \le r\}$, whose vertices are r times isometries.

    The LMO is $-r\,UV^\top$ for $U\Sigma V^\top = d$, the orthogonal factor of the direction.

    >>> import jax.numpy as jnp
    >>> ball = SpectralNormBall((2, 2), radius=2.0)
    >>> ball.lmo(jnp.array([[0.0, 3.0], [1.0, 0.0]])).dense().round(4).tolist()
    [[0.0, -2.0], [-2.0, 0.0]]
    """
    return SchattenBall(shape, radius, float("inf"))
