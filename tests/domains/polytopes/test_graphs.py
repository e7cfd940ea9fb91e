"""Sets of edges agree with the list of their vertices, found by brute force, and with other solvers."""

import itertools

import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from domain_tools import (
    answers,
    batches,
    check_diameters,
    check_every,
    check_frank_wolfe,
    check_membership,
    check_minima,
    corners,
    few_batches,
    hull,
    lowest,
)
from scipy import sparse
from scipy.optimize import linprog
from slow_tools import slow_but

from cocoax import DomainError
from cocoax.domains.polytopes.graphs import Flow, MultiCommodityFlow, ShortestPath
from cocoax.domains.polytopes.matchings import Matching, PerfectMatching, SpanningTree

DAG = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [2, 4], [3, 5], [4, 5], [0, 1], [6, 1], [3, 7]])
CYCLIC = np.array([[0, 1], [1, 2], [2, 0], [1, 3], [2, 3], [3, 2], [0, 3]])
CAPACITY = np.array([1.0, 2.0, 0.5, 1.0, 0.7, 1.0, 0.8])
SMALL = np.array([[0, 1], [1, 2], [2, 0], [0, 2]])
SHARED = np.array([1.0, 1.1, 0.8, 0.5])
PRISM = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 3], [0, 5], [1, 4]])  # two triangles
BIPARTITE = np.array([[0, 3], [0, 4], [1, 3], [1, 5], [2, 4], [2, 5], [1, 4]])
TRIANGLES = np.array([[0, 1], [1, 2], [2, 0], [2, 3]])


def incidence(edges, nodes=None):
    matrix = np.zeros((nodes or edges.max() + 1, len(edges)))
    np.add.at(matrix, (edges[:, 0], np.arange(len(edges))), 1)
    np.add.at(matrix, (edges[:, 1], np.arange(len(edges))), -1)
    return matrix


def subsets(edges, keep):
    """The 0-1 vectors of the sets of edges to keep."""
    return np.array([s for s in itertools.product([0.0, 1.0], repeat=len(edges)) if keep(np.array(s))])


def unit_flows(edges, source, sink):
    matrix = incidence(edges)
    wanted = np.zeros(len(matrix))
    wanted[source], wanted[sink] = 1, -1
    return subsets(edges, lambda x: np.array_equal(matrix @ x, wanted))


def flow_corners(edges, commodities, capacity):
    """Vertices of the flows of several commodities under shared capacities."""
    matrix, k, m = incidence(edges), len(commodities), len(edges)
    wanted = np.zeros((k, len(matrix)))
    for row, (source, sink, value) in zip(wanted, commodities):
        row[source], row[sink] = value, -value
    shared = np.tile(np.eye(m), k) if k > 1 else np.zeros((0, m))
    bounds = np.zeros(k * m), np.tile(capacity, k)
    return corners(shared, capacity[: len(shared)], np.kron(np.eye(k), matrix), wanted.ravel(), *bounds)


def trees(edges):
    matrix = incidence(edges)
    nodes = len(matrix)
    return subsets(edges, lambda x: x.sum() == nodes - 1 and np.linalg.matrix_rank(matrix[:, x > 0]) == nodes - 1)


def matchings(edges, perfect=False):
    degrees = abs(incidence(edges))
    return subsets(edges, lambda x: np.all(degrees @ x == 1 if perfect else degrees @ x <= 1))


