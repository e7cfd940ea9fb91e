"""Routing across a town of one-way streets, within an emissions budget."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core.facts import ProblemFacts, with_facts
from ..domains import ShortestPath
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem, Regularity
from .base import ExpectedLimit, Instance


def _loss(x, r):
    return jnp.vdot(r["time"], x)


class _Congested(eqx.Module):
    """The loss with congestion: a street takes longer the more flow it has."""

    congestion: Float[Array, ""]

    def __call__(self, x, r):
        return jnp.vdot(r["time"], x + self.congestion.astype(x.dtype) * x**5 / 5)


def _constraint(x, r):
    return jnp.vdot(r["emission"], x) - r["budget"]


class _Traffic(eqx.Module):
    """Draws rounds with the fields `time`, `emission` and `budget`."""

    speed: Float[Array, " m"]
    budget: Float[Array, ""]

    def __call__(self, key):
        time, emission = jax.random.uniform(key, (2, *self.speed.shape), minval=0.5, maxval=1.5)
        return {"time": time / self.speed, "emission": emission * self.speed, "budget": self.budget}


@with_facts(ProblemFacts("paths across a grid", "routing within an emissions budget"))
def shortest_path(key: PRNGKeyArray, *, side: int = 4, congestion: float = 0.0) -> Instance:
    r"""$f_t(x) = \langle c_t, x\rangle$ and $g_t(x) = \langle e_t, x\rangle - \rho$ over the paths across a grid.

    A unit of flow goes from the first corner of `side` x `side` crossings to the last, along streets that lead right
    and down. A street of speed v in $[\frac12, 2]$ takes the time 1/v and emits v on average, each times a number
    uniform in $[\frac12,\frac32]$. The budget lies half-way between the emissions of the fastest and of the cleanest
    path. With `congestion` a, a street takes longer the more flow it carries: the loss has $x_e + \frac a5x_e^5$ in
    place of $x_e$, as in models of traffic. The flow then spreads over many paths.

    >>> import jax
    >>> instance = shortest_path(jax.random.key(0))
    >>> instance.problem.domain.shape
    (24,)
    """
    if side < 2:
        raise ProblemError(f"shortest_path needs side >= 2, got {side}")
    right = [(i, i + 1) for i in range(side**2) if (i + 1) % side]
    down = [(i, i + side) for i in range(side**2 - side)]
    domain = ShortestPath(right + down, source=0, sink=side**2 - 1)
    speed = jnp.exp(jax.random.uniform(key, domain.shape, minval=-1, maxval=1) * jnp.log(2.0))
    budget = (speed @ domain.lmo(1 / speed).dense() + speed @ domain.lmo(speed).dense()) / 2
    streets, length = len(right) + len(down), 2 * (side - 1)
    problem = Problem(
        domain,
        _Congested(jnp.asarray(congestion, float)) if congestion else _loss,
        _constraint,
        regularity=(
            Regularity(3.0 * (1 + congestion) * streets**0.5, 12.0 * congestion, 3.0 * length),
            Regularity(3.0 * (1 + congestion), 12.0 * congestion, 3.0 * length, norm=float("inf")),
        ),
    )
    return Instance(problem, Sampler(_Traffic(speed, budget)), None, ExpectedLimit(speed, budget))
