"""Quadratic programs on the host, by Clarabel's interior-point method (Goulart, Chen, 2024)."""

import importlib
from typing import Any

import numpy as np

_TOLERANCE = 1e-13
_FAILED = ("PrimalInfeasible", "DualInfeasible", "AlmostPrimalInfeasible", "AlmostDualInfeasible", "Unsolved")


class Unsolved(Exception):
    """The solver has no answer; carries its status and multipliers, which may prove that there is none."""


def solve_quadratic(Q, c, positive, G, h, a=None):
    r"""(u, y) for $\min \frac12 u^\top Q u + c^\top u$ subject to $Gu \le h$ (with multipliers $y \ge 0$), to
    $u_i \ge 0$ for the first `positive` entries, and to $a^\top u = 1$ where `a` is given.

    Q is positive semidefinite, and a strictly feasible point exists.
    """
    from scipy.sparse import csc_array  # loaded only where it is used, as Clarabel; jax brings it

    scale = max(np.abs(Q).max(initial=0.0), np.abs(c).max(initial=0.0), 1e-300)
    equalities = np.zeros((0, len(c))) if a is None else a[None]
    rows = np.concatenate([equalities, -np.eye(len(c))[:positive], G])
    limits = np.concatenate([np.ones(len(equalities)), np.zeros(positive), h])
    cones = [("zero", len(equalities)), ("positive", positive + len(h))]
    u, z = solve_cones(csc_array(np.triu(Q / scale)), c / scale, csc_array(rows), limits, cones)
    u[:positive] = np.maximum(u[:positive], 0)
    return u, scale * np.maximum(z[len(limits) - len(h) :], 0)


def solve_cones(P, q, A, b, cones, seconds=np.inf, tolerance=_TOLERANCE):
    r"""(u, z) for $\min \frac12 u^\top P u + q^\top u$ with $b - Au$ in a product of cones, z its multipliers.

    P is upper triangular, P and A are sparse. Raises `Unsolved` where there is no answer; one that is only accurate
    to less than was asked is returned, since every answer is checked by its certificate.
    """
    if not all(np.isfinite(part).all() for part in (P.data, q, A.data, b)):
        raise Unsolved("numbers that are not finite", np.zeros(len(b)))
    clarabel: Any = importlib.import_module("clarabel")  # it has no type hints
    kinds = {
        "zero": clarabel.ZeroConeT,
        "positive": clarabel.NonnegativeConeT,
        "second": clarabel.SecondOrderConeT,
    }
    settings = clarabel.DefaultSettings()
    settings.verbose = settings.presolve_enable = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    if np.isfinite(seconds):
        settings.time_limit = max(seconds, 0.01)
    made = [kinds[kind](size) for kind, size in cones]
    solution = clarabel.DefaultSolver(P, q, A, b, made, settings).solve()
    u, z = np.array(solution.x), np.array(solution.z)
    if str(solution.status) in _FAILED or not (np.isfinite(u).all() and np.isfinite(z).all()):
        raise Unsolved(str(solution.status), z)
    return u, z
