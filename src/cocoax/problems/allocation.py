"""Resource allocation on the simplex: linear or quadratic losses, one or several stochastic constraints."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core.facts import ProblemFacts, with_facts
from ..domains import ProbabilitySimplex
from ..errors import ProblemError
from ..problem.environment import Environment
from ..problem.problem import Problem, Regularity
from .base import Instance


def _linear(x, r):
    return jnp.vdot(r["cost"], x)


def _quadratic(x, r):
    return 0.5 * jnp.sum((x - r["cost"]) ** 2)


def _constraint(x, r):
    return r["use"] @ x - r["budget"]


class _Rounds(Environment):
    """Draws rounds with the fields `cost`, `use` and `budget`, around the means held here."""

    cost: Float[Array, " d"]  # mean
    use: Float[Array, "m d"]  # mean
    budget: Float[Array, " m"]
    adversarial: bool = eqx.field(static=True)
    stretch: int | None = eqx.field(static=True)

    def init(self, key):
        return jnp.zeros((), jnp.int32)

    def emit(self, state, decision, key):
        cost_key, use_key = jax.random.split(key)
        if self.adversarial:
            doubling = 31 - jax.lax.clz(state + 1)  # floor(log2(t))
            stretch = doubling if self.stretch is None else state // self.stretch
            first_half = jnp.arange(self.cost.size) < self.cost.size // 2
            change = jnp.where(first_half == (stretch % 2 == 0), -1.0, 1.0)
        else:
            change = jax.random.uniform(cost_key, self.cost.shape, minval=-1, maxval=1)
        use = self.use + 0.25 * jax.random.uniform(use_key, self.use.shape, minval=-1, maxval=1)
        return state + 1, {"cost": self.cost + 0.25 * change, "use": use, "budget": self.budget}


class _Expected(eqx.Module):
    """x -> E g_t(x)."""

    use: Float[Array, "m d"]
    budget: Float[Array, " m"]

    def __call__(self, x):
        return self.use @ x - self.budget


@with_facts(
    ProblemFacts("a probability simplex", "linear or quadratic losses, i.i.d. or switching, 1 or more constraints")
)
def simplex(
    key: PRNGKeyArray,
    *,
    n: int = 10,
    constraints: int = 1,
    quadratic: bool = False,
    adversarial: bool = False,
    stretch: int | None = None,
    binding: bool = True,
) -> Instance:
    r"""$f_t(x) = \langle c_t, x\rangle$ or $\frac12\|x-c_t\|^2$, and $g_t(x) = A_tx - b$, over the probability simplex.

    Costs and uses are uniform around means in $[\frac14,\frac34]$, with all entries in [0, 1]. The coordinate that
    costs most uses least, $\frac14$ of everything. Each budget lies half-way between that and what the best decision
    without constraints uses, so that this decision breaks all constraints on average. With `binding=False` budgets are
    0.9, which no decision uses on average.

    With `adversarial=True` losses favour the first half of the coordinates and the second half in turn, in stretches
    that double, or of `stretch` rounds each; constraints stay i.i.d., as the theorems need.

    >>> import jax
    >>> instance = simplex(jax.random.key(0), constraints=3)
    >>> instance.rounds(20, jax.random.key(1))["use"].shape
    (20, 3, 10)
    """
    if n < 2 or constraints < 1:
        raise ProblemError(f"simplex needs n >= 2 and constraints >= 1, got n={n} and constraints={constraints}")
    if stretch is not None and (not adversarial or stretch < 1):
        raise ProblemError(f"stretch={stretch} must be a positive number of rounds, and needs adversarial=True")
    cost_key, use_key = jax.random.split(key)
    cost = jax.random.uniform(cost_key, (n,), minval=0.25, maxval=0.75)
    use = jax.random.uniform(use_key, (constraints, n), minval=0.25, maxval=0.75)
    domain = ProbabilitySimplex(n)
    unconstrained = domain.project(cost) if quadratic else domain.lmo(cost).dense()
    frugal = jnp.argmin(cost) if quadratic else jnp.argmax(cost)  # the last to be chosen
    use = use.at[:, frugal].set(0.25)
    budget = (use @ unconstrained + 0.25) / 2 if binding else jnp.full(constraints, 0.9)
    problem = Problem(
        domain,
        _quadratic if quadratic else _linear,
        _constraint,
        constraints=constraints,
        regularity=(
            Regularity(n**0.5, float(quadratic), 1.0),
            Regularity(1.0, float(quadratic), 1.0, norm=float("inf")),
        ),
    )
    return Instance(problem, _Rounds(cost, use, budget, adversarial, stretch), None, _Expected(use, budget))