TRADES = [(0, 2, 0.6), (1, 0, 0.5)]
DOMAINS = {
    "path": (ShortestPath(DAG, 0, 5), unit_flows(DAG, 0, 5)),
    "only path": (ShortestPath([[0, 1], [1, 2]], 0, 2), np.ones((1, 2))),
    "unit flow": (Flow(CYCLIC, 0, 3), unit_flows(CYCLIC, 0, 3)),
    "flow": (Flow(CYCLIC, 0, 3, 1.2, CAPACITY), flow_corners(CYCLIC, [(0, 3, 1.2)], CAPACITY)),
    "flow of a path graph": (Flow(DAG, 0, 5), unit_flows(DAG, 0, 5)),
    "commodities": (MultiCommodityFlow(SMALL, TRADES, SHARED), flow_corners(SMALL, TRADES, SHARED)),
    "tree": (SpanningTree(PRISM), trees(PRISM)),
    "tree with a bridge": (SpanningTree(TRIANGLES), trees(TRIANGLES)),
    "only tree": (SpanningTree([[0, 1], [2, 1]]), np.ones((1, 2))),
    "matching": (Matching(PRISM), matchings(PRISM)),
    "bipartite matching": (Matching(BIPARTITE), matchings(BIPARTITE)),
    "perfect matching": (PerfectMatching(PRISM), matchings(PRISM, perfect=True)),
    "bipartite perfect matching": (PerfectMatching(BIPARTITE), matchings(BIPARTITE, perfect=True)),
}
BOUNDED_DIAMETERS = {"flow", "commodities"}
# the degrees allow 1/2 on each edge of an odd cycle, an odd set does not; and 1 on a triangle is no part of a tree
HALF_TRIANGLES = np.array([[0.5, 0.5, 0.5, 0, 0.5, 0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0, 0, 0, 0, 0.5, 0]])
FULL_TRIANGLE = np.array([[1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0], [1, 1, 0, 0.5, 0.5, 0.5, 0.75, 0.75, 0]])
MORE = {
    "matching": [HALF_TRIANGLES],
    "perfect matching": [HALF_TRIANGLES],
    "tree": [FULL_TRIANGLE],
    "path": [np.eye(len(DAG))[[9, 10]]],
}


ALIKE = {"only path", "unit flow", "flow of a path graph", "tree with a bridge", "only tree"}  # up to numbers
CONTRACTS = {name: DOMAINS[name][0] for name in DOMAINS if name not in ALIKE}


test_every_domain_keeps_its_contract = check_every(CONTRACTS, directions=12)


@pytest.mark.parametrize("name", DOMAINS)
@few_batches
@hypothesis.given(data=st.data())
def test_minima_are_those_of_the_vertices(name, data):
    domain, vertices = DOMAINS[name]
    check_minima(domain, data.draw(batches(domain.shape)), lowest(vertices), 1e-8)


@pytest.mark.parametrize("name", DOMAINS)
def test_diameters_are_those_of_the_vertices(name):
    check_diameters(*DOMAINS[name], exact=name not in BOUNDED_DIAMETERS)


@pytest.mark.parametrize("name", slow_but(CONTRACTS, DOMAINS))
def test_members_are_mixtures_of_vertices(name):
    check_membership(*DOMAINS[name], more=MORE.get(name, ()))


@pytest.mark.parametrize("name", ["path", "flow", "commodities", "tree", "matching", "perfect matching"])
def test_frank_wolfe_reaches_the_optimum(name):
    domain, vertices = DOMAINS[name]
    check_frank_wolfe(domain, hull(vertices), steps=400)


@hypothesis.settings(max_examples=25)
@hypothesis.given(st.integers(0, 2**31))
def test_path_diameters_are_exact(seed):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, 6, (9, 2)), axis=1)
    edges = np.unique(np.concatenate([ends[ends[:, 0] < ends[:, 1]], [[0, 5]]]), axis=0)
    vertices = unit_flows(edges, 0, 5)
    widest = np.abs(vertices[:, None] - vertices).sum(axis=-1).max()
    assert float(ShortestPath(edges, 0, 5).diameter(1)) == widest


def random_edges(rng, nodes, count):
    """A connected graph with edges from smaller to larger nodes; every node has one from and one to a neighbour."""
    chain = np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1)
    ends = np.sort(rng.integers(0, nodes, (count, 2)), axis=1)
    return np.concatenate([chain, ends[ends[:, 0] < ends[:, 1]]])


