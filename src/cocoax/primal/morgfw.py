"""Meta online recursive-gradient Frank-Wolfe (Xie, Shen, Zhang, Wang, Qian, AAAI 2020)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .. import theory
from ..core import check, tree
from ..core.facts import Facts
from ..core.parameters import argument
from ..errors import LearnerError
from .meta import AbstractMeta
from .perturbation import AbstractPerturbation, Ball, named_perturbation


class MORGFW(AbstractMeta):
    r"""K = T inner learners as in Meta-Frank-Wolfe, for smooth losses whose gradients are only sampled.

    $x^{k+1} = x^k + \frac{1}{k+1}(v^k - x^k) = \frac{1}{k+1}(x^1 + v^1 + \dots + v^k)$, and learner k sees
    $d^k = \tilde\nabla f_t(x^k) + (1-\frac{1}{k+1})(d^{k-1} - \tilde\nabla f_t(x^{k-1}))$,
    $d^1=\tilde\nabla f_t(x^1)$, the same sample in both gradients.

    `sample(round, key) -> round` draws the part of a round (a mini-batch) that one estimate sees, unbiased; without it
    gradients are exact and $d^k=\nabla f_t(x^k)$. As $(k+1)d^k = \sum_{j\le k}(j+1)a_j - j\,b_j$ with both gradients
    $a_j, b_j$ of sample j, all estimates are one prefix sum. Perturbations are then sized for $\sqrt2(D+LR)$, a bound
    on the estimates. $E$ Regret $=O(\sqrt T)$, `theory.constants.morgfw` and `morgfw_sampled`. Cost: T LMOs and 2T
    sampled gradients per round.

    >>> import cocoax as cx
    >>> constants = MORGFW().constants(cx.domains.L2Ball(3, radius=0.5))  # R = 1: Regret <= (c1 D + c2 L) T^alpha
    >>> round(float(constants.c1), 3), round(float(constants.c2), 3)
    (2.232, 0.368)
    """

    facts = Facts(
        cost="T LMOs, 1 gradient each (of a sample: 2)",
        guarantee="smooth, expected, proven",
        cites=("xie2020",),
        regret=AbstractMeta.alpha,
    )

    sample: Callable | None
    noise: AbstractPerturbation = argument("perturbation")

    def __init__(self, sample: Callable | None = None, perturbation: Any = "ball"):
        if not (sample is None or callable(sample)):
            raise LearnerError(f"sample must be callable as sample(round, key), got {check.described(sample)}")
        self.sample = None if sample is None else tree.as_pytree(sample)
        self.noise = named_perturbation(perturbation)
        if sample is not None and not isinstance(self.noise, Ball):
            raise LearnerError(
                f"sampled gradients are bounded in the l2 norm only; use perturbation='ball', got {perturbation!r}"
            )

    @classmethod
    def variants(cls):
        return {"MORGFW": cls(), "MORGFW (sampled)": cls(sample=lambda round, key: round)}

    @property
    def needs(self):
        return ("lipschitz",) if self.sample is None else ("lipschitz", "smoothness")

    @property
    def gradients_per_step(self):
        """Gradients of one inner step: two where they are samples."""
        return 1 if self.sample is None else 2

    def _constants(self, domain):
        if self.sample is None:
            return theory.constants.morgfw(self.noise.diameter(domain), domain.dimension, self.noise.name)
        return theory.constants.morgfw_sampled(domain.diameter(2), domain.dimension)

    def perturbation_bound(self, domain, bounds):
        if self.sample is None:
            return bounds.lipschitz
        diameter = jnp.asarray(domain.diameter(2), bounds.smoothness.dtype)
        return 2**0.5 * (bounds.lipschitz + bounds.smoothness * diameter)

    def most_steps(self, capacity):
        return capacity

    def steps(self, bounds):
        return bounds.horizon

    def mixture(self, k, j):
        return 1 / (k + 1), 1 / (k + 1)

    def estimates(self, points, revealed, key):
        """The estimates d^k for all k, from two sampled gradients each; exact gradients without `sample`."""
        sample = self.sample
        if sample is None:
            return jax.vmap(revealed.gradient)(points)
        count = jax.tree.leaves(points)[0].shape[0]
        before = jax.tree.map(lambda x: jnp.concatenate([x[:1], x[:-1]]), points)

        def both(point, previous, key):
            sampled = revealed.sampled(lambda round: sample(round, key))
            return sampled.gradient(point), sampled.gradient(previous)

        here, there = jax.vmap(both)(points, before, jax.random.split(key, count))
        j = jnp.arange(1, count + 1, dtype=tree.dtype(points))

        def prefix(a, b):
            """d^k for all k, from the gradients a (at x^k) and b (at x^{k-1}) of one leaf."""
            shape = (count,) + (1,) * (a.ndim - 1)
            terms = (j + 1).reshape(shape) * a - jnp.where(j > 1, j, 0).reshape(shape) * b
            return jnp.cumsum(terms, axis=0) / (j + 1).reshape(shape)

        return jax.tree.map(prefix, here, there)
