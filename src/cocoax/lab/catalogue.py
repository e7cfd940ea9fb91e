"""Everything that cocoax offers, by name: what it costs a round, and what is proven of it."""

import inspect
from typing import NamedTuple

from .. import domains, dual, learners, primal, problems


class Entry(NamedTuple):
    name: str
    summary: str  # the first line of its docstring
    cost: str  # a round
    guarantee: str  # or what it is for


LEARNERS = {
    "Blocks": (
        "its primal's, and one dual step a block",
        "regret T^((2-a)/(3-2a)), violation T^((5-3a)/(6-4a)), proven",
    ),
    "PDMFW": ("ceil(sqrt T) LMOs and gradients", "regret T^(1/2), violation T^(3/4), smooth, expected, proven"),
    "PrimalDual": ("its primal's and its dual's", "those of its parts, where they have a common proof"),
    "PDOGD": ("one projection", "regret T^(1/2), violation T^(3/4), proven"),
    "AdaptivePDOGD": ("one projection", "regret T^(1/2), violation T^(3/4) for one fixed constraint, proven"),
    "DPP": ("one projection", "regret and violation T^(1/2), i.i.d. constraints, Slater, expected, proven"),
    "Stay": ("nothing", "none: what doing nothing would cost"),
}
PRIMALS = {
    "OCG": ("1 LMO", "T^(3/4), proven"),
    "OSPF": ("1 LMO on average", "T^(2/3), smooth, expected, proven"),
    "SFTPL": ("T LMOs, ceil(sqrt T) if smooth", "T^(1/2), expected, proven"),
    "ORGFW": ("1 LMO, 2 gradients", "T^(1/2), i.i.d. smooth losses, proven"),
    "MFW": ("ceil(sqrt T) LMOs and gradients", "T^(1/2), smooth, expected, proven"),
    "MORGFW": ("T LMOs, 1 gradient each (of a sample: 2)", "T^(1/2), smooth, expected, proven"),
    "FTPL": ("1 LMO", "T^(1/2) for linear losses, expected, proven"),
    "OGD": ("one projection", "T^(1/2), proven"),
}
DUALS = {
    "RegularizedAscent": ("m numbers", "the paper's"),
    "VirtualQueue": ("m numbers, one linearisation", "drift-plus-penalty's"),
}
PROBLEMS = {
    "matrix_completion": ("a nuclear-norm ball", "the paper's experiment; binding=True where the constraint matters"),
    "simplex": ("a probability simplex", "linear or quadratic losses, i.i.d. or switching, 1 or more constraints"),
    "pacing": ("a box", "budgeted buying"),
}
_HOST = {"Polytope", "Transport", "Flow", "MultiCommodityFlow", "Matching", "PerfectMatching", "matroid"}
_ONE_PASS = "a pass over the direction"
_COSTS = {
    **dict.fromkeys(["NuclearNormBall", "Spectraplex", "UnitSpectrahedron"], "a few passes, warm"),
    **dict.fromkeys(["Fantope", "SchattenBall", "SpectralNormBall"], "one decomposition"),
    **dict.fromkeys(["CappedSimplex", "ReverseKnapsack", "Permutahedron", "OWLBall", "PartitionMatroid"], "a sort"),
    **dict.fromkeys(_HOST, "a solver on the host"),
    "Ellipsoid": "a triangular solve",
    "ConvexHull": "a product with the points",
    "Birkhoff": "n^3",
    "ShortestPath": "a pass over the edges",
    "SpanningTree": "edges log nodes",
    "Intersection": "a handful of its set's",
    **dict.fromkeys(
        ["Product", "Scale", "Translate", "LinearImage", "MinkowskiSum", "UnionHull", "Restrict", "Embed"], "its parts'"
    ),
    **dict.fromkeys(["Counted", "Cached"], "its set's, or less"),
    **dict.fromkeys(["from_lmo"], "yours"),
}


def catalogue() -> dict[str, list[Entry]]:
    """By kind: domains, primals, duals, learners, problems."""
    return {
        "domains": [_domain(name) for name in offered(domains)],
        "primals": [_entry(primal, name, PRIMALS) for name in offered(primal)],
        "duals": [_entry(dual, name, DUALS) for name in offered(dual)],
        "learners": [_entry(learners, name, LEARNERS) for name in offered(learners)],
        "problems": [_entry(problems, name, PROBLEMS) for name in offered(problems)],
    }


def offered(module) -> list[str]:
    """The public names that a user builds with."""
    helpers = {"Scale", "Weights", "Outcome", "Horizon", "Instance", "FromLMO"} - (
        {"Scale"} if module is domains else set()
    )
    named = {name: each for name, each in vars(module).items() if not name.startswith(("_", "Abstract"))}
    return sorted(
        (
            name
            for name, each in named.items()
            if (inspect.isclass(each) or inspect.isfunction(each)) and name not in helpers
        ),
        key=str.lower,
    )


def _summary(each) -> str:
    return (inspect.getdoc(each) or "").split("\n")[0]


def _entry(module, name, known) -> Entry:
    return Entry(name, _summary(getattr(module, name)), *known[name])


def _domain(name) -> Entry:
    place = "on the host" if name in _HOST else "compiled"
    return Entry(name, _summary(getattr(domains, name)), _COSTS.get(name, _ONE_PASS), place)
