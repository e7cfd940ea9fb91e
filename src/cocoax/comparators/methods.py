"""Which method finds the best decision: chosen by what the set offers and what the functions look like."""

import time

import numpy as np

from .clock import OutOfTime
from .search import Search

_SMALL, _MEDIUM = 300, 3000  # entries for which a cone program is tried at once; at all
_FEW, _MANY = 10, 5000  # constraints: for methods that charge them; whose products with each other fit into memory
_TRIAL, _EXACT = 1.0, 0.25  # seconds of first order before a cone program; before one that needs a single step
_LMOS = 60  # that column generation needs for a constraint over a round set, twice
_LIGHT, _HEAVY = 3e9, 1e11  # operations of a factorisation for which kinks are handed to a solver at once; at all


def solve(search: Search):
    """Methods in turn, the quickest for this structure first, until the certificate is closed.

    Each loads what it needs: most problems are small, and the first or second one answers.
    """
    for method in (_vertex, _one_step, _kinks, _small, _low_rank, _first_order, _simplicial, _any):
        if search.done:
            return
        if not search.clock.allows_compilation():
            raise OutOfTime
        method(search)


def _vertex(search):
    """The best decision for a linear loss without constraints."""
    none = np.zeros(search.objective.count)
    if search.objective.count == 0:
        search.report(search.objective.measure(search.oracle.lmo(search.first.slope), none), none)


def _one_step(search):
    """Of small problems one cone program is all of it, where the loss is quadratic and the constraints are affine."""
    _small(search, most=1)


def _kinks(search):
    if search.objective.count > _FEW:
        return
    from .kinks import Epigraph, kinks_of

    kinks = kinks_of(search)
    if kinks is None or not search.structure.affine:
        return
    from .smoothing import Smoothing

    work, cones = kinks.work(len(search.oracle.centre)), _cones(search)
    if cones is not None and work <= _LIGHT:
        Epigraph(search, cones, kinks).solve()
    if search.oracle.projects and not search.done:
        Smoothing(kinks).solve()
    if cones is not None and _LIGHT < work <= _HEAVY and not search.done:
        Epigraph(search, cones, kinks).solve()


def _small(search, most=None):
    """Small sets, and those that do not project, as cone programs."""
    if len(search.oracle.centre) <= _SMALL or not search.oracle.projects:
        _newton(search, most)


def _newton(search, most=None):
    from .newton import Newton

    cones = _cones(search)
    if cones is not None:
        Newton(search, cones).solve(most)


def _cones(search):
    from .cones import cones_of

    return cones_of(search.oracle.domain) if len(search.oracle.centre) <= _MEDIUM else None


def _low_rank(search):
    from .low_rank import LowRank

    if LowRank.fits(search):
        LowRank(search).solve()


def _first_order(search):
    if search.objective.count > _FEW:
        return
    structure = search.structure
    if structure.linear and structure.affine and search.objective.count and _has_time_for_columns(search):
        from .linear import solve_linear

        solve_linear(search)
    elif search.oracle.projects:
        from .accelerated import Accelerated

        accelerated = Accelerated(search)
        if len(search.oracle.centre) > _SMALL and _cones(search) is not None:
            accelerated.patience = _EXACT if structure.quadratic and structure.affine else _TRIAL
            accelerated.solve()
            if search.done:
                return
            _newton(search)
            accelerated.patience = np.inf
        accelerated.solve()


def _has_time_for_columns(search) -> bool:
    """Whether time would allow as many LMOs as column generation may need: it cannot be interrupted."""
    began = time.monotonic()
    search.oracle.lmo(search.first.slope)
    return (time.monotonic() - began) * _LMOS * (1 + search.objective.count) < search.clock.left


def _simplicial(search):
    if search.objective.count <= _FEW and not search.oracle.projects and search.oracle.is_polytope:
        from .simplicial import Simplicial

        Simplicial(search).solve()


def _any(search):
    if search.objective.count <= _MANY:
        from .solver import Solver

        Solver(search).solve()
