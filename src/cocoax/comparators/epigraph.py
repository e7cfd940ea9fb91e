r"""Losses with a few kinks as one cone program: smooth $+ \langle c, s\rangle$ subject to $-s\le Ax + b\le s$."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..problem.kinks import replace_kinks
from .cones import Cones, Part
from .kinks import Kinks
from .newton import Newton
from .objective import Compiled
from .search import Evaluation, Search


class _Rest(eqx.Module):
    """A loss without its |z|."""

    loss: eqx.Module

    def __call__(self, x, round):
        return replace_kinks(self.loss, jnp.zeros_like, x, round)  # pyright: ignore


class Epigraph(Newton):
    """Newton's method with the |z| as variables of their own. Their multipliers y, |y| <= c, prove lower bounds, since
    <y, z> <= <c, |z|>."""

    def __init__(self, search: Search, cones: Cones, kinks: Kinks):
        from scipy import sparse

        self.A, self.b, self.c = kinks.rows()
        count = len(self.c)
        none, eye = sparse.csr_array((count, cones.extra)), sparse.eye_array(count)
        rows = [sparse.hstack([sparse.csr_array(sign * self.A), none, -eye], format="csr") for sign in (1.0, -1.0)]
        parts = [
            part._replace(matrix=sparse.hstack([part.matrix, sparse.csr_array((len(part.side), count))], format="csr"))
            for part in cones.parts
        ]
        parts += [Part(row, side, "positive") for row, side in zip(rows, (-self.b, self.b))]
        super().__init__(search, Cones(cones.size, cones.extra + count, parts))
        self.smooth = Compiled(search.objective.functions.with_loss(_Rest(search.objective.problem.loss)))
        self.cost = np.concatenate([np.zeros(cones.extra), self.c])

    def _advance(self, x, target, multiplier, weights):
        above, below = weights[-2 * len(self.c) :].reshape(2, -1)
        y = np.clip(above - below, -self.c, self.c)
        rest = self.smooth.measure(target, multiplier)
        loss, slope = rest.loss + y @ (self.A @ target + self.b), rest.slope + y @ self.A
        self.search.bound(Evaluation(target, loss, rest.constraint, slope), multiplier)
        new = self.objective.measure(target, multiplier)
        self.search.consider(new)
        self.search.check()
        return new
