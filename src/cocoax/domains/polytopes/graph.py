"""Graphs as arrays of edges, from edge lists, sparse matrices or NetworkX."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from ...errors import DomainError
from ..base import AbstractDomain


class Graph(eqx.Module):
    """Edges as two arrays of node numbers, and the name of each number."""

    tails: Int[Array | np.ndarray, " m"]
    heads: Int[Array | np.ndarray, " m"]
    names: Sequence = eqx.field(static=True)

    @property
    def nodes(self) -> int:
        return len(self.names)

    @property
    def size(self) -> int:
        return len(self.tails)

    def number(self, node, role) -> int:
        """The number of the node with this name; errors call it the `role`."""
        name = node.item() if isinstance(node, np.ndarray | jax.Array) and node.ndim == 0 else node
        try:
            return self.names.index(name)
        except ValueError:
            raise DomainError(f"the {role} must be a node of the graph, got {node!r}") from None


class AbstractOverEdges(AbstractDomain):
    """A set of vectors over the edges of a graph."""

    graph: eqx.AbstractVar[Graph]

    @property
    def edges(self) -> list[tuple[Any, Any]]:
        """The edge (tail, head) of each coordinate, with the names or numbers of the graph that was given."""
        ends = np.asarray(self.graph.tails).tolist(), np.asarray(self.graph.heads).tolist()
        return [(self.graph.names[tail], self.graph.names[head]) for tail, head in zip(*ends)]


def as_graph(source: Any, *, directed, otherwise=None) -> Graph:
    """A graph from an array of edges, a SciPy sparse adjacency matrix, or a NetworkX graph.

    A matrix has one edge per nonzero entry, row by row; if undirected, one per pair of entries. NetworkX's edges keep
    their order. The nodes of an array are the numbers that occur in it; other graphs may have nodes without edges.
    `otherwise` is the advice in the error for a NetworkX graph of the other kind.
    """
    if hasattr(source, "is_directed"):
        edges, names = _from_networkx(source, directed, otherwise)
    elif hasattr(source, "tocsr"):
        edges, names = _from_sparse(source, directed)
    else:
        edges, names = _from_array(source)
    if len(edges) == 0:
        raise DomainError("a graph needs at least one edge, got none")
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if loops.size and not directed:
        raise DomainError(f"every edge must join two different nodes, but edge {loops[0]} does not")
    return Graph(edges[:, 0], edges[:, 1], names)


def on_device(graph: Graph) -> Graph:
    return jax.tree.map(jnp.asarray, graph)


def reachable(tails, heads, nodes, source) -> np.ndarray:
    """For each node, whether a path leads to it from the source."""
    seen = np.arange(nodes) == source
    while (fresh := heads[seen[tails] & ~seen[heads]]).size:
        seen[fresh] = True
    return seen


def _from_array(pairs):
    """(edges with nodes numbered from 0, names of the nodes), from an array of pairs."""
    try:
        edges = np.asarray(pairs)
    except ValueError:  # lists of unequal lengths
        raise DomainError("edges must be pairs (tail, head), got lists of unequal lengths") from None
    if edges.size == 0:
        return np.zeros((0, 2), int), range(0)
    if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
        raise DomainError(f"edges must be whole numbers of shape (m, 2), got {edges.dtype} of shape {edges.shape}")
    if edges.min() < 0:
        raise DomainError(f"nodes are numbered from 0, got an edge at node {edges.min()}")
    names, numbers = np.unique(edges, return_inverse=True)
    dense = len(names) == names[-1] + 1
    return numbers.reshape(edges.shape), range(len(names)) if dense else tuple(names.tolist())


def _from_networkx(graph, directed, otherwise):
    """(edges with nodes numbered from 0, names of the nodes), from a NetworkX graph."""
    if graph.is_directed() != directed:
        kind, method = ("a directed", "to_directed") if directed else ("an undirected", "to_undirected")
        raise DomainError(f"this domain needs {kind} graph; {otherwise or f'give graph.{method}()'}")
    numbers = {node: i for i, node in enumerate(graph.nodes)}
    edges = [(numbers[tail], numbers[head]) for tail, head in graph.edges()]
    return np.array(edges, int).reshape(-1, 2), tuple(graph.nodes)


def _from_sparse(matrix, directed):
    """(edges with nodes numbered from 0, names of the nodes), from a sparse adjacency matrix."""
    if matrix.shape[0] != matrix.shape[1]:
        raise DomainError(f"an adjacency matrix must be square, got shape {matrix.shape}")
    joined = matrix.tocsr() != 0
    edges = np.stack((joined if directed else joined + joined.T).tocsr().nonzero(), axis=1)
    return (edges if directed else edges[edges[:, 0] <= edges[:, 1]]), range(matrix.shape[0])
