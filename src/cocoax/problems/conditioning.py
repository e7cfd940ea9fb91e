"""Losses whose curvature differs by direction: quadratics over decades, least squares with correlated features."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import check
from ..core.facts import ProblemFacts, with_facts
from ..domains import Box, L1Ball, ProbabilitySimplex
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem
from .base import Instance, used_beyond_budget
from .regression import squared_error


class _Curved(eqx.Module):
    """The quadratic loss with one curvature per coordinate."""

    curvature: Float[Array, " n"]

    def __call__(self, x, r):
        return 0.5 * jnp.sum(self.curvature.astype(x.dtype) * (x - r["target"]) ** 2)


class _Targets(eqx.Module):
    """Draws rounds with the fields `target`, `use` and `budget`."""

    target: Float[Array, " n"]
    spread: Float[Array, " n"]
    use: Float[Array, " n"]
    budget: Float[Array, ""]

    def __call__(self, key):
        target_key, use_key = jax.random.split(key)
        target = self.target + self.spread * jax.random.uniform(target_key, self.target.shape, minval=-1, maxval=1)
        use = self.use + 0.25 * jax.random.uniform(use_key, self.use.shape, minval=-1, maxval=1)
        return {"target": target, "use": use, "budget": self.budget}


class _Examples(eqx.Module):
    """Draws rounds with the fields `features`, `answer`, `use` and `budget`."""

    truth: Float[Array, " n"]
    common: Float[Array, ""]  # share of the features' variance that all have in common
    use: Float[Array, " n"]
    budget: Float[Array, ""]

    def __call__(self, key):
        feature_key, use_key = jax.random.split(key)
        draws = jax.random.uniform(feature_key, (self.truth.size + 2,), minval=-1, maxval=1)
        features = jnp.sqrt(self.common) * draws[0] + jnp.sqrt(1 - self.common) * draws[2:]
        use = self.use + 0.5 * jax.random.uniform(use_key, self.use.shape, minval=-1, maxval=1)
        answer = jnp.vdot(features, self.truth) + 0.1 * draws[1]
        return {"features": features, "answer": answer, "use": use, "budget": self.budget}


@with_facts(ProblemFacts("a probability simplex", "quadratic losses with curvatures over decades"))
def ill_conditioned(
    key: PRNGKeyArray,
    *,
    n: int = 10,
    condition: float = 100.0,
    noise: float = 0.1,
    constrained: bool = False,
    curvatures: Any = None,
    target: Any = None,
) -> Instance:
    r"""$f_t(x) = \frac12\sum_i h_i(x_i - c_{ti})^2$ over the probability simplex, with $h_i$ from 1 to `condition`.

    The curvatures h are evenly spaced on a logarithmic scale, in random order, or `curvatures`. The targets $c_t$ are
    uniform around a mean whose entries sum to about 2, or around `target`, by `noise`$/\sqrt{h_i}$. So the minimiser
    lies outside of the simplex, and its Euclidean projection is not the optimum. With `constrained=True`,
    $g_t(x) = \langle a_t, x\rangle - b$ as in `simplex`, with b half-way between the least use and that of the optimum.

    >>> import jax
    >>> instance = ill_conditioned(jax.random.key(0), curvatures=[1.0, 10.0, 100.0], target=[2.0, 1.0, 0.7], noise=0.0)
    >>> best = instance.comparator(instance.rounds(10, jax.random.key(1)))
    >>> best.x.round(3).tolist()  # the projection of the target would be [1, 0, 0]
    [0.0, 0.364, 0.636]
    """
    order_key, target_key, use_key = jax.random.split(key, 3)
    if curvatures is None:
        check.whole(n, "n", ProblemError, low=2)
        steps = jax.random.permutation(order_key, n).astype(float) / (n - 1)
        curvature = jnp.asarray(condition, float) ** steps
    else:
        curvature = jnp.asarray(curvatures, float)
    n = curvature.size
    mean = jax.random.uniform(target_key, (n,), maxval=4 / n) if target is None else jnp.asarray(target, float)
    if mean.shape != curvature.shape:
        raise ProblemError(f"target must have the shape of the curvatures, {curvature.shape}, got {mean.shape}")
    best = _weighted_projection(mean, curvature)
    use = jax.random.uniform(use_key, (n,), minval=0.25, maxval=0.75).at[jnp.argmin(best)].set(0.25)
    budget = (jnp.vdot(use, best) + 0.25) / 2
    problem = Problem(ProbabilitySimplex(n), _Curved(curvature), used_beyond_budget if constrained else None)
    return Instance(problem, Sampler(_Targets(mean, noise / jnp.sqrt(curvature), use, budget)), None, None)


@with_facts(ProblemFacts("a box or an l1 ball", "least squares with correlated features"))
def least_squares(
    key: PRNGKeyArray,
    *,
    n: int = 10,
    correlation: float = 0.9,
    ball: Literal["box", "l1"] = "box",
    constrained: bool = False,
) -> Instance:
    r"""$f_t(x) = \frac12(\langle a_t, x\rangle - y_t)^2$ over $[-1,1]^n$ or $\|x\|_1\le1$.

    Every two features have the given correlation. Answers are $y_t = \langle a_t, w\rangle$ with noise up to 0.1, where
    w lies outside of the set: uniform in $[-\frac32,\frac32]^n$, or of l1 norm 2. With `constrained=True`,
    $g_t(x) = \langle e_t, x\rangle - b$ with $e_t = \frac12\mathrm{sign}(w) + U[-\frac12,\frac12]^n$, and b a fourth of
    what w uses.

    >>> import jax
    >>> instance = least_squares(jax.random.key(0), correlation=0.99)
    >>> instance.rounds(30, jax.random.key(1))["features"].shape
    (30, 10)
    """
    if ball not in ("box", "l1"):
        raise ProblemError(f"ball must be 'box' or 'l1', got {ball!r}")
    if not 0 <= correlation < 1:
        raise ProblemError(f"correlation must lie in [0, 1), got {correlation}")
    raw = jax.random.uniform(key, (n,), minval=-1.5, maxval=1.5)
    truth = raw if ball == "box" else 2 * raw / jnp.abs(raw).sum()
    use = jnp.sign(truth) / 2
    domain = Box(-jnp.ones(n), jnp.ones(n)) if ball == "box" else L1Ball(n, 1.0)
    problem = Problem(domain, squared_error, used_beyond_budget if constrained else None)
    examples = _Examples(truth, jnp.asarray(correlation, float), use, jnp.vdot(use, truth) / 4)
    return Instance(problem, Sampler(examples), None, None)


def _weighted_projection(point, weights):
    r"""$\arg\min_x \sum_i w_i(x_i-p_i)^2$ over the simplex, by bisection on the multiplier of its sum."""

    def halve(_, ends):
        middle = ends.mean()
        too_much = jnp.maximum(point - middle / weights, 0).sum() > 1
        return jnp.where(too_much, jnp.stack([middle, ends[1]]), jnp.stack([ends[0], middle]))

    most = (weights * (jnp.abs(point) + 1)).max()
    ends = jax.lax.fori_loop(0, 60, halve, jnp.stack([-most, most]))
    return jnp.maximum(point - ends.mean() / weights, 0)
