"""Candidate routes for traffic through a network: the shortest ones of each demand."""

import heapq

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from ...domains import PartitionMatroid
from ...errors import ProblemError


class Routes(eqx.Module):
    """The candidate routes of all demands, each demand's shortest first; a decision has each route's fraction of its
    demand.
    """

    links: Int[np.ndarray, "links 2"]
    owner: Int[np.ndarray, " paths"]  # the demand that a route is for
    uses: Float[np.ndarray, "links paths"]  # 1 where a route uses a link
    lengths: Float[np.ndarray, " paths"]
    amount: Float[np.ndarray, " demands"]

    def domain(self) -> PartitionMatroid:
        """The set of fractions that sum to 1 for each demand: a product of simplices."""
        return PartitionMatroid(self.owner, np.ones(len(self.amount)))

    @property
    def shortest(self) -> Float[np.ndarray, " paths"]:
        """The decision that sends all traffic along the shortest paths, in km."""
        return np.r_[1.0, np.diff(self.owner) > 0]

    @property
    def equal_cost(self) -> Float[np.ndarray, " paths"]:
        """The decision of ECMP: equal fractions on all paths with the fewest links."""
        hops = self.uses.sum(0)
        fewest = np.full(len(self.amount), np.inf)
        np.minimum.at(fewest, self.owner, hops)
        chosen = (hops == fewest[self.owner]).astype(float)
        return chosen / np.bincount(self.owner, chosen)[self.owner]


def both_ways(table: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(links, lengths) of a network whose links are listed once and go both ways."""
    ends = np.stack([table["source"], table["target"]], 1)
    return np.concatenate([ends, ends[:, ::-1]]), np.tile(table["length"], 2)


def candidate_routes(links: np.ndarray, lengths: np.ndarray, demands: dict[str, np.ndarray], count: int) -> Routes:
    """The `count` shortest simple routes, or fewer, of each demand (source, target, amount).

    >>> links, demands = np.array([[0, 1], [0, 2], [2, 1]]), {"source": [0], "target": [1], "amount": [5.0]}
    >>> candidate_routes(links, np.array([3.0, 1.0, 1.0]), demands, 2).lengths.tolist()
    [2.0, 3.0]
    """
    leaving = [np.flatnonzero(links[:, 0] == node) for node in range(links.max() + 1)]
    found, owner = [], []
    for number, (source, target) in enumerate(zip(demands["source"], demands["target"])):
        some = _shortest_paths(links, lengths, leaving, int(source), int(target), count)
        if not some:
            raise ProblemError(f"no route leads from node {source} to node {target}; leave out that demand")
        found += some
        owner += [number] * len(some)
    uses = np.zeros((len(links), len(found)))
    for place, path in enumerate(found):
        uses[path, place] = 1
    return Routes(links, np.array(owner), uses, lengths @ uses, np.asarray(demands["amount"], float))


def _shortest_paths(links, lengths, leaving, source, target, count):
    """The `count` shortest simple paths from source to target, or fewer, as lists of links.

    By best-first search; the rest of a path is bounded below by the distance from its last node to the target.
    """
    left = _distances(links, lengths, target)
    queue: list[tuple[float, tuple[int, ...], tuple[int, ...]]] = [(float(left[source]), (source,), ())]
    found: list[list[int]] = []
    while queue and len(found) < count:
        bound, nodes, path = heapq.heappop(queue)
        if nodes[-1] == target:
            found.append(list(path))
            continue
        for link in leaving[nodes[-1]]:
            node = int(links[link, 1])
            if node not in nodes and np.isfinite(left[node]):
                further = float(bound - left[nodes[-1]] + lengths[link] + left[node])
                heapq.heappush(queue, (further, (*nodes, node), (*path, int(link))))
    return found


def _distances(links, lengths, target):
    """The shortest distance from every node to the target (Bellman, Ford)."""
    distances = np.full(links.max() + 1, np.inf)
    distances[target] = 0
    for _ in range(len(distances)):
        np.minimum.at(distances, links[:, 0], lengths + distances[links[:, 1]])
    return distances
