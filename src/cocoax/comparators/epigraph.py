r"""Losses with a few kinks as one cone program: smooth $+ \langle c, s\rangle$ subject to $-s\le Ax + b\le s$."""

import numpy as np

from .cones import Cones, Part
from .kinks import Kinks, judge_kinked, without_kinks
from .newton import Newton
from .search import Search


class Epigraph(Newton):
    """Newton's method with the |z| as variables of their own."""

    def __init__(self, search: Search, cones: Cones, kinks: Kinks):
        from scipy import sparse

        self.kinks, (self.A, self.b, self.c) = kinks, kinks.rows()
        count = len(self.c)
        none, eye = sparse.csr_array((count, cones.extra)), sparse.eye_array(count)
        rows = [sparse.hstack([sparse.csr_array(sign * self.A), none, -eye], format="csr") for sign in (1.0, -1.0)]
        parts = [
            part._replace(matrix=sparse.hstack([part.matrix, sparse.csr_array((len(part.side), count))], format="csr"))
            for part in cones.parts
        ]
        parts += [Part(row, side, "positive") for row, side in zip(rows, (-self.b, self.b))]
        super().__init__(search, Cones(cones.size, cones.extra + count, parts))
        self.smooth = without_kinks(search)
        self.cost = np.concatenate([np.zeros(cones.extra), self.c])

    def _advance(self, x, target, multiplier, weights):
        above, below = weights[-2 * len(self.c) :].reshape(2, -1)
        return judge_kinked(self.kinks, self.smooth, (self.A, self.b, self.c), target, multiplier, above - below)
