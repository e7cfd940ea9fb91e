"""The paper's experiment: its problems, its learners, and their rivals."""

import functools
from pathlib import Path

from .. import baselines, dual, learners, primal, theory
from ..problems import matrix_completion
from .files import chosen
from .study import Study

HORIZONS = [*range(10, 100, 10), *range(100, 1001, 100)]
QUICK_HORIZONS = [200, 400, 1000]
BINDING_HORIZONS = [200, 400, 600, 800, 1000]  # with fewer rounds most entries are rarely seen, and hindsight overfits

PROBLEMS = {
    "paper": matrix_completion,
    "binding": functools.partial(matrix_completion, binding=True),
}

DESCRIPTIONS = {
    "paper": "The paper's matrix completion, whose constraint hardly matters",
    "binding": "The same matrix completion with a constraint that binds",
}


def paper_learners() -> dict:
    """Algorithm 1 with each of its primals, and Algorithm 2, both with the constants of their theorems."""
    primals = (primal.OCG(), primal.OSPF(), primal.ORGFW(), primal.SFTPL(), primal.MFW("cube"))
    return {
        **{f"Algorithm 1 + {type(part).__name__}": learners.Blocks(part) for part in primals},
        "Algorithm 2 (PDMFW)": learners.PDMFW(),
    }


def rivals() -> dict:
    """Baselines, and variants of the paper's learners that perform better."""
    return {
        "Auto": learners.Auto(),
        "play the start": learners.Stay(),
        "PD-OGD (projected)": baselines.PDOGD(),
        "adaptive PD-OGD (projected)": learners.AdaptivePDOGD(),
        "drift-plus-penalty (projected)": learners.DPP(),
        "Algorithm 1 + OCG (theta x 0.001)": learners.Blocks(primal.OCG(), theta_scale=0.001),
        "Algorithm 2 (ball; theta x 0.001)": learners.PDMFW(perturbation="ball", theta_scale=0.001),
        "Algorithm 2 (centred cube)": learners.PDMFW(perturbation="centred"),
        "ORGFW (never restarted)": learners.PrimalDual(primal.ORGFW(), dual.RegularizedAscent(theta=0.0, mu=0.0)),
    }


def groups() -> dict[str, list[str]]:
    """The learners by where they come from, as a report calls them."""
    return {"methods of the paper": list(paper_learners()), "rivals and variants": list(rivals())}


def slopes() -> dict[str, theory.Rates]:
    """The proven exponents of T, by the learner's name."""
    proven = {
        name: theory.rates(learner.primal.alpha)
        for name, learner in paper_learners().items()
        if isinstance(learner, learners.Blocks)
    }
    of_algorithm_2 = [name for name in paper_learners() | rivals() if name.startswith("Algorithm 2")]
    return proven | dict.fromkeys(of_algorithm_2, theory.pdmfw_rates())


def reproduction(out: Path | str, *, instances=30, horizons=None, names=None, seed=0, quick=False) -> Study:
    """The study behind `cocoax reproduce`; `names` are learners' names, whole or short, separated by commas."""
    learners = chosen(names, paper_learners() | rivals())
    horizons = horizons or (QUICK_HORIZONS if quick else None)
    by_problem = {"paper": horizons or HORIZONS, "binding": horizons or BINDING_HORIZONS}
    return Study(PROBLEMS, learners, by_problem, seeds=range(seed, seed + instances), out=out)