def test_larger_graphs_agree_with_other_solvers():
    rng = np.random.default_rng(0)
    edges = random_edges(rng, 40, 150)
    directions = rng.standard_normal((8, len(edges)))
    wanted = np.zeros(40)
    wanted[0], wanted[39] = 1, -1
    paths = answers(ShortestPath(edges, 0, 39), jnp.asarray(directions))
    spanning = answers(SpanningTree(edges), jnp.asarray(directions))
    flows = answers(Flow(edges, 0, 39), jnp.asarray(directions))
    for direction, path, flow, tree in zip(directions, paths, flows, spanning):
        found = linprog(direction, A_eq=incidence(edges), b_eq=wanted, bounds=(0, 1))
        assert float(direction @ flow) == pytest.approx(found.fun)
        assert float(direction @ path) == pytest.approx(found.fun)  # without cycles, one unit fits every capacity
        graph = nx.MultiGraph()
        graph.add_weighted_edges_from((*edge, weight) for edge, weight in zip(edges.tolist(), direction))
        assert float(direction @ tree) == pytest.approx(nx.minimum_spanning_tree(graph).size("weight"))


def test_larger_matchings_agree_with_networkx():
    rng = np.random.default_rng(1)
    complete = np.array(list(itertools.combinations(range(12), 2)))
    grid = np.array(nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 5)).edges)
    for edges in (complete, grid):
        for domain, largest in ((Matching(edges), False), (PerfectMatching(edges), True)):
            directions = rng.standard_normal((5, len(edges)))
            for direction, point in zip(directions, answers(domain, jnp.asarray(directions))):
                graph = nx.Graph()
                graph.add_weighted_edges_from((*edge, -weight) for edge, weight in zip(edges.tolist(), direction))
                found = nx.max_weight_matching(graph, maxcardinality=largest)
                expected = sum(-graph.edges[edge]["weight"] for edge in found)
                assert float(direction @ point) == pytest.approx(expected)


def test_nodes_may_have_large_numbers():
    path = ShortestPath([[0, 10**9], [10**9, 7]], 0, jnp.array(7))
    assert path.lmo(jnp.ones(2)).dense().tolist() == [1, 1]
    assert float(SpanningTree([[5, 10**9], [10**9, 0]]).start().sum()) == pytest.approx(2)


def test_a_graph_comes_in_three_forms():
    rng = np.random.default_rng(0)
    edges = np.unique(DAG, axis=0)  # row by row, as a matrix stores them
    adjacency = sparse.coo_array((np.ones(len(edges)), edges.T), shape=(8, 8))
    graph = nx.DiGraph()
    graph.add_nodes_from("abcdefgh")
    graph.add_edges_from(["abcdefgh"[tail] + "abcdefgh"[head] for tail, head in edges])
    direction = jnp.asarray(rng.standard_normal(len(edges)))
    for build in (ShortestPath, Flow):
        answers = [build(edges, 0, 5), build(adjacency, 0, 5), build(graph, "a", "f")]
        first, *others = (domain.lmo(direction).dense().tolist() for domain in answers)
        assert others == [first, first]
    edges = np.sort(PRISM, axis=1)
    edges = edges[np.lexsort(edges.T[::-1])]
    adjacency = sparse.csr_array((np.ones(len(edges)), edges.T), shape=(6, 6))
    direction = jnp.asarray(rng.standard_normal(len(edges)))
    for build in (SpanningTree, Matching, PerfectMatching):
        graphs = edges, adjacency, adjacency + adjacency.T, nx.Graph(adjacency.toarray())
        first, *others = (build(graph).lmo(direction).dense().tolist() for graph in graphs)
        assert others == [first, first, first]


def test_graphs_of_one_shape_share_a_compilation():
    traces = []

    @eqx.filter_jit
    def minimum(domain, direction):
        traces.append(domain)
        return domain.lmo(direction).dense()

    for edges in (TRIANGLES, TRIANGLES[:, ::-1], np.array([[0, 1], [1, 2], [3, 0], [2, 3]])):
        minimum(SpanningTree(edges), jnp.ones(4))
    assert len(traces) == 1
    flows = Flow(CYCLIC, 0, 3)
    for seed in range(3):
        minimum(flows, jnp.asarray(np.random.default_rng(seed).standard_normal(7)))
    assert len(traces) == 2


def test_start_uses_every_edge_that_can_be_used():
    for name in ("path", "unit flow", "tree", "bipartite matching", "matching", "perfect matching"):
        domain, vertices = DOMAINS[name]
        np.testing.assert_array_equal(np.asarray(domain.start()) > 1e-9, vertices.max(axis=0) > 0)


