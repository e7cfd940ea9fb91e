"""Graphs as arrays of edges, from the forms in which people have them."""

from typing import Any, NamedTuple

import numpy as np

from ..errors import DomainError


class Graph(NamedTuple):
    """Edges as two arrays of node numbers, and the number of each node by its name."""

    tails: np.ndarray
    heads: np.ndarray
    numbers: dict

    @property
    def nodes(self) -> int:
        return len(self.numbers)

    @property
    def edges(self) -> int:
        return len(self.tails)

    def number(self, node, role) -> int:
        if node not in self.numbers:
            raise DomainError(f"the {role} must be a node of the graph, got {node!r}")
        return self.numbers[node]


def as_graph(given: Any, *, directed) -> Graph:
    """A graph from an array of edges, from a SciPy sparse adjacency matrix (one edge for each nonzero entry, row by
    row; if undirected, for each pair of entries) or from a NetworkX graph (edges in its order)."""
    if hasattr(given, "is_directed"):
        edges, names = _from_networkx(given, directed)
    elif hasattr(given, "tocsr"):
        edges, names = _from_sparse(given, directed)
    else:
        edges = np.asarray(given)
        if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
            raise DomainError(f"edges must be whole numbers of shape (m, 2), got {edges.dtype} of shape {edges.shape}")
        if edges.min(initial=0) < 0:
            raise DomainError(f"nodes are numbered from 0, got an edge at node {edges.min()}")
        names = range(edges.max(initial=-1) + 1)
    if len(edges) == 0:
        raise DomainError("a graph needs at least one edge, got none")
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if loops.size and not directed:
        raise DomainError(f"every edge must join two different nodes, but edge {loops[0]} does not")
    return Graph(edges[:, 0], edges[:, 1], {name: i for i, name in enumerate(names)})


def reachable(tails, heads, nodes, source) -> np.ndarray:
    """Which nodes the edges lead to from the source."""
    seen = np.arange(nodes) == source
    while (fresh := heads[seen[tails] & ~seen[heads]]).size:
        seen[fresh] = True
    return seen


def _from_networkx(graph, directed):
    if graph.is_directed() != directed:
        kind, method = ("a directed", "to_directed") if directed else ("an undirected", "to_undirected")
        raise DomainError(f"this domain needs {kind} graph; give graph.{method}()")
    numbers = {node: i for i, node in enumerate(graph.nodes)}
    edges = [(numbers[tail], numbers[head]) for tail, head in graph.edges()]
    return np.array(edges, int).reshape(-1, 2), list(graph.nodes)


def _from_sparse(matrix, directed):
    if matrix.shape[0] != matrix.shape[1]:
        raise DomainError(f"an adjacency matrix must be square, got shape {matrix.shape}")
    joined = matrix.tocsr() != 0
    edges = np.stack((joined if directed else joined + joined.T).tocsr().nonzero(), axis=1)
    return (edges if directed else edges[edges[:, 0] <= edges[:, 1]]), range(matrix.shape[0])
