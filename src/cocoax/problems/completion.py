"""Online matrix completion under a stochastic constraint: the paper's experiment, and one where it binds."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import tree
from ..core.compiling import quick_jit
from ..core.facts import ProblemFacts, with_facts
from ..domains import NuclearNormBall
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem, Regularity
from .base import ExpectedLimit, Instance


def _loss(x, r):
    return 0.5 * jnp.sum((x.reshape(-1)[r["entries"]] - r["ratings"]) ** 2)


def _constraint(x, r):
    return jnp.vdot(r["exposure"], x) - r["budget"]


def _random_subset(key, n, size):
    """`size` different numbers below n, such that all subsets are equally likely; Floyd's algorithm, in parallel.

    Step i draws a number up to n - size + i. If that number is already in the set, it takes n - size + i instead.
    Whether it is depends on the draws of earlier steps, and on whether the one step that may take that number instead
    did so.
    """
    step = jnp.arange(size, dtype=jnp.int32)
    instead = n - size + step
    uniform = jax.random.uniform(key, (size,))
    number = jnp.minimum((uniform * (instead + 1).astype(uniform.dtype)).astype(jnp.int32), instead)
    taken = jnp.any((number[:, None] == number[None]) & (step[None] < step[:, None]), axis=1)
    depends = jnp.where(number >= n - size, number - (n - size), step)
    for _ in range(size.bit_length()):  # twice as far back each time
        taken, depends = taken | taken[depends], depends[depends]
    return jnp.where(taken, instead, number)


class _Rounds(eqx.Module):
    """Draws rounds with the fields `entries`, `ratings`, `exposure` and `budget`."""

    truth: Float[Array, "rows cols"]
    drift: Float[Array, "rows cols"]  # E[exposure]
    noise: Float[Array, ""]
    budget: Float[Array, ""]
    observed: int = eqx.field(static=True)

    def __call__(self, key):
        entry_key, exposure_key = jax.random.split(key)
        entries = _random_subset(entry_key, self.truth.size, self.observed)
        exposure = self.drift + self.noise * jax.random.uniform(exposure_key, self.truth.shape, self.truth.dtype, -1, 1)
        ratings = self.truth.reshape(-1)[entries]
        return {"entries": entries, "ratings": ratings, "exposure": exposure, "budget": self.budget}


@with_facts(ProblemFacts("a nuclear-norm ball", "the paper's experiment; binding=True where the constraint matters"))
def matrix_completion(
    key: PRNGKeyArray,
    *,
    rows: int = 50,
    cols: int = 50,
    radius: float = 5.0,
    observed: int = 100,
    rank: int | None = None,
    binding: bool = False,
) -> Instance:
    r"""$f_t(X) = \frac12\sum_{(i,j)\in B_t}(X_{ij}-M_{ij})^2$, $\|X\|_*\le k$, $g_t(X) = \langle G^t, X\rangle - b$.

    M is Gaussian (of the given rank) with nuclear norm 1; $B_t$ has `observed` entries, drawn without repetition.

    * The paper's problem: $G^t\sim U[-1,1]^{m\times n}$, $b=0$. The constraint holds for every X on average (erratum
      E26), so $x^*=M$ with zero loss, and regret is total loss.
    * `binding=True`: M has rank 5, $G^t = \frac12\mathrm{sign}(M) + U[-\frac12,\frac12]^{m\times n}$ and
      $b = \frac12\langle\frac12\mathrm{sign}(M), M\rangle$: M exceeds the limit by as much as 0 stays below it.

    Regularity is stated in the l2 norm ($D=\max(k+1,\sqrt{mn})$) and in the linf norm ($D=k+1$).

    >>> import jax
    >>> instance = matrix_completion(jax.random.key(0), rows=8, cols=6, observed=10)
    >>> instance.rounds(20, jax.random.key(1))["ratings"].shape
    (20, 10)
    """
    if not 1 <= observed <= rows * cols:
        raise ProblemError(f"observed must lie between 1 and rows * cols = {rows * cols}, got {observed}")
    rank = (min(5, rows, cols) if binding else min(rows, cols)) if rank is None else rank
    if not 1 <= rank <= min(rows, cols):
        raise ProblemError(f"rank must lie between 1 and {min(rows, cols)}, got {rank}")
    raw = _gaussian(key, rows, cols, rank)
    # by NumPy where numbers are known: one program for them would take twice as long to compile as the one for `raw`
    numpy = jnp if tree.is_traced(raw) else np
    raw = numpy.asarray(raw)
    truth = raw / numpy.linalg.svd(raw, compute_uv=False).sum()
    drift = numpy.sign(truth) / 2 if binding else numpy.zeros_like(truth)
    budget = numpy.vdot(drift, truth) / 2
    domain = NuclearNormBall((rows, cols), radius)
    side = (rows * cols) ** 0.5
    values = radius * side + budget
    problem = Problem(
        domain,
        _loss,
        _constraint,
        regularity=(
            Regularity(max(radius + 1, side), 1.0, values),
            Regularity(max(radius + 1, 1.0), 1.0, values, norm=float("inf")),
        ),
    )
    truth, drift, noise, budget = map(tree.as_floats, (truth, drift, 0.5 if binding else 1.0, budget))
    sampler = Sampler(_Rounds(truth, drift, noise, budget, observed))
    return Instance(problem, sampler, None if binding else truth, ExpectedLimit(drift, budget))


@functools.partial(quick_jit, once=True, static_argnums=(1, 2, 3))
def _gaussian(key, rows, cols, rank):
    """A Gaussian matrix, or the product of two Gaussian factors with this rank."""
    if rank == min(rows, cols):
        return jax.random.normal(key, (rows, cols))
    left, right = jax.random.split(key)
    return jax.random.normal(left, (rows, rank)) @ jax.random.normal(right, (rank, cols))
