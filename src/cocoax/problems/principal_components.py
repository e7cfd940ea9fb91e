"""Online principal components that must not explain too much of something else."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core.facts import ProblemFacts, with_facts
from ..domains import Fantope
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem, Regularity
from .base import ExpectedLimit, Instance


def _loss(x, r):
    return -jnp.vdot(r["sample"], x @ r["sample"])


def _constraint(x, r):
    return jnp.vdot(r["other"], x @ r["other"]) - r["limit"]


class _Samples(eqx.Module):
    """Draws rounds with the fields `sample`, `other` and `limit`."""

    roots: Float[Array, "2 n n"]  # of the two covariances
    limit: Float[Array, ""]

    def __call__(self, key):
        noise = 3**0.5 * jax.random.uniform(key, self.roots.shape[:2], minval=-1, maxval=1)  # of variance 1
        sample, other = jnp.einsum("kij,kj->ki", self.roots, noise)
        return {"sample": sample, "other": other, "limit": self.limit}


@with_facts(ProblemFacts("a Fantope", "explained variance, a limit on another one"))
def online_pca(key: PRNGKeyArray, *, n: int = 16, k: int = 3) -> Instance:
    r"""$f_t(X) = -\langle a_ta_t^\top, X\rangle$ and $g_t(X) = \langle b_tb_t^\top, X\rangle - \rho$ over the Fantope.

    The k directions should explain much of the variance of $a_t$ and little of that of $b_t$, for example of something
    that the components must not reveal. Covariances have trace 1 and spectra $\propto 2^{-i}$. The directions of $b_t$
    are those of $a_t$, turned a little, so that the best directions break the constraint: $\rho$ is half of what they
    explain.

    >>> import jax
    >>> instance = online_pca(jax.random.key(0), n=6, k=2)
    >>> best = instance.comparator(instance.rounds(100, jax.random.key(1)), tol=1e-4)
    >>> bool(best.multiplier[0] > 0)
    True
    """
    if not 1 <= k < n:
        raise ProblemError(f"online_pca needs k between 1 and n - 1 = {n - 1}, got {k}")
    basis_key, turn_key = jax.random.split(key)
    raw = jax.random.normal(basis_key, (n, n))
    turned = raw + 0.3 * jax.random.normal(turn_key, (n, n))
    first, second = jnp.linalg.qr(jnp.stack([raw, turned])).Q
    spectrum = 0.5 ** jnp.arange(n, dtype=float)
    root = jnp.sqrt(spectrum / spectrum.sum())[None]
    roots = jnp.stack([first * root, second * root])
    covariance = roots[1] @ roots[1].T
    best = first[:, :k]
    limit = jnp.vdot(best, covariance @ best) / 2
    problem = Problem(
        Fantope(n, k),
        _loss,
        _constraint,
        regularity=(Regularity(3.0, 0.0, 3.0), Regularity(3.0, 0.0, 3.0, norm=float("inf"))),
    )
    return Instance(problem, Sampler(_Samples(roots, limit)), None, ExpectedLimit(covariance, limit))
