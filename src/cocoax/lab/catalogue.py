"""Everything that cocoax offers, by name: what it costs a round, and what is proven of it."""

import inspect
from typing import NamedTuple

from .. import domains, dual, learners, primal, problems


class Entry(NamedTuple):
    name: str
    summary: str  # the first line of its docstring
    cost: str  # a round
    guarantee: str  # or what it is for


_UNTUNED = ("1 LMO, 3 gradients", "no constants, no horizon: see the arena; T^(5/6) proven without constraints")
LEARNERS = {
    "Auto": _UNTUNED,
    "TrackedPI": _UNTUNED,
    "Capped": ("its learner's", "the running violation never exceeds a limit, proven"),
    "Anytime": ("its learner's", "its learner's without a horizon, times 1/(2^e - 1) for an exponent e, proven"),
    "Blocks": (
        "its primal's, and one dual step a block",
        "regret T^((2-a)/(3-2a)), violation T^((5-3a)/(6-4a)), proven",
    ),
    "PDMFW": ("ceil(sqrt T) LMOs and gradients", "regret T^(1/2), violation T^(3/4), smooth, expected, proven"),
    "PrimalDual": ("its primal's and its dual's", "those of its parts, where they have a common proof"),
    "LyapHard": ("its primal's: 1 LMO", "regret and hard violation T^(3/4), log T in the latter, proven"),
    "LyapPred": ("its primal's: 1 LMO", "regret and hard violation T^(3/4), sqrt(log T) in the latter, proven"),
    "LyapStoch": (
        "its primal's: 1 LMO",
        "regret and violation T^(3/4), sqrt(log T) in the latter, expected, no Slater, proven",
    ),
    "PDOFW": ("1 LMO", "regret T^(3/4), violation T^(7/8), T^(3/4) under strong duality, expected, proven"),
    "PENOFW": ("1 LMO", "regret T^(3/4), hard violation T^(7/8), proven"),
    "PDOGD": ("one projection", "regret T^(1/2), violation T^(3/4), proven"),
    "AdaptivePDOGD": ("one projection", "regret T^(1/2), violation T^(3/4) for one fixed constraint, proven"),
    "DPP": ("one projection", "regret and violation T^(1/2), i.i.d. constraints, Slater, expected, proven"),
    "YuNeely": ("one projection", "regret T^(1/2), violation O(1), one fixed constraint, Slater, in print"),
    "DPPMirror": ("one projection, none on a simplex", "regret and violation T^(1/2), i.i.d. constraints, in print"),
    "Liakopoulos": ("one projection", "regret K T / V + T^(1/2), violation (V T)^(1/2), from memory"),
    "YuanLamperski": ("one projection", "regret T^(1/2), hard violation T^(3/4), proven"),
    "Yi": (
        "50 projections and more",
        "regret T^max(c,1-c), hard violation T^((1-c)/2), one fixed constraint, proven",
    ),
    "RECOO": (
        "50 projections and more",
        "regret T^(1/2), hard violation O(1) if the constraint is fixed, else T^(3/4), proven",
    ),
    "Valls": ("one projection", "regret and violation T^(1/2), perturbed constraints, Slater, in print"),
    "Castiglioni": ("its primal's", "regret T^(1/2) with OGD, i.i.d. constraints, proven; violation from memory"),
    "OSPHG": ("ceil(sqrt T) projections and gradients", "regret T^(1/2), violation T^(3/4), smooth, proven"),
    "FWCSOA": ("1 LMO", "gap T^(-1/4) and no violation of the average, i.i.d., Slater, expected, proven"),
    "Stay": ("nothing", "none: what doing nothing would cost"),
}
PRIMALS = {
    "AdaGrad": ("one projection", "T^(1/2), after every round, no constants, proven"),
    "AdaMFW": ("ceil(sqrt T) LMOs and gradients", "T^(1/2), smooth, weights that grow, expected, proven"),
    "AdaOFW": ("1 LMO", "T^(3/4), after every round, no constants, proven"),
    "LOOBOGD": ("O(1) LMOs on average", "T^(3/4), on every interval, proven"),
    "OFW": ("1 LMO", "T^(3/4), proven"),
    "Tracked": ("1 LMO", "T^(3/4), after every round, no constants, proven"),
    "OCG": ("1 LMO", "T^(3/4), proven"),
    "OSPF": ("1 LMO on average", "T^(2/3), smooth, expected, proven"),
    "SFTPL": ("T LMOs, ceil(sqrt T) if smooth", "T^(1/2), expected, proven"),
    "ORGFW": ("1 LMO, 2 gradients", "T^(1/2), i.i.d. smooth losses, proven"),
    "MFW": ("ceil(sqrt T) LMOs and gradients", "T^(1/2), smooth, expected, proven"),
    "MORGFW": ("T LMOs, 1 gradient each (of a sample: 2)", "T^(1/2), smooth, expected, proven"),
    "FTPL": ("1 LMO", "T^(1/2) for linear losses, expected, proven"),
    "MetaOGD": ("ceil(sqrt T) projections and gradients", "T^(1/2), smooth, proven"),
    "OGD": ("one projection", "T^(1/2), proven"),
}
DUALS = {
    "DriftPotential": ("m + 1 numbers", "stochastic constraints, no Slater: LyapStoch's"),
    "ExponentialPotential": ("m numbers", "hard constraints, a deterministic primal: LyapHard's"),
    "Hard": ("its rule's for one constraint", "the worst of several hard constraints"),
    "PI": ("9 m + 2 numbers, gradient norms", "no constants, no units"),
    "Penalty": ("m numbers", "hard constraints, a deterministic primal"),
    "BoundedAscent": ("m numbers", "multipliers below a cap: 1 / Slater's margin"),
    "FlooredQueue": ("m numbers, one evaluation", "Yu and Neely's, for one fixed constraint"),
    "RegularizedAscent": ("m numbers", "the paper's"),
    "VirtualQueue": ("m numbers, one linearisation", "drift-plus-penalty's"),
}
PROBLEMS = {
    "matrix_completion": ("a nuclear-norm ball", "the paper's experiment; binding=True where the constraint matters"),
    "simplex": ("a probability simplex", "linear or quadratic losses, i.i.d. or switching, 1 or more constraints"),
    "pacing": ("a box", "budgeted buying; prices may double"),
    "portfolio": ("a probability simplex", "growth of wealth within a limit on risk"),
    "shortest_path": ("paths across a grid", "routing within an emissions budget"),
    "sparse_regression": ("an l1 ball", "squared or absolute errors, a limit on an exposure"),
    "group_sparsity": ("a group-lasso ball", "squared errors, a limit on an exposure"),
    "online_pca": ("a Fantope", "explained variance, a limit on another one"),
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
    helpers = {"Scale", "Weights", "Outcome", "Horizon", "Instance", "FromLMO", "rescaled", "waking"} - (
        {"Scale"} if module is domains else set()
    )
    named = {name: getattr(module, name) for name in module.__all__ if not name.startswith("Abstract")}
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
