r"""Losses with kinks, smoothed more and more finely (Nesterov, 2005).

Every $|z|$ becomes Huber's function $h_\mu(z) = \frac{z^2}{2\mu}$ for $|z|\le\mu$, else $|z|-\frac\mu2$, which is
nowhere above it. So where the loss is a nonnegative sum of such $|z|$ with affine z and of a smooth convex function,
lower bounds of the smoothed loss are lower bounds. The trace of the loss shows whether it is.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..problem.kinks import replace_kinks
from ..problem.problem import Problem
from .accelerated import Accelerated, Whole
from .kinks import Kinks
from .objective import Compiled, Functions

_FINER = 0.2


class Smoothed(eqx.Module):
    """A loss with Huber's function in place of |z|."""

    loss: Callable
    width: jax.Array

    def __call__(self, x, round):
        def huber(z):
            near = jnp.minimum(jnp.abs(z), self.width)
            return near * near / (2 * self.width) + jnp.abs(z) - near

        return replace_kinks(self.loss, huber, x, round)


class Smoothing(Accelerated):
    """`solve` returns when it is done or makes no more progress."""

    rough = np.inf

    def __init__(self, kinks: Kinks):
        search, self.width, self.rounding = kinks.search, kinks.width, kinks.rounding
        loss = Smoothed(search.objective.problem.loss, jnp.asarray(self.width))
        self.smoothed = search.objective.functions.with_loss(loss)
        super().__init__(search)

    def _model(self):
        plain = Problem(self.smoothed.problem.domain, self.smoothed.problem.loss)
        return Whole(Functions(plain, self.smoothed.rounds, None, self.smoothed.like, "mean"))

    def _report(self, point, multiplier):
        """Lower bounds from the smoothed loss, values from the loss; then a finer smoothing, if the smoothed problem
        is solved better than it stands for the true one."""
        search = self.search
        smooth = Compiled(self.smoothed).measure(point, multiplier)
        smooth = smooth._replace(loss=smooth.loss - self.rounding)
        at = search.objective.measure(point, multiplier)
        proof, _ = search.bound(smooth, multiplier)
        search.compare(at, proof)
        search.mix(at, multiplier)
        search.check()
        if smooth.loss + multiplier @ smooth.constraint - proof.lower <= at.loss - smooth.loss:
            self.width *= _FINER
            self.smoothed, self.model = (
                jax.tree.map(
                    lambda node: Smoothed(node.loss, jnp.asarray(self.width)) if isinstance(node, Smoothed) else node,
                    functions,
                    is_leaf=lambda node: isinstance(node, Smoothed),
                )
                for functions in (self.smoothed, self.model)
            )