def test_a_direction_that_is_not_finite_has_no_matching():
    for name in ("matching", "bipartite matching"):
        domain = DOMAINS[name][0]
        compiled = jax.vmap(domain.lmo)(jnp.full((1, *domain.shape), jnp.nan))  # where nothing can be refused
        assert np.isnan(jax.vmap(lambda vertex: vertex.dense())(compiled)).all()


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: ShortestPath(CYCLIC, 0, 3), "a cycle between source and sink.*use Flow"),
        (lambda: ShortestPath(DAG, 5, 0), "no path leads from the source 5 to the sink 0"),
        (lambda: ShortestPath(DAG, 0, 9), "the sink must be a node of the graph, got 9"),
        (lambda: ShortestPath(DAG, 0, 0), "different nodes, got 0 twice"),
        (lambda: ShortestPath(DAG.astype(float), 0, 5), r"whole numbers of shape \(m, 2\), got float64"),
        (lambda: ShortestPath([[0, -1]], 0, 1), "numbered from 0, got an edge at node -1"),
        (lambda: ShortestPath(np.zeros((0, 2), int), 0, 1), "at least one edge"),
        (
            lambda: ShortestPath(nx.path_graph(3), 0, 2),
            "an undirected one has cycles, so use Flow",
        ),
        (lambda: Flow(sparse.csr_array((2, 3)), 0, 1), r"must be square, got shape \(2, 3\)"),
        (lambda: Flow(DAG, 5, 0), "no path leads from the source 5 to the sink 0"),
        (lambda: Flow(CYCLIC, 0, 3, value=9.0), "no flow of value 9.0 from 0 to 3 fits"),
        (lambda: Flow(CYCLIC, 0, 3, value=-1.0), "value must be positive"),
        (lambda: Flow(CYCLIC, 0, 3, capacity=[1.0, 2.0]), r"one number or 7, none negative, got \[1.0, 2.0\]"),
        (lambda: Flow(CYCLIC, 0, 3, capacity=np.inf), "capacity must be finite"),
        (lambda: MultiCommodityFlow(SMALL, []), "at least one commodity"),
        (lambda: MultiCommodityFlow(SMALL, [(0, 1, 1.0), (0, 1, 0.5)]), "do not fit into the capacities together"),
        (lambda: SpanningTree([[0, 1], [2, 3]]), "not connected"),
        (lambda: SpanningTree([[0, 1], [1, 1]]), "two different nodes, but edge 1 does not"),
        (lambda: SpanningTree(nx.DiGraph([(0, 1)])), "needs an undirected graph; give graph.to_undirected()"),
        (lambda: Matching([[0, 1], [1, 2], [2, 0], [1, 0]]), "join the same nodes"),
        (lambda: PerfectMatching([[0, 1], [1, 2]]), "even number of nodes, got 3"),
        (lambda: PerfectMatching([[0, 1], [0, 2], [0, 3]]), "no perfect matching"),
        (lambda: PerfectMatching([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]]), "no perfect matching"),
        (lambda: ShortestPath([[0, 1], [1]], 0, 1), "edges must be pairs.*unequal lengths"),
        (lambda: ShortestPath([[0, 1]], [0], 1), r"the source must be a node of the graph, got \[0\]"),
        (lambda: SpanningTree([]), "at least one edge"),
        (lambda: MultiCommodityFlow(SMALL, [(0, 1)]), r"a list of \(source, sink, value\), got \[\(0, 1\)\]"),
        (lambda: MultiCommodityFlow(SMALL, [(0, 1, 1.0, 2.0)]), r"a list of \(source, sink, value\)"),
        (lambda: MultiCommodityFlow(SMALL, (0, 1, 1.0)), r"a list of \(source, sink, value\)"),
        (lambda: MultiCommodityFlow(SMALL, 5), r"a list of \(source, sink, value\), got 5"),
    ],
)
def test_bad_sets_are_refused_in_one_sentence(build, message):
    with pytest.raises(DomainError, match=message):
        build()
