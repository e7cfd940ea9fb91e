"""Online regression where few features, or few groups of them, matter, under a limit on an exposure."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core.facts import ProblemFacts, with_facts
from ..domains import GroupLassoBall, L1Ball
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem, Regularity
from .base import ExpectedLimit, Instance

_NOISE = 0.1  # of the answers, at most


def squared_error(x, r) -> Float[Array, ""]:
    return 0.5 * (jnp.vdot(r["features"], x) - r["answer"]) ** 2


def _absolute(x, r):
    return jnp.abs(jnp.vdot(r["features"], x) - r["answer"])


def _constraint(x, r):
    return jnp.vdot(r["exposure"], x) - r["limit"]


class _Examples(eqx.Module):
    """Draws rounds with the fields `features`, `answer`, `exposure` and `limit`."""

    truth: Float[Array, " n"]
    drift: Float[Array, " n"]  # E[exposure]
    limit: Float[Array, ""]

    def __call__(self, key):
        feature_key, noise_key, exposure_key = jax.random.split(key, 3)
        features = jax.random.uniform(feature_key, self.truth.shape, minval=-1, maxval=1)
        answer = jnp.vdot(features, self.truth) + _NOISE * jax.random.uniform(noise_key, minval=-1, maxval=1)
        exposure = self.drift + 0.5 * jax.random.uniform(exposure_key, self.truth.shape, minval=-1, maxval=1)
        return {"features": features, "answer": answer, "exposure": exposure, "limit": self.limit}


@with_facts(ProblemFacts("an l1 ball", "squared or absolute errors, a limit on an exposure"))
def sparse_regression(key: PRNGKeyArray, *, n: int = 50, nonzero: int = 5, absolute: bool = False) -> Instance:
    r"""$f_t(x) = \frac12(\langle a_t, x\rangle - y_t)^2$ or $|\langle a_t, x\rangle - y_t|$, $\|x\|_1\le 1$.

    Features $a_t$ are uniform in $[-1,1]^n$, answers $y_t = \langle a_t, w\rangle$ with noise up to 0.1; the truth w
    has l1 norm 1 and `nonzero` entries of any sign. The constraint is $g_t(x) = \langle e_t, x\rangle - b$ with
    $e_t = \frac12\mathrm{sign}(w) + U[-\frac12,\frac12]^n$ and b half of what w itself uses, as in the binding variant
    of `matrix_completion`. With `absolute=True` losses are not smooth, and no smoothness is stated.

    >>> import jax
    >>> instance = sparse_regression(jax.random.key(0), n=20)
    >>> instance.rounds(30, jax.random.key(1))["features"].shape
    (30, 20)
    """
    if not 1 <= nonzero <= n:
        raise ProblemError(f"nonzero must lie between 1 and n = {n}, got {nonzero}")
    place_key, value_key = jax.random.split(key)
    chosen = (jax.random.permutation(place_key, n) < nonzero).astype(float)
    raw = jax.random.normal(value_key, (n,)) * chosen
    truth = raw / jnp.abs(raw).sum()
    return _instance(L1Ball(n, 1.0), truth, 1.0, absolute)


@with_facts(ProblemFacts("a group-lasso ball", "squared errors, a limit on an exposure"))
def group_sparsity(key: PRNGKeyArray, *, groups: int = 10, size: int = 5, nonzero: int = 2) -> Instance:
    r"""Regression with $\sum_j\|x_{G_j}\|_2 \le 1$: of `groups` groups of `size` features, `nonzero` matter.

    Losses, noise and constraint are those of `sparse_regression`. The truth w is nonzero in `nonzero` groups, whose
    norms sum to 1.

    >>> import jax
    >>> instance = group_sparsity(jax.random.key(0))
    >>> instance.problem.domain.shape
    (50,)
    """
    if not 1 <= nonzero <= groups or size < 1:
        raise ProblemError(
            f"group_sparsity needs size >= 1 and nonzero between 1 and groups = {groups}, got {size} and {nonzero}"
        )
    place_key, value_key = jax.random.split(key)
    chosen = (jax.random.permutation(place_key, groups) < nonzero).astype(float)
    raw = jax.random.normal(value_key, (groups, size)) * chosen[:, None]
    truth = (raw / jnp.linalg.norm(raw, axis=1).sum()).reshape(-1)
    domain = GroupLassoBall([[size * j + i for i in range(size)] for j in range(groups)], 1.0)
    return _instance(domain, truth, size**0.5, False)


def _instance(domain, truth, reach, absolute):
    """The regression instance on this domain, with the true weights `truth`.

    `reach` bounds the l1 norm of all decisions, and so also all predictions.
    """
    n = truth.size
    drift = jnp.sign(truth) / 2
    limit = jnp.vdot(drift, truth) / 2
    error = 1.0 if absolute else 2 * reach + _NOISE
    smoothness = (None, None) if absolute else (float(n), 1.0)
    problem = Problem(
        domain,
        _absolute if absolute else squared_error,
        _constraint,
        regularity=(
            Regularity(error * n**0.5, smoothness[0], 2 * reach),
            Regularity(error, smoothness[1], 2 * reach, norm=float("inf")),
        ),
    )
    return Instance(problem, Sampler(_Examples(truth, drift, limit)), None, ExpectedLimit(drift, limit))
