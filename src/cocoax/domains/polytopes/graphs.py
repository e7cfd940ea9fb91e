"""Paths and flows. Decisions are vectors over the edges of a directed graph.

A graph is given as an array of edges (tail, head), as a SciPy sparse adjacency matrix, one edge for each nonzero
entry, row by row, or as a NetworkX graph, whose nodes keep their names and whose edges keep their order. The attribute
`edges` of a set says which edge each coordinate belongs to. Numbers that no edge of an array uses are not nodes.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...core import check
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import number, scalar
from ..vectors.balls import rescale
from ..vertices import Chosen
from .graph import AbstractOverEdges, Graph, as_graph, on_device, reachable
from .linear_program import AbstractHosted, LinearProgram

_MOST_NODES = 1000  # for which a dense matrix over pairs of nodes is kept


class ShortestPath(AbstractOverEdges):
    r"""$X = \mathrm{conv}\{1_P \in \mathbb{R}^m : P \text{ a path from source to sink}\}$, in a graph without cycles.

    The LMO is the shortest path by dynamic programming over the levels of the graph, on the device. Directions may
    be negative, which makes shortest simple paths hard where there are cycles; on such graphs use `Flow`.

    >>> import jax.numpy as jnp
    >>> paths = ShortestPath([[0, 1], [0, 2], [1, 3], [2, 3], [1, 2]], source=0, sink=3)
    >>> paths.lmo(jnp.array([1.0, 3.0, 5.0, 1.0, 1.0])).dense().tolist()
    [1.0, 0.0, 0.0, 1.0, 1.0]
    """

    facts = DomainFacts("a pass over the edges")

    graph: Graph
    levels: Int[Array, "depth width"]  # the edges into each level of nodes, filled up with m
    balance: Float[Array, " nodes"]  # what leaves a node less what enters it
    walk: Float[Array, " m"]
    distance: Int[Array, ""]
    conductance: Float[Array, "nodes nodes"] | None  # the Laplacian's pseudo-inverse; None in large graphs
    source: int = eqx.field(static=True)
    sink: int = eqx.field(static=True)

    def __init__(self, edges: Any, source: Any, sink: Any):
        cyclic = "an undirected one has cycles, so use Flow(graph.to_directed(), ...)"
        graph = as_graph(edges, directed=True, otherwise=cyclic)
        self.source, self.sink = _ends(graph, source, sink)
        tails, heads, m = graph.tails, graph.heads, graph.size
        forth = reachable(tails, heads, graph.nodes, self.source)
        back = reachable(heads, tails, graph.nodes, self.sink)
        useful = np.flatnonzero(forth[tails] & back[heads])
        level = _levels(tails[useful], heads[useful], graph.nodes)
        into = [useful[level[heads[useful]] == k] for k in range(1, level.max() + 1)]
        width = max(len(some) for some in into)
        filled = [np.pad(some, (0, width - len(some)), constant_values=m) for some in into]

        self.graph, self.levels = on_device(graph), jnp.asarray(np.stack(filled))
        self.balance = jnp.zeros(graph.nodes).at[self.source].set(1).at[self.sink].set(-1)
        self.walk = jnp.asarray(_random_walk(tails, heads, useful, level, self.source))
        self.distance = jnp.asarray(_farthest_pair(tails[useful], heads[useful], level, self.source, self.sink))
        self.conductance = _conductance(tails[useful], heads[useful], graph.nodes)

    def __fingerprint__(self):
        return self.graph, self.source, self.sink  # the last bits of the conductance depend on the processor

    @property
    def shape(self):
        return self.graph.tails.shape

    def lmo(self, direction, guess=None):
        m, nodes = direction.size, self.balance.size
        # edge m fills up the levels: it is infinitely long, from the source to a node of its own
        lengths = jnp.append(rescale(direction)[0], jnp.inf)
        tails, heads = jnp.append(self.graph.tails, self.source), jnp.append(self.graph.heads, nodes)

        def reach(nodes, edges):
            """Shortest distances to the nodes of one level, and the edges by which they are reached."""
            distance, arrival = nodes
            through, at = distance[tails[edges]] + lengths[edges], heads[edges]
            distance = distance.at[at].min(through)
            return (distance, arrival.at[at].min(jnp.where(through == distance[at], edges, m))), None

        distance = jnp.full(nodes + 1, jnp.inf, direction.dtype).at[self.source].set(0)
        arrival = jnp.full(nodes + 1, m, self.levels.dtype)
        (_, arrival), _ = jax.lax.scan(reach, (distance, arrival), self.levels)

        def step_back(_, trail):
            node, mask = trail
            return tails[arrival[node]], mask.at[arrival[node]].set(True)

        first = jnp.asarray(self.sink, tails.dtype), jnp.zeros(m + 1, bool)
        _, mask = jax.lax.fori_loop(0, len(self.levels), step_back, first)
        return Chosen(mask[:m], jnp.ones((), direction.dtype))

    def tangent(self, direction):
        """The direction minus the nearest difference of potentials; 0 on edges that are on no path."""
        used = jnp.where(self.walk > 0, direction, 0)
        if self.conductance is None:
            return used
        tails, heads, nodes = self.graph.tails, self.graph.heads, self.balance.size
        leaves, enters = (jax.ops.segment_sum(used, ends, nodes) for ends in (tails, heads))
        with jax.default_matmul_precision("highest"):
            potential = self.conductance.astype(used.dtype) @ (leaves - enters)
        return jnp.where(self.walk > 0, direction - (potential[tails] - potential[heads]), 0)

    def start(self):
        """The random walk from the source: at each node, every useful edge has the same probability."""
        return self.walk

    def diameter(self, ord):
        return self.distance.astype(float) ** (1 / ord)

    def contains(self, x, tol=1e-6):
        ends = self.graph.tails, self.graph.heads
        leaves, enters = (jax.ops.segment_sum(x, nodes, self.balance.size) for nodes in ends)
        balanced = jnp.abs(leaves - enters - self.balance.astype(x.dtype)) <= tol
        on_paths = jnp.where(self.walk > 0, x >= -tol, jnp.abs(x) <= tol)
        return jnp.all(balanced) & jnp.all(on_paths)


class Flow(AbstractHosted, AbstractOverEdges):
    r"""$X = \{x \in \mathbb{R}^m : 0 \le x \le c,\ Nx = v\,(e_{source} - e_{sink})\}$.

    N is the node-edge incidence matrix. Cycles are allowed, in the graph and in a flow: where the direction is
    negative around a cycle, the answer fills it. The LMO is HiGHS on the host (`pip install 'cocoax[lp]'`).
    `diameter` is an upper bound, exact if all capacities and the value are 1, see `LinearProgram.diameters`.

    >>> import jax.numpy as jnp
    >>> flows = Flow([[0, 1], [1, 0], [1, 2], [0, 2]], source=0, sink=2)
    >>> flows.lmo(jnp.array([1.0, -3.0, 0.0, 1.0])).dense().tolist()
    [1.0, 1.0, 0.0, 1.0]
    """

    facts = DomainFacts("a solver on the host", on_host=True)

    graph: Graph

    def __init__(self, edges: Any, source: Any, sink: Any, value: Any = 1.0, capacity: Any = 1.0):
        graph = as_graph(edges, directed=True)
        self.graph = on_device(graph)
        capacity = _capacity(capacity, graph.size)
        matrix, sides = _conservation(graph, source, sink, value)
        empty = f"no flow of value {value} from {source} to {sink} fits into the capacities"
        self.oracle = LinearProgram(matrix, (sides, sides), (0 * capacity, capacity), empty=empty)
        self.sizes = (len(capacity),)
        self.middle, self.widths = jnp.asarray(self.oracle.middle), jnp.asarray(self.oracle.diameters())


class MultiCommodityFlow(AbstractHosted, AbstractOverEdges):
    r"""$X = \{x \in \mathbb{R}^{k\times m} : x_i \text{ a flow for commodity } i,\ \sum_i x_i \le c\}$.

    `commodities` lists (source, sink, value); they share the capacities c of the edges. Without shared capacities
    the set is a `Product` of `Flow`s or `ShortestPath`s, which is faster. For the rest see `Flow`.

    >>> import jax.numpy as jnp
    >>> flows = MultiCommodityFlow([[0, 1], [0, 2], [2, 1]], [(0, 1, 1.0), (0, 2, 1.0)], capacity=[1.0, 1.0, 2.0])
    >>> flows.lmo(jnp.array([[3.0, 1.0, 1.0], [0.0, 0.0, 0.0]])).dense().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """

    facts = DomainFacts("a solver on the host", on_host=True)

    graph: Graph

    def __init__(self, edges: Any, commodities: Any, capacity: Any = 1.0):
        from scipy import sparse

        graph = as_graph(edges, directed=True)
        self.graph = on_device(graph)
        commodities = _as_commodities(commodities)
        capacity = _capacity(capacity, graph.size)
        blocks, sides = zip(*(_conservation(graph, *commodity) for commodity in commodities))
        shared = sparse.kron(np.ones((1, len(blocks))), sparse.eye_array(len(capacity)))
        matrix = sparse.vstack([sparse.block_diag(blocks), shared], format="csc")
        sides = np.concatenate(sides)
        self.oracle = LinearProgram(
            matrix,
            (np.r_[sides, np.full(len(capacity), -np.inf)], np.r_[sides, capacity]),
            (np.zeros(len(blocks) * len(capacity)), np.tile(capacity, len(blocks))),
            empty="the commodities do not fit into the capacities together",
        )
        self.sizes = (len(blocks), len(capacity))
        self.middle = jnp.asarray(self.oracle.middle).reshape(self.sizes)
        self.widths = jnp.asarray(self.oracle.diameters())


def _as_commodities(commodities):
    """The user's commodities, checked to be a nonempty list of (source, sink, value)."""
    is_list = isinstance(commodities, list | tuple | np.ndarray)
    if not is_list or not all(isinstance(one, list | tuple | np.ndarray) and len(one) == 3 for one in commodities):
        raise DomainError(f"commodities must be a list of (source, sink, value), got {check.described(commodities)}")
    if len(commodities) == 0:
        raise DomainError("a multi-commodity flow needs at least one commodity, got none")
    return commodities


