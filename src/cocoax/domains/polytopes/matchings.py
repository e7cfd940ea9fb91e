"""Spanning trees and matchings. Decisions are vectors over the edges of an undirected graph.

A graph is given as for `graphs`: an array of edges, a SciPy sparse adjacency matrix, or a NetworkX graph. The attribute
`edges` of a set says which edge each coordinate belongs to.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...core.facts import DomainFacts
from ...errors import DomainError
from ..base import centred
from ..vertices import Chosen
from .graph import AbstractOverEdges, Graph, as_graph, on_device, reachable
from .linear_program import AbstractHosted, LinearProgram, callback, needs


class SpanningTree(AbstractOverEdges):
    r"""$X = \mathrm{conv}\{1_T \in \mathbb{R}^m : T \text{ a spanning tree}\}$, for a connected graph.

    The LMO is the minimum spanning tree of Boruvka (1926), on the device: in each of $\log_2 n$ rounds, every part
    takes its lightest edge to another part. Membership is decided on the host, by linear programs
    (`pip install 'cocoax[lp]'`).

    >>> import jax.numpy as jnp
    >>> trees = SpanningTree([[0, 1], [1, 2], [2, 0], [2, 3]])
    >>> trees.lmo(jnp.array([1.0, -2.0, 0.5, 7.0])).dense().tolist()
    [0.0, 1.0, 1.0, 1.0]
    """

    facts = DomainFacts("edges log nodes")

    graph: Graph
    resistances: Float[Array, " m"]
    names: Int[Array, " nodes"]

    def __init__(self, edges: Any):
        graph = as_graph(edges, directed=False)
        both = np.r_[graph.tails, graph.heads], np.r_[graph.heads, graph.tails]
        if not reachable(*both, graph.nodes, 0).all():
            raise DomainError("the graph has no spanning tree, because it is not connected")
        self.graph = on_device(graph)
        self.resistances = jnp.asarray(_resistances(graph))
        self.names = jnp.arange(graph.nodes)

    @property
    def shape(self):
        return self.graph.tails.shape

    def lmo(self, direction, guess=None):
        m, n = direction.size, self.names.size
        order = jnp.argsort(direction)
        rank = jnp.zeros_like(order).at[order].set(jnp.arange(m))  # no two edges tie, so no cycle can close
        doublings = max(n - 1, 1).bit_length()

        def merge(_, parts):
            """One round of Boruvka: every part is joined to another by its lightest edge."""
            part, mask = parts
            one, other = part[self.graph.tails], part[self.graph.heads]
            open_rank = jnp.where(one != other, rank, m)
            lightest = jnp.full(n, m, rank.dtype).at[one].min(open_rank).at[other].min(open_rank)
            mask = mask | (open_rank < m) & ((lightest[one] == rank) | (lightest[other] == rank))
            chosen = order[jnp.minimum(lightest, m - 1)]
            neighbour = jnp.where(lightest < m, one[chosen] + other[chosen] - self.names, self.names)
            # two parts that chose the same edge point at each other: the first becomes the root
            root = (neighbour[neighbour] == self.names) & (self.names < neighbour)
            parent = jnp.where(root, self.names, neighbour)
            parent = jax.lax.fori_loop(0, doublings, lambda _, parent: parent[parent], parent)
            return parent[part], mask

        _, mask = jax.lax.fori_loop(0, doublings, merge, (self.names, jnp.zeros(m, bool)))
        return Chosen(mask, jnp.ones((), direction.dtype))

    def tangent(self, direction):
        return centred(direction)

    def start(self):
        """The average of all spanning trees, which contain an edge as often as its resistance says (Kirchhoff)."""
        return self.resistances

    def diameter(self, ord):
        """An upper bound: two trees of n - 1 edges each share at least max(0, 2(n - 1) - m) edges."""
        n, m = self.names.size, self.graph.tails.size
        return jnp.asarray((2.0 * min(n - 1, m - n + 1)) ** (1 / ord))

    def contains(self, x, tol=1e-6):
        needs("highspy", "lp")
        size = self.names.size - 1
        total = jnp.abs(x.sum() - size) <= tol * size
        overfull = callback(_overfull, (), x, self.graph.tails, self.graph.heads)
        return total & (x.min() >= -tol) & (overfull <= tol * size)


class Matching(AbstractHosted, AbstractOverEdges):
    r"""$X = \mathrm{conv}\{1_M \in \mathbb{R}^m : M \text{ a matching}\}$: no two edges of M share a node.

    The LMO is HiGHS for a bipartite graph (`pip install 'cocoax[lp]'`), else the blossom algorithm of NetworkX
    (`pip install 'cocoax[graphs]'`), on the host; entries below 1e-15 of the largest count as zero there.
    Membership is exact: by degrees and, unless the graph is bipartite, the smallest odd cut (Padberg, Rao, 1982).
    `diameter` is exact for a bipartite graph, else an upper bound.

    >>> import jax.numpy as jnp
    >>> matchings = Matching([[0, 1], [1, 2], [2, 0], [2, 3]])
    >>> matchings.lmo(jnp.array([-2.0, -4.0, -3.0, -1.0])).dense().tolist()
    [0.0, 1.0, 0.0, 0.0]
    """

    facts = DomainFacts("a solver on the host", on_host=True)

    graph: Graph

    def __init__(self, edges: Any):
        graph = as_graph(edges, directed=False)
        self.graph = on_device(graph)
        self.oracle, self.middle, self.widths = _matching_polytope(graph, perfect=False)
        self.sizes = (graph.size,)


class PerfectMatching(AbstractHosted, AbstractOverEdges):
    r"""$X = \mathrm{conv}\{1_M \in \mathbb{R}^m : M \text{ a perfect matching}\}$: each node is on one edge of M.

    The graph must have one. For the rest see `Matching`.

    >>> import jax.numpy as jnp
    >>> matchings = PerfectMatching([[0, 1], [1, 2], [2, 0], [2, 3], [0, 3]])
    >>> matchings.lmo(jnp.array([1.0, 4.0, -9.0, 2.0, 1.0])).dense().tolist()
    [1.0, 0.0, 0.0, 1.0, 0.0]
    """

    facts = DomainFacts("a solver on the host", on_host=True)

    graph: Graph

    def __init__(self, edges: Any):
        graph = as_graph(edges, directed=False)
        self.graph = on_device(graph)
        if graph.nodes % 2:
            raise DomainError(f"a perfect matching needs an even number of nodes, got {graph.nodes}")
        self.oracle, self.middle, self.widths = _matching_polytope(graph, perfect=True)
        self.sizes = (graph.size,)


class _Blossom:
    """An oracle for matchings of a graph that is not bipartite, by NetworkX.

    `relaxed` is their polytope without the constraints for odd sets.
    """

    def __init__(self, graph: Graph, perfect, relaxed: LinearProgram):
        self.networkx = needs("networkx", "graphs")
        self.edges = {frozenset(edge): i for i, edge in enumerate(zip(graph.tails.tolist(), graph.heads.tolist()))}
        if len(self.edges) < graph.size:
            raise DomainError("two edges of the graph join the same nodes; keep one of them")
        self.nodes, self.perfect, self.relaxed = graph.nodes, perfect, relaxed

    def minimise(self, directions):
        flat = directions.reshape(-1, len(self.edges))
        return np.stack([self._solve(direction) for direction in flat]).reshape(directions.shape)

    def violation(self, points):
        """For each point: by how much it breaks a constraint, those for odd sets included."""
        relaxed = self.relaxed.violation(points)
        finite = np.isfinite(relaxed)
        deficits = [self._odd_deficit(x) for x in points[finite].reshape(-1, len(self.edges))]
        relaxed[finite] = np.maximum(relaxed[finite], deficits)
        return relaxed

    def _solve(self, direction):
        """The matching with the least total of `direction`, as a vector of 0 and 1 over the edges."""
        scale = np.abs(direction).max()
        if not np.isfinite(scale):
            return np.full(len(self.edges), np.nan)
        # whole numbers, with which the algorithm is exact
        weights = np.rint(-direction.astype(float) / (scale or 1) * 2.0**50).astype(int).tolist()
        graph = self.networkx.Graph()
        graph.add_weighted_edges_from((*edge, weight) for edge, weight in zip(self.edges, weights))
        matching = self.networkx.max_weight_matching(graph, maxcardinality=self.perfect)
        point = np.zeros(len(self.edges))
        point[[self.edges[frozenset(edge)] for edge in matching]] = 1
        return point

    def _odd_deficit(self, x):
        r"""$\max_S 1 - x(\delta(S)) - \sum_{v\in S}(1 - x(\delta(v)))$ over odd sets S of nodes; 0 if none is positive.

        The sum makes this a cut in the graph with one more node, and a smallest odd cut is one of its Gomory-Hu tree.
        """
        slack = np.ones(self.nodes)
        graph = self.networkx.Graph()
        for (u, v), value in zip(self.edges, x.tolist()):
            graph.add_edge(u, v, capacity=max(value, 0.0))
            slack[[u, v]] -= value
        for node, value in enumerate(slack.tolist()):
            graph.add_edge("extra", node, capacity=max(value, 0.0))
        tree = self.networkx.gomory_hu_tree(graph)
        worst = 0.0
        for u, v, capacity in list(tree.edges(data="weight")):
            tree.remove_edge(u, v)
            side = self.networkx.node_connected_component(tree, u)
            tree.add_edge(u, v, weight=capacity)
            inside = self.nodes + 1 - len(side) if "extra" in side else len(side)
            worst = max(worst, (inside % 2) * (1 - capacity))
        return worst


def _matching_polytope(graph: Graph, perfect):
    """(oracle, a point inside, l1 and l2 diameters) of the polytope of (perfect) matchings."""
    from scipy import sparse

    nodes, edges = np.r_[graph.tails, graph.heads], np.tile(np.arange(graph.size), 2)
    degrees = sparse.csc_array((np.ones(2 * graph.size), (nodes, edges)), shape=(graph.nodes, graph.size))
    most = np.ones(graph.nodes)
    bounds = np.zeros(graph.size), np.ones(graph.size)
    none = "the graph has no perfect matching"
    relaxed = LinearProgram(degrees, (perfect * most, most), bounds, empty=none)
    if _bipartite(graph):
        return relaxed, jnp.asarray(relaxed.middle), jnp.asarray(relaxed.diameters())
    oracle = _Blossom(graph, perfect, relaxed)
    largest = oracle.minimise(-np.ones(graph.size)).sum()
    if perfect and 2 * largest < graph.nodes:
        raise DomainError(none)
    apart = min(2 * largest, np.floor(relaxed.diameters()[0] + 1e-6))
    return oracle, jnp.asarray(_average_matching(oracle, graph.size)), jnp.asarray([apart, apart**0.5])


def _average_matching(oracle, size):
    """The average of matchings that together use every edge that any matching can use.

    Each matching uses as many of the remaining edges as possible.
    """
    matchings, left = [], np.ones(size, bool)
    while left.any():
        matchings.append(oracle.minimise(-left.astype(float)))
        if not matchings[-1][left].any():
            break
        left &= matchings[-1] == 0
    return np.mean(matchings, axis=0)


def _bipartite(graph: Graph):
    """Whether the graph is bipartite.

    In its double cover, with two copies of each node and edges between copies, no node may be connected to its other
    copy.
    """
    from scipy import sparse

    n = graph.nodes
    ends = np.r_[graph.tails, graph.tails + n], np.r_[graph.heads + n, graph.heads]
    cover = sparse.csr_array((np.ones(2 * graph.size), ends), shape=(2 * n, 2 * n))
    _, part = sparse.csgraph.connected_components(cover, directed=False)
    return bool(np.all(part[:n] != part[n:]))


def _resistances(graph: Graph):
    """For each edge: the resistance between its ends, if every edge is a unit resistor.

    From the inverse of the Laplacian matrix with the last node grounded.
    """
    from scipy.linalg import cho_factor, cho_solve

    laplacian = np.zeros((graph.nodes, graph.nodes))
    for ends in ((graph.tails, graph.heads), (graph.heads, graph.tails)):
        np.add.at(laplacian, ends, -1.0)
        np.add.at(laplacian, ends[:1] * 2, 1.0)
    inverse = np.zeros_like(laplacian)
    inverse[:-1, :-1] = cho_solve(cho_factor(laplacian[:-1, :-1]), np.eye(graph.nodes - 1))
    own = np.diag(inverse)
    return own[graph.tails] + own[graph.heads] - 2 * inverse[graph.tails, graph.heads]


def _overfull(x, tails, heads):
    r"""$\max_S x(E[S]) - |S| + 1$ over sets S of nodes, which is at most 0 in the spanning tree polytope.

    For a root r in S it is $\max \langle x, z\rangle - \sum_{v\ne r} y_v$ over $z_{uv} \le y_u, y_v$ in the unit cube,
    which is totally unimodular. x and r occur in the cost only, so that one model serves all.
    """
    from scipy import sparse

    m, n = len(tails), int(max(tails.max(), heads.max())) + 1
    edges = np.arange(m)
    rows, columns = np.tile(np.arange(2 * m), 2), np.r_[edges, edges, m + tails, m + heads]
    below = sparse.csc_array((np.repeat([1.0, -1.0], 2 * m), (rows, columns)), shape=(2 * m, m + n))
    cube = np.zeros(m + n), np.ones(m + n)
    program = LinearProgram(below, (np.full(2 * m, -np.inf), np.zeros(2 * m)), cube)
    lead = x.shape[:-1]
    cost = np.broadcast_to(np.r_[np.zeros(m), np.ones(n)], (*lead, n, m + n)).copy()
    cost[..., :m] = -x[..., None, :]
    cost[..., np.arange(n), m + np.arange(n)] = 0
    return -(cost * program.minimise(cost)).sum(axis=-1).min(axis=-1)
