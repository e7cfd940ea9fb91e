r"""How much of a lower bound may be rounding.

With $h_t = f_t + \langle\lambda, g_t\rangle$ and $s = \frac1T\sum_t\nabla h_t(x)$, a bound is
$\frac1T\sum_t h_t(x) - \langle s, x\rangle + \min_{v\in X}\langle s, v\rangle$. Every number in it goes through at most
T additions over rounds, d over entries, and a few other operations; each changes it by a part of $2^{-53}$ at most. So
to first order (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1) the bound is wrong by at most

$(T + d + 8)\,2^{-53}\left(\frac1T\sum_t|h_t(x)| + \langle E, |x|\rangle + \max_{v\in X}\langle E, |v|\rangle\right),
\qquad E = \frac1T\sum_t|\nabla h_t(x)|$

entry by entry, where $|h|$ stands for $|f| + \langle\lambda, |g|\rangle$. This supposes that the functions lose no more
digits than a scalar product does: what cancels within them is not seen from outside. $|h|$ and E are those at the best
point: where the bound was found elsewhere, and gradients differ, they are close to what is meant.
"""

import numpy as np

_UNIT = 2.0**-53
_FEW = 8  # other operations


def roundings(objective, point) -> float:
    """The largest error of a sum over rounds and entries, as a part of the sizes of what is added."""
    return (1 / objective.unit + len(point) + _FEW) * _UNIT


def rounding(objective, oracle, points, values: float, slopes) -> float:
    """Of a bound that was computed from these points, on numbers of this total size at the first of them, whose slopes
    have these sizes E there."""
    here = max(slopes @ np.abs(point) for point in points)
    return float(roundings(objective, points[0]) * (values + here + max(here, _most(oracle, slopes))))


def _most(oracle, slopes):
    """The largest <E, |v|>, of sets that are symmetric in every entry or lie in the orthant; of boxes, it is not above
    this. Of others, such as thin sets that lie askew, it may be."""
    ends = [oracle.lmo(direction) for direction in (slopes, -slopes)]
    return slopes @ np.sum(np.abs(ends), axis=0)
