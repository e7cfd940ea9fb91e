"""Rates, such as the share of people that a classifier accepts, as convex constraints."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.parameters import parameter, positive_parameter
from ..errors import ProblemError


class Rate(eqx.Module):
    r"""The weighted share of scores above 0, $\frac{\sum_iw_i1[s_i>0]}{\sum_iw_i}$, with convex and concave bounds.

    A rate jumps, so a limit on it is not convex. Where scores are linear in x, hinges are, and
    $1[s>0]\le\max(0,1+\frac s\mu)$, $1[s>0]\ge1-\max(0,1-\frac s\mu)$: limits on the hinges are stricter than those on
    the rate, in every round. So a game that keeps `at_most(limit)` on average keeps the true rate on average below
    the limit; `rate(x, round)` is the true one, for `play(metrics=...)`.

    **Arguments:**

    - `score`: `(x, round) -> scores`, linear in x.
    - `weight`: `round -> weights`, 0 for whom the rate does not count; all alike by default. A rate of nobody is 0.
    - `margin`: $\mu$; scores are compared with it.

    >>> import jax.numpy as jnp
    >>> import cocoax as cx
    >>> accepted = cx.Rate(lambda x, r: r["features"] @ x)
    >>> problem = cx.Problem(
    ...     cx.domains.L2Ball(2, 1.0),
    ...     loss=lambda x, r: jnp.mean((r["features"] @ x - r["label"]) ** 2),
    ...     constraint=accepted.at_most(0.3),
    ... )
    >>> r = {"features": jnp.array([[1.0, 0.0], [0.0, 1.0]]), "label": jnp.array([1.0, -1.0])}
    >>> x = jnp.array([0.5, -1.0])
    >>> float(accepted(x, r)), float(accepted.above(x, r)), round(float(problem.values(x, r)[1][0]), 3)
    (0.5, 0.75, 0.45)
    """

    score: Callable
    weight: Callable | None
    margin: Float[Array, ""]

    def __init__(self, score: Any, weight: Any = None, *, margin: Any = 1.0):
        for name, function in (("score", score), ("weight", weight)):
            if not (callable(function) or (name == "weight" and function is None)):
                raise ProblemError(f"{name} must be a function, got {function!r:.80}")
        self.score = tree.as_pytree(score)
        self.weight = None if weight is None else tree.as_pytree(weight)
        self.margin = positive_parameter(margin, "margin")

    def __call__(self, x: Any, round: Any) -> Float[Array, ""]:
        """The true rate at x, between 0 and 1."""
        scores = self.score(x, round)
        return self._mean((scores > 0).astype(scores.dtype), round)

    def above(self, x: Any, round: Any) -> Float[Array, ""]:
        """A convex upper bound on the rate."""
        return self._mean(jnp.maximum(0, 1 + self._scaled(x, round)), round)

    def below(self, x: Any, round: Any) -> Float[Array, ""]:
        """A concave lower bound on the rate."""
        return self._mean(jnp.minimum(1, self._scaled(x, round)), round)

    def at_most(self, limit: Any) -> "_Limit":
        """A constraint: the rate is at most the limit."""
        return _Limit(self, None, parameter(limit, "limit", 0, 1))

    def at_least(self, limit: Any) -> "_Limit":
        """A constraint: the rate is at least the limit."""
        return _Limit(None, self, -parameter(limit, "limit", 0, 1))

    def exceeds(self, other: "Rate", limit: Any) -> "_Limit":
        """A constraint: the rate exceeds the other one by at most the limit."""
        return _Limit(self, other, parameter(limit, "limit", -1, 1))

    def _scaled(self, x, round):
        scores = self.score(x, round)
        return scores / self.margin.astype(scores.dtype)

    def _mean(self, values, round):
        weights = jnp.ones_like(values) if self.weight is None else self.weight(round).astype(values.dtype)
        return tree.ratio(weights @ values, weights.sum())


class _Limit(eqx.Module):
    """The convex constraint high.above(x) - low.below(x) - limit <= 0; a missing rate counts as 0."""

    high: Rate | None
    low: Rate | None
    limit: Float[Array, ""]

    def __call__(self, x, round):
        total = -self.limit.astype(tree.dtype(x))
        if self.high is not None:
            total = total + self.high.above(x, round)
        if self.low is not None:
            total = total - self.low.below(x, round)
        return total
