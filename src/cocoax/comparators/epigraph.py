r"""Losses with kinks as one cone program: smooth $+ \langle c, p+m\rangle$ where $Ax + b = p - m$ and $p, m\ge0$."""

import numpy as np

from .cones import Cones, Part
from .kinks import Kinks, judge_kinked, without_kinks
from .newton import Newton
from .search import Search


class Epigraph(Newton):
    """Newton's method with both parts of every |z| as variables of their own."""

    def __init__(self, search: Search, cones: Cones, kinks: Kinks):
        from scipy import sparse

        self.kinks, (self.A, self.b, self.c) = kinks, kinks.rows()
        count, before = len(self.c), cones.size + cones.extra
        none = sparse.csr_array((2 * count, before))
        parts = [
            part._replace(matrix=sparse.hstack([part.matrix, sparse.csr_array((len(part.side), 2 * count))], "csr"))
            for part in cones.parts
        ]
        split = sparse.hstack([-sparse.eye_array(count), sparse.eye_array(count)])
        extra = sparse.csr_array((count, cones.extra))
        whole = Part(sparse.hstack([sparse.csr_array(self.A), extra, split], "csr"), -self.b, "zero")
        positive = Part(sparse.hstack([none, -sparse.eye_array(2 * count)], "csr"), np.zeros(2 * count), "positive")
        super().__init__(search, Cones(cones.size, cones.extra + 2 * count, [whole, positive, *parts]))
        self.smooth = without_kinks(search)
        self.cost = np.concatenate([np.zeros(cones.extra), self.c, self.c])

    def _advance(self, x, target, multiplier, weights):
        y = weights[: len(self.c)]
        return judge_kinked(self.kinks, self.smooth, (self.A, self.b, self.c), target, multiplier, y)
