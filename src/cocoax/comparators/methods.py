"""Which method finds the best decision: chosen by what the set offers and what the functions look like."""

from .cones import cones_of
from .newton import Newton
from .oracle import Oracle
from .proximal_step import ProximalStep
from .search import Search
from .simplicial import Simplicial
from .solver import Solver

_SMALL, _MEDIUM = 300, 3000  # entries for which a second-order method is quicker: with a projection, without


def solve(search: Search):
    """Methods in turn, the quickest for this structure first, until the certificate is closed."""
    if search.done:
        return
    oracle: Oracle = search.oracle
    size, cones = len(oracle.centre), cones_of(oracle.domain)
    if cones is not None and size <= (_SMALL if oracle.projects else _MEDIUM):
        Newton(search, cones).solve()
    if search.done:
        return
    if search.objective.count == 0 and not oracle.projects and oracle.is_polytope:
        Simplicial(search).solve()
    if not search.done:
        Solver(search, ProximalStep(oracle, search.check)).solve()
