"""Which method finds the best decision: chosen by what the set offers and what the functions look like."""

import time

import numpy as np

from .accelerated import Accelerated
from .clock import OutOfTime
from .cones import cones_of
from .dense import Dense
from .epigraph import Epigraph
from .kinks import kinks_of
from .linear import solve_linear
from .low_rank import LowRank
from .newton import Newton
from .oracle import Oracle
from .proximal_step import ProximalStep
from .search import Search
from .simplicial import Simplicial
from .smoothing import Smoothing
from .solver import Solver
from .structure import structure_of
from .variables import variables_of

_SMALL, _MEDIUM = 300, 3000  # entries for which a second-order method is quicker: with a projection, without
_FEW, _MANY = 10, 5000  # constraints: for methods that charge them; whose products with each other fit into memory
_TINY, _TRIAL = 100, 1.0  # entries for which a cone program is tried at once; else after so many seconds of first order
_LMOS = 60  # that column generation needs for a constraint over a round set, twice
_LIGHT = 3e8  # operations of a factorisation for which kinks are handed to a solver whole


def solve(search: Search):
    """Methods in turn, the quickest for this structure first, until the certificate is closed."""
    for method in (_vertex, _kinks, _second_order, _low_rank, _first_order, _simplicial, _any):
        if search.done:
            return
        if not search.clock.allows_compilation():
            raise OutOfTime
        method(search)


def _vertex(search):
    """The best decision for a linear loss without constraints."""
    none = np.zeros(search.objective.count)
    if search.objective.count == 0:
        search.judge(search.objective.measure(search.oracle.lmo(search.first.slope), none), none)


def _second_order(search):
    oracle: Oracle = search.oracle
    size = len(oracle.centre)
    if size > _MEDIUM or (size > _SMALL and oracle.projects):
        return
    cones = cones_of(oracle.domain)
    if cones is not None:
        Newton(search, cones).solve()


def _kinks(search):
    kinks = kinks_of(search)
    if kinks is None or search.objective.count > _FEW:
        return
    structure = structure_of(search)
    cones = cones_of(search.oracle.domain) if len(search.oracle.centre) <= _MEDIUM else None
    if not structure.affine:
        return
    size, smoothing = len(search.oracle.centre), None
    if search.oracle.projects:
        smoothing = Smoothing(kinks, structure)
        if size > _TINY:
            smoothing.patience = _TRIAL
            smoothing.solve()
    if cones is not None and kinks.work(size) <= _LIGHT and not search.done:
        Epigraph(search, cones, kinks).solve()
    variables = variables_of(search.oracle.domain)
    if variables is not None and not search.done and min(size, kinks.number) <= _MEDIUM:
        Dense(search, variables, kinks=kinks).solve()
    if smoothing is not None and not search.done:
        smoothing.patience = np.inf
        smoothing.solve()


def _low_rank(search):
    if LowRank.fits(search):
        LowRank(search).solve()


def _first_order(search):
    if search.objective.count > _FEW:
        return
    structure = structure_of(search)
    if structure.linear and structure.affine and search.objective.count and _has_time_for_columns(search):
        solve_linear(search, structure)
    elif search.oracle.projects:
        variables = variables_of(search.oracle.domain) if len(search.oracle.centre) <= _MEDIUM else None
        accelerated = Accelerated(search, structure)
        accelerated.patience = np.inf if variables is None else _TRIAL
        accelerated.solve()
        if variables is not None and not search.done:
            Dense(search, variables, quadratic=structure.quadratic and structure.affine).solve()
            accelerated.patience = np.inf
            accelerated.solve()


def _has_time_for_columns(search) -> bool:
    """Whether time would allow as many LMOs as column generation may need: it cannot be interrupted."""
    began = time.monotonic()
    search.oracle.lmo(search.first.slope)
    return (time.monotonic() - began) * _LMOS * (1 + search.objective.count) < search.clock.left


def _simplicial(search):
    if search.objective.count <= _FEW and not search.oracle.projects and search.oracle.is_polytope:
        Simplicial(search).solve()


def _any(search):
    if search.objective.count <= _MANY:
        Solver(search, ProximalStep(search.oracle, search.check)).solve()
