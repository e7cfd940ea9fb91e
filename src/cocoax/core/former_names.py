"""Where stored sessions and studies think that cocoax keeps its classes and functions.

A fingerprint names what is installed by its module. When a module moves, a line here keeps the fingerprint, so that
what was stored before can still be opened.
"""

_FORMER = {
    "comparators.comparator": "_hindsight",
    "comparators.hindsight": "_hindsight",
    "comparators.objective": "_objective",
    "comparators.proximal_step": "_hull",
    "comparators.quadratic": "_quadratic",
    "comparators.solver": "_solver",
    "core.parameters": "_parameters",
    "core.tree": "_tree",
    "domains.arguments": "domains._arguments",
    "domains.composed.column_generation": "domains._columns",
    "domains.composed.coordinates": "domains.coordinates",
    "domains.composed.from_lmo": "domains.combinators",
    "domains.composed.intersection": "domains.intersection",
    "domains.composed.linear_image": "domains.linear_image",
    "domains.composed.product": "domains.combinators",
    "domains.composed.sums": "domains.sums",
    "domains.composed.transforms": "domains.transforms",
    "domains.composed.wrappers": "domains.wrappers",
    "domains.matrices.base": "domains._spectra",
    "domains.matrices.factored": "domains.factored",
    "domains.matrices.factors": "domains._factors",
    "domains.matrices.fantope": "domains.fantope",
    "domains.matrices.kernels.dispatch": "domains._steps",
    "domains.matrices.kernels.large": "domains._kernels",
    "domains.matrices.kernels.small": "domains._small",
    "domains.matrices.krylov": "domains._krylov",
    "domains.matrices.nuclear_norm": "domains.spectral",
    "domains.matrices.span": "domains._span",
    "domains.matrices.spectraplex": "domains.spectral",
    "domains.matrices.spectral_norms": "domains.spectral_norms",
    "domains.matrices.view": "_measured",
    "domains.polytopes.couplings": "domains.couplings",
    "domains.polytopes.graph": "domains._graph",
    "domains.polytopes.graphs": "domains.graphs",
    "domains.polytopes.integer_program": "domains._integer",
    "domains.polytopes.linear_program": "domains._host",
    "domains.polytopes.lp_scaling": "domains._units",
    "domains.polytopes.matchings": "domains.matchings",
    "domains.polytopes.matroids": "domains.matroids",
    "domains.polytopes.polytopes": "domains.polytopes",
    "domains.span": "domains._span",
    "domains.vectors.balls": "domains.balls",
    "domains.vectors.groups": "domains.groups",
    "domains.vectors.knapsacks": "domains.knapsacks",
    "domains.vectors.norms": "domains.norms",
    "domains.vectors.selections": "domains.selections",
    "domains.vectors.simplices": "domains.simplices",
    "domains.vectors.weighted": "domains.weighted",
    "games.game": "game",
    "games.minimize": "_minimize",
    "games.play": "_play",
    "games.state": "_state",
    "lab.arena.rivals": "lab._rivals",
    "learners.auto": "learners.tracked_pi2",
    "learners.tracked_pi": "learners.auto",
    "problem.derivatives": "_derivatives",
    "problem.environment": "environment",
    "problem.functions": "_functions",
    "problem.problem": "problem",
    "problem.regularity": "problem",
    "problem.rounds": "_rounds",
    "problems.allocation": "problems._simplex",
    "problems.budget_pacing": "problems._pacing",
    "problems.completion": "problems._matrix_completion",
    "problems.portfolios": "problems._portfolio",
    "problems.principal_components": "problems._online_pca",
    "problems.routing": "problems._shortest_path",
    "sessions.session": "session",
    "theory.exponents": "theory._rates",
    "theory.traced_powers": "_integers",
}


_FORMER_CLASSES = {
    "cocoax.learners.projected.AbstractRetuned": "AbstractAnytime",
    "cocoax.primal.base.RoundBounds": "Scale",
}
_ADDED = {
    "cocoax.problem.problem.Problem": {"request": False, "integral": False, "previous": None}
}  # fields that came later, and what they were before


def former_name(part) -> str:
    """The full name of a class or function before it, or its module, was renamed."""
    name = _FORMER_CLASSES.get(f"{part.__module__}.{part.__qualname__}", part.__qualname__)
    return f"{former_module(part.__module__)}.{name}"


def former_fields(part) -> dict:
    """The fields of an object, without those that came later and say nothing new."""
    added = _ADDED.get(f"{type(part).__module__}.{type(part).__qualname__}", {})
    return {name: value for name, value in vars(part).items() if not (name in added and value is added[name])}


def former_module(name: str) -> str:
    """The name of a module of cocoax before it moved; every other name as it is.

    >>> former_module("cocoax.domains.vectors.balls")
    'cocoax.domains.balls'
    >>> former_module("numpy.linalg")
    'numpy.linalg'
    """
    package, _, module = name.partition(".")
    return f"cocoax.{_FORMER[module]}" if package == "cocoax" and module in _FORMER else name