def _ends(graph: Graph, source, sink):
    """The numbers of source and sink, checked to be joined by a path."""
    ends = graph.number(source, "source"), graph.number(sink, "sink")
    if ends[0] == ends[1]:
        raise DomainError(f"source and sink must be different nodes, got {source!r} twice")
    if not reachable(graph.tails, graph.heads, graph.nodes, ends[0])[ends[1]]:
        raise DomainError(f"no path leads from the source {source!r} to the sink {sink!r}")
    return ends


def _conservation(graph: Graph, source, sink, value):
    """(matrix, right-hand side) of the constraint that a flow of `value` leaves the source and enters the sink.

    A row per node: what leaves it minus what enters it. The sink's row follows from the others and is left out.
    """
    from scipy import sparse

    start, end = _ends(graph, source, sink)
    scalar(value, "value", positive=True)
    edges = np.arange(graph.size)
    signs = np.repeat([1.0, -1.0], graph.size)
    places = np.r_[graph.tails, graph.heads], np.r_[edges, edges]
    matrix = sparse.csr_array((signs, places), shape=(graph.nodes, graph.size))
    others = np.arange(graph.nodes) != end
    return matrix[others], np.where(np.arange(graph.nodes) == start, float(value), 0.0)[others]


def _capacity(capacity, edges):
    """The user's capacity as a vector over the edges, checked to be nonnegative."""
    number(capacity, "capacity")
    capacity = np.asarray(capacity, float)
    if capacity.shape not in ((), (edges,)) or capacity.min() < 0:
        raise DomainError(f"capacity must be one number or {edges}, none negative, got {capacity.tolist()}")
    return np.broadcast_to(capacity, edges)


