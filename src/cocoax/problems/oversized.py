"""Regression on a set that is much larger than needed."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core.facts import ProblemFacts, with_facts
from ..domains import Box
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem
from .base import Instance


def _loss(x, r):
    return jnp.abs(jnp.vdot(r["features"], x) - r["answer"])


def _constraint(x, r):
    return jnp.vdot(r["use"], x) - 0.5


class _Examples(eqx.Module):
    """Draws rounds with the fields `features`, `answer` and `use`."""

    truth: Float[Array, " n"]

    def __call__(self, key):
        feature_key, noise_key, use_key = jax.random.split(key, 3)
        features = jax.random.uniform(feature_key, self.truth.shape, minval=-1, maxval=1)
        answer = jnp.vdot(features, self.truth) + 0.4 * jax.random.uniform(noise_key, minval=-1, maxval=1)
        use = self.truth + 0.5 * jax.random.uniform(use_key, self.truth.shape, minval=-1, maxval=1)
        return {"features": features, "answer": answer, "use": use}


@with_facts(ProblemFacts("a box that is too large", "absolute errors of weights of length 1"))
def absolute_regression(key: PRNGKeyArray, *, n: int = 10, width: float = 100.0, constrained: bool = False) -> Instance:
    r"""$f_t(x) = |\langle a_t, x\rangle - y_t|$ over $[-B, B]^n$, where B is `width` and the truth w has length 1.

    Features are uniform in $[-1,1]^n$, answers $y_t = \langle a_t, w\rangle$ with noise up to 0.4. The rounds do not
    depend on B: a learner whose first steps are as long as the set is wide pays for its width. With
    `constrained=True`, $g_t(x) = \langle e_t, x\rangle - \frac12$ with $e_t = w + U[-\frac12,\frac12]^n$, which w
    itself breaks by $\frac12$.

    >>> import jax
    >>> instance = absolute_regression(jax.random.key(0), width=1000.0)
    >>> best = instance.comparator(instance.rounds(100, jax.random.key(1)))
    >>> bool(abs(best.x).max() < 1)
    True
    """
    if n < 1 or not width >= 1:
        raise ProblemError(f"absolute_regression needs n >= 1 and width >= 1, got {n} and {width}")
    raw = jax.random.normal(key, (n,))
    truth = raw / jnp.linalg.norm(raw)
    bound = jnp.full(n, width, float)
    problem = Problem(Box(-bound, bound), _loss, _constraint if constrained else None)
    return Instance(problem, Sampler(_Examples(truth)), None, None)
