"""Scales a linear program so that its numbers are near 1, as the solver's tolerances expect."""

import numpy as np

_INFINITE = 1e20  # as for HiGHS
_LOOSE = 1e4
_PASSES = 3


def equilibrate(matrix, rows, bounds):
    r"""(matrix, rows, bounds, units) of the program $r \le Mx \le s,\ l \le x \le u$, in terms of x / units.

    A variable's unit is the largest size that its own bounds and the rows allow. If that is far more than the
    right-hand sides need (a bound may stand for "no bound"), these decide. All factors are powers of two, so that
    nothing is rounded; bounds of 1e20 and more are infinite.
    """
    from scipy import sparse

    rows, bounds = [_endless(end) for end in rows], [_endless(end) for end in bounds]
    matrix = sparse.csc_array(matrix, copy=True)
    matrix.eliminate_zeros()
    sizes = np.max(np.abs(_tightened(matrix, rows, bounds)), axis=0)

    factors = _power_of_two(_largest(matrix, 1))
    sides = np.abs(np.concatenate(rows)) / np.r_[factors, factors]
    asked = sides.max(where=np.isfinite(sides), initial=0)
    entries = _largest(sparse.diags_array(1 / factors) @ matrix, 0)
    natural = np.divide(asked, entries, out=np.full(len(entries), np.inf), where=(entries > 0) & (asked > 0))
    sizes = np.where((sizes > 0) & (sizes < np.inf), np.minimum(sizes, _LOOSE * natural), natural)
    units = _power_of_two(np.where(sizes < np.inf, sizes, 1))

    matrix = matrix @ sparse.diags_array(units)
    factors = _power_of_two(_largest(matrix, 1))
    scaled = sparse.csc_array(sparse.diags_array(1 / factors) @ matrix)
    return scaled, [side / factors for side in rows], [bound / units for bound in bounds], units


def _tightened(matrix, rows, bounds):
    """The bounds (lower, upper), tightened by what the other terms of each row leave for a variable."""
    entries, (lower, upper) = matrix.tocoo(), (np.array(bound, float) for bound in bounds)
    i, j = entries.coords

    def others(terms, infinite):
        """For each term: the sum of the other terms in its row; `infinite` if one of these is infinite."""
        finite = np.isfinite(terms)
        terms = np.where(finite, terms, 0)
        sums, missing = (np.bincount(i, values, matrix.shape[0])[i] - values for values in (terms, ~finite))
        return np.where(missing == 0, sums, infinite)

    for _ in range(_PASSES):
        ends = entries.data * lower[j], entries.data * upper[j]
        least, most = rows[0][i] - others(np.maximum(*ends), np.inf), rows[1][i] - others(np.minimum(*ends), -np.inf)
        ends = least / entries.data, most / entries.data
        np.maximum.at(lower, j, np.minimum(*ends))
        np.minimum.at(upper, j, np.maximum(*ends))
    return lower, upper


def _endless(ends):
    return np.where(np.abs(ends) < _INFINITE, ends, np.copysign(np.inf, ends))


def _largest(matrix, axis):
    if matrix.nnz == 0:
        return np.zeros(matrix.shape[1 - axis])
    return abs(matrix).max(axis=axis).toarray().ravel()


def _power_of_two(sizes):
    return np.exp2(np.floor(np.log2(np.where(sizes > 0, sizes, 1))))
