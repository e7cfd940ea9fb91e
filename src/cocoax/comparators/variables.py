"""Simple sets as bounds on variables and a few sums, for an interior-point method."""

from typing import NamedTuple

import numpy as np

from ..domains.composed.product import Product
from ..domains.vectors.balls import Box, L1Ball, L2Ball, LinfBall
from ..domains.vectors.simplices import ProbabilitySimplex, UnitSimplex
from .simplicial import blocks

_MOST_BLOCKS = 20  # each has a row of its own


class Total(NamedTuple):
    """The sum of some variables is at most `limit`, or equal to it; or their length is at most `limit`."""

    which: np.ndarray
    limit: float
    kind: str  # "sum", "equal" or "length"


class Variables(NamedTuple):
    """x = v[:n] - v[n:], the latter for the entries `mirror` of x only."""

    mirror: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    totals: list[Total]
    start: np.ndarray  # where all of them hold with room to spare

    @property
    def size(self) -> int:
        return len(self.lower) - len(self.mirror)

    def point(self, v):
        x = v[: self.size].copy()
        x[self.mirror] -= v[self.size :]
        return x

    def reach(self, v, slope):
        """About the largest |<slope, v - w>| over all w of the set."""
        width = np.where(np.isfinite(self.upper - self.lower), self.upper - self.lower, np.abs(v - self.start))
        far = sum(one.limit * np.abs(slope[one.which]).max() for one in self.totals)
        return float(np.abs(slope) @ width + far)

    def pull(self, slope):
        """A slope of x, as one of v."""
        return np.concatenate([slope, -slope[..., self.mirror]], axis=-1)


def variables_of(domain) -> Variables | None:
    """None if the set is not known here."""
    factors = blocks(domain) if isinstance(domain, Product) else [domain]
    if len(factors) > _MOST_BLOCKS:
        return None
    parts, first, extra = [], 0, sum(factor.dimension for factor in factors)
    for factor in factors:
        n = factor.dimension
        known = _known(factor, np.arange(first, first + n), np.arange(extra, extra + n))
        if known is None:
            return None
        parts.append(known)
        first, extra = first + n, extra + len(known.mirror)
    own = [len(part.lower) - len(part.mirror) for part in parts]

    def joined(arrays):
        return np.concatenate([a[:n] for a, n in zip(arrays, own)] + [a[n:] for a, n in zip(arrays, own)])

    lower, upper, start = (joined([getattr(part, name) for part in parts]) for name in ("lower", "upper", "start"))
    if not np.all(lower < upper):
        return None  # entries that cannot move
    mirror, totals = np.concatenate([part.mirror for part in parts]), [one for part in parts for one in part.totals]
    return Variables(mirror, lower, upper, totals, start)


def _known(domain, own, extra) -> Variables | None:
    """With variables at these places."""
    n, none = len(own), np.zeros(0, int)
    zeros, free = np.zeros(n), np.full(n, np.inf)
    match domain:
        case Box():
            lower, upper = (np.ravel(bound).astype(float) for bound in (domain.lower, domain.upper))
            return Variables(none, lower, upper, [], 0.5 * (lower + upper))
        case LinfBall():
            return Variables(none, zeros - domain.radius, zeros + domain.radius, [], zeros)
        case ProbabilitySimplex():
            total = float(domain.total)
            return Variables(none, zeros, free, [Total(own, total, "equal")], zeros + total / n)
        case UnitSimplex():
            total = float(domain.total)
            return Variables(none, zeros, free, [Total(own, total, "sum")], zeros + 0.5 * total / n)
        case L1Ball():
            both, radius = np.concatenate([own, extra]), float(domain.radius)
            start = np.full(2 * n, 0.25 * radius / n)
            return Variables(own, np.zeros(2 * n), np.full(2 * n, np.inf), [Total(both, radius, "sum")], start)
        case L2Ball():
            return Variables(none, -free, free, [Total(own, float(domain.radius), "length")], zeros)
    return None
