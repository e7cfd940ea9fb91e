"""A small dense quadratic program on the host, by Clarabel's interior-point method (Goulart, Chen, 2024)."""

import importlib
from typing import Any

import numpy as np

_TOLERANCE = 1e-13


def solve_quadratic(Q, c, positive, G, h, a=None):
    r"""(u, y) for $\min \frac12 u^\top Q u + c^\top u$ subject to $Gu \le h$ (with multipliers $y \ge 0$), to
    $u_i \ge 0$ for the first `positive` entries, and to $a^\top u = 1$ where `a` is given.

    Q is positive semidefinite, and a strictly feasible point exists.
    """
    from scipy.sparse import csc_array  # loaded only where it is used, as Clarabel; jax brings it

    clarabel: Any = importlib.import_module("clarabel")  # it has no type hints
    scale = max(np.abs(Q).max(initial=0.0), np.abs(c).max(initial=0.0), 1e-300)
    equalities = np.zeros((0, len(c))) if a is None else a[None]
    rows = np.concatenate([equalities, -np.eye(len(c))[:positive], G])
    limits = np.concatenate([np.ones(len(equalities)), np.zeros(positive), h])
    cones = [clarabel.ZeroConeT(len(equalities)), clarabel.NonnegativeConeT(positive + len(h))]
    cost = csc_array(np.triu(Q / scale)), c / scale
    solution = clarabel.DefaultSolver(*cost, csc_array(rows), limits, cones, _settings(clarabel)).solve()
    u, y = np.array(solution.x), np.array(solution.z)[len(limits) - len(h) :]
    u[:positive] = np.maximum(u[:positive], 0)
    return u, scale * np.maximum(y, 0)


def _settings(clarabel):
    settings = clarabel.DefaultSettings()
    settings.verbose = settings.presolve_enable = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    return settings
