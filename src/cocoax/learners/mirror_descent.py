"""Dual mirror descent for online allocation (Balseiro, Lu, Mirrokni, 2020 and 2021)."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check, tree
from ..core.facts import Facts
from ..errors import LearnerError
from .base import positive_parameter
from .pricing import AbstractPricing, prediction


class DualMirrorDescent(AbstractPricing):
    r"""Prices rise with what is spent too much: $\lambda_{t+1} = [\lambda_t + \eta g_t(x_t)]_+$ with $\lambda_1 = 0$.

    With `geometry="entropy"`, $\lambda_{t+1,i} = \lambda_{t,i} e^{\eta g_{t,i}(x_t)}$ with $\lambda_{1,i} =$ `first`.

    **Arguments:**

    - `step`: $\eta$. Its best value depends on the units of the loss and the constraints, and on the number of rounds;
      `theory.mirror_descent` has the one that balances the bounds below.
    - `predict`: as in `AutoPrice`.

    *Proven* (Euclidean; `theory.mirror_descent`): where requests are i.i.d., the expected loss exceeds that of the best
    policy by at most $\eta G^2T/2$ in total, $|g_t(x)|_2\le G$. For every sequence, $\sum_tg_{t,i}(x_t) \le
    \lambda_{T+1,i}/\eta$, which is at most $F/(\rho\eta) + G^2/(2\rho) + G$ if some answer has $g_t \le -\rho$ in every
    round and losses differ by at most F. Where requests are not i.i.d., there is no such bound on the loss: in the
    worst case every learner loses a share of the value.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(2),
    ...     loss=lambda x, r: -r * x[1],
    ...     constraint=lambda x, r: x[1] - 0.25,
    ...     request=True,
    ... )
    >>> values = jax.random.uniform(jax.random.key(0), (2000,))
    >>> game = cx.play(problem, DualMirrorDescent(0.05), values, key=jax.random.key(0))
    >>> round(float(game.multiplier[-500:].mean()), 1)  # the best quarter of them is worth 0.75 or more
    0.7
    """

    facts = Facts(
        cost="1 LMO, 1 gradient",
        guarantee="against the best policy, i.i.d. requests and a safe answer, proven",
        cites=("balseiro2020",),
        regret=Fraction(1, 2),
        violation=Fraction(1, 2),
    )

    step: Float[Array, ""]
    first: Float[Array, ""]
    geometry: str = eqx.field(static=True)
    predict: Callable | None

    def __init__(
        self,
        step: Any,
        *,
        geometry: Literal["euclidean", "entropy"] = "euclidean",
        first: Any = 1.0,
        predict: Callable | None = None,
    ):
        if geometry not in ("euclidean", "entropy"):
            raise LearnerError(f"geometry must be 'euclidean' or 'entropy', got {geometry!r}")
        self.step, self.first = positive_parameter(step, "step"), positive_parameter(first, "first")
        self.geometry, self.predict = geometry, prediction(predict)

    def begin(self, problem, start, *, horizon, key):
        first = self.first if self.geometry == "entropy" else jnp.zeros_like(self.first)
        return jnp.broadcast_to(first.astype(tree.dtype(start)), (problem.constraints,))

    def multiplier(self, prices):
        return prices

    def learn(self, problem, state, expected, played, loss, values):
        step = self.step.astype(values.dtype)
        if self.geometry == "entropy":
            return state.prices * jnp.exp(step * values)
        return jnp.maximum(state.prices + step * values, 0)


class RegularizedMirrorDescent(AbstractPricing):
    r"""Fairness, or smooth spending: $\min\sum_tf_t(x_t) + T\,r(\bar g)$ with $\bar g = \frac1T\sum_tg_t(x_t) \in A$.

    $x_t = \arg\min_x f_t(x)+\langle\lambda_t, g_t(x)\rangle$, $\;a_t = \arg\min_{a\in A} r(a) - \langle\lambda_t,
    a\rangle$, $\;\lambda_{t+1} = \lambda_t + \eta(g_t(x_t) - a_t)$: $a_t$ is what the constraints should come to.
    Prices may be negative, where more should be used than is worth while.

    **Arguments:**

    - `step`: $\eta$.
    - `response`: $\lambda\mapsto a$, a function of the m prices. For $r(a) = \frac w2|a-c|^2$ over $a\le0$ it is
      $\min(0, c+\lambda/w)$.
    - `predict`: as in `AutoPrice`.

    >>> import cocoax as cx
    >>> import jax.numpy as jnp
    >>> learner = cx.learners.RegularizedMirrorDescent(0.1, lambda price: jnp.minimum(0, price / 5 - 0.5))
    >>> learner.response(jnp.array([0.0, 10.0])).tolist()
    [-0.5, 0.0]
    """

    facts = Facts(
        cost="1 LMO, 1 gradient",
        guarantee="regularised loss, i.i.d. requests, in print",
        cites=("balseiro2021",),
    )

    step: Float[Array, ""]
    response: Callable
    predict: Callable | None

    def __init__(self, step: Any, response: Callable, *, predict: Callable | None = None):
        self.step, self.predict = positive_parameter(step, "step"), prediction(predict)
        if not callable(response):
            raise LearnerError(f"response must be callable as response(prices), got {check.described(response)}")
        self.response = tree.as_pytree(response)

    def begin(self, problem, start, *, horizon, key):
        return jnp.zeros(problem.constraints, tree.dtype(start))

    def multiplier(self, prices):
        return prices

    def learn(self, problem, state, expected, played, loss, values):
        wanted = self.response(state.prices)
        if jnp.shape(wanted) != values.shape:
            raise LearnerError(f"response must return {values.shape[0]} values, got shape {jnp.shape(wanted)}")
        return state.prices + self.step.astype(values.dtype) * (values - wanted.astype(values.dtype))