def _levels(tails, heads, nodes):
    """For each node: the number of edges on the longest path to it; raises `DomainError` if there is a cycle."""
    level = np.zeros(nodes, int)
    for _ in range(nodes):
        deeper = level.copy()
        np.maximum.at(deeper, heads, level[tails] + 1)
        if np.array_equal(deeper, level):
            return level
        level = deeper
    raise DomainError("there is a cycle between source and sink, where shortest paths are hard; use Flow instead")


def _conductance(tails, heads, nodes):
    """The pseudo-inverse of N N^T for the incidence matrix N; None for large graphs."""
    if nodes > _MOST_NODES:
        return None
    incidence = np.zeros((nodes, len(tails)))
    np.add.at(incidence, (tails, np.arange(len(tails))), 1)
    np.add.at(incidence, (heads, np.arange(len(tails))), -1)
    return jnp.asarray(np.linalg.pinv(incidence @ incidence.T, hermitian=True))


def _random_walk(tails, heads, useful, level, source):
    """For each edge: the probability that a random walk from the source along useful edges takes it."""
    walk, mass = np.zeros(len(tails)), np.zeros(len(level))
    mass[source] = 1
    choices = np.bincount(tails[useful], minlength=len(level))
    for k in range(level.max()):
        edges = useful[level[tails[useful]] == k]
        walk[edges] = mass[tails[edges]] / choices[tails[edges]]
        np.add.at(mass, heads[edges], walk[edges])
    return walk


def _farthest_pair(tails, heads, level, source, sink):
    """The largest possible number of edges that are on exactly one of two paths.

    Two paths are a flow of two units. An edge gains 1 from the first unit and loses 1 from the second, so that
    successive best paths find the best flow: the longest path, then the best path that may also undo parts of it.
    """
    longest, node = [], sink
    while node != source:
        longest.append(np.flatnonzero((heads == node) & (level[tails] == level[node] - 1))[0])
        node = tails[longest[-1]]
    start, end = np.r_[tails, heads[longest]], np.r_[heads, tails[longest]]
    gains = np.ones(len(start))
    gains[longest], gains[len(tails) :] = -1, -1
    best = np.where(np.arange(len(level)) == source, 0.0, -np.inf)
    while True:
        better = best.copy()
        np.maximum.at(better, end, best[start] + gains)
        if np.array_equal(better, best):
            return int(len(longest) + best[sink])
        best = better
