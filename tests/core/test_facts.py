"""Facts stand on the class that they are about, and everything else that states them is derived."""

import inspect
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

import cocoax as cx
from cocoax.core.facts import DomainFacts, Facts, ProblemFacts, offered, with_facts
from cocoax.lab import catalogue, guarantees
from cocoax.lab.citations import CITATIONS, entries

DOCS = Path(__file__).parents[2] / "docs"
HELPERS = {"FromLMO", "Instance"}  # made by a part,
HELPERS |= {"cost", "first_guess", "step_size"}  # for authors of primals, and
HELPERS |= {"rescaled", "waking", "with_outliers", "heavy_tailed", "rarely_seen", "infeasible_stretches"}  # of problems
KINDS = {
    cx.domains: (cx.domains.AbstractDomain, DomainFacts),
    cx.primal: (cx.primal.AbstractPrimal, Facts),
    cx.dual: (cx.dual.AbstractDual, Facts),
    cx.learners: (cx.learners.AbstractLearner, Facts),
    cx.baselines: (cx.learners.AbstractLearner, Facts),
    cx.problems: ((), ProblemFacts),
}
PACKAGES = cx.primal, cx.dual, cx.learners, cx.baselines
ALGORITHMS = {name: part for package in PACKAGES for name, part in offered(package).items()}
PRIMALS = {name: variant for part in offered(cx.primal).values() for name, variant in part.variants().items()}
SIZES = {"diameter": 2.0, "lipschitz": 3.0, "smoothness": 1.0, "constraint_bound": 1.5, "dimension": 4}


def is_part(part, base) -> bool:
    return inspect.isfunction(part) or (inspect.isclass(part) and issubclass(part, base))


@pytest.mark.parametrize("package", KINDS, ids=lambda package: package.__name__)
def test_every_public_part_has_facts_of_its_own(package):
    base, kind = KINDS[package]
    public = {name: getattr(package, name) for name in package.__all__ if not name.startswith("Abstract")}
    parts = {name for name, part in public.items() if is_part(part, base) and name not in HELPERS}
    assert parts == set(offered(package))
    for name, part in offered(package).items():
        assert isinstance(part.facts, kind) and all(part.facts.columns()), name


def test_a_class_does_not_inherit_facts():
    class Slower(cx.primal.OGD):
        pass

    package = type(cx)("package")
    vars(package).update(__all__=["OGD", "Slower"], OGD=cx.primal.OGD, Slower=Slower)
    assert list(offered(package)) == ["OGD"]


def test_a_function_can_have_facts():
    facts = DomainFacts("a sort", on_host=True)
    assert with_facts(facts)(lambda: None).facts.columns() == ("a sort", "on the host")  # pyright: ignore[reportFunctionMemberAccess]


@pytest.mark.parametrize(
    "rates, text",
    [
        ({}, "proven"),
        ({"regret": "1/2"}, "regret T^(1/2), proven"),
        ({"regret": "1/2", "violation": "3/4"}, "regret T^(1/2), violation T^(3/4), proven"),
        ({"regret": "1/2", "violation": "1/2", "hard": True}, "regret and hard violation T^(1/2), proven"),
        ({"regret": "1/2", "violation": "0"}, "regret T^(1/2), violation O(1), proven"),
    ],
)
def test_rates_are_written_as_powers(rates, text):
    exponents = {name: rate if rate is True else Fraction(rate) for name, rate in rates.items()}
    assert Facts(cost="1 LMO", guarantee="proven", cites=(), **exponents).columns() == ("1 LMO", text)


def test_every_key_is_an_entry_and_every_entry_is_used():
    used = {key for part in ALGORITHMS.values() for key in part.facts.cites}
    assert all(part.facts.cites for part in ALGORITHMS.values())
    assert used == set(entries())


def test_citations_are_the_entries_of_the_keys():
    assert CITATIONS.keys() == ALGORITHMS.keys()
    for name, part in ALGORITHMS.items():
        assert re.findall(r"^@\w+\{([^,]+),$", CITATIONS[name], re.MULTILINE) == list(part.facts.cites)


@pytest.mark.parametrize("name", PRIMALS)
def test_a_primals_rate_is_the_exponent_of_its_constants(name):
    primal, domain = PRIMALS[name], cx.domains.L2Ball(4, 1.0)
    assert type(primal).facts.regret == primal.alpha
    assert primal.constants(domain).alpha == float(primal.alpha)


def test_variants_have_constants_of_their_own():
    for part in offered(cx.primal).values():
        constants = [primal.constants(cx.domains.L2Ball(4, 1.0))[1:] for primal in part.variants().values()]
        assert bool(constants) == (part._constants is not cx.primal.AbstractPrimal._constants)
        assert len({tuple(map(float, sizes)) for sizes in constants}) == len(constants)


def test_learners_state_the_rates_of_theory():
    facts = {name: (part.facts.regret, part.facts.violation) for name, part in offered(cx.learners).items()}
    assert facts["PDMFW"] == cx.theory.pdmfw_rates()[:2]
    rows = guarantees.methods(**SIZES)
    for name, row in {"PDOFW": "PD-OFW", "PENOFW": "PEN-OFW (hard)"}.items():
        assert facts[name] == rows[row].rates[:2]
    for name in ("LyapHard", "LyapPred", "LyapStoch"):
        assert facts[name] == (cx.primal.AdaOFW.alpha,) * 2


def test_tables_of_bounds_have_every_primal():
    rows = guarantees.methods(**SIZES)
    assert {f"Algorithm 1 + {name}" for name in PRIMALS} <= rows.keys()
    for name, primal in PRIMALS.items():
        assert rows[f"Algorithm 1 + {name}"].rates == cx.theory.rates(float(primal.alpha))
        assert (f"LYAP-STOCH + {name}" in rows) == isinstance(primal, cx.primal.AbstractAdaptive)


def test_the_constants_of_theory_are_those_of_the_primals():
    domain = cx.domains.L2Ball(4, 1.0)
    stated = {tuple(map(float, primal.constants(domain))) for primal in PRIMALS.values()}
    for name, constants in inspect.getmembers(cx.theory.constants, inspect.isfunction):
        if constants.__module__ != cx.theory.constants.__name__ or name in ("kappa", "ocg_sharp"):  # a second proof
            continue
        sizes = {"diameter": 2.0, "dimension": 4}
        arguments = {key: size for key, size in sizes.items() if key in inspect.signature(constants).parameters}
        assert any(math.dist(constants(**arguments), row) < 1e-6 for row in stated), name


def test_the_table_of_the_docs_states_the_rates_of_the_classes():
    rows = [re.split(r" *\| *", line) for line in (DOCS / "which_learner.md").read_text().splitlines()]
    stated = {row[1]: re.match(r"(\d+/\d+), (\d+/\d+)", row[6]) for row in rows if len(row) == 10}
    checked = {name: rates.groups() for name, rates in stated.items() if rates}
    assert len(checked) >= 9
    for name, exponents in checked.items():
        learner, primal = re.match(r"`(\w+)\((\w+)?", name).groups()
        facts = ALGORITHMS[learner].facts
        rates = (
            cx.theory.rates(getattr(cx.primal, primal).alpha)[:2]
            if learner == "Blocks"
            else (facts.regret, facts.violation)
        )
        assert tuple(map(Fraction, exponents)) == rates, name


@pytest.mark.parametrize("kind", ["learners", "baselines", "primals", "duals"])
def test_the_docs_have_the_table_of_the_catalogue(kind):
    page = (DOCS / "which_learner.md").read_text()
    assert catalogue.markdown(kind) in page, f"docs/which_learner.md: paste catalogue.markdown({kind!r})"


def test_the_docs_say_of_every_domain_where_it_runs():
    rows = [re.split(r" *\| *", line) for line in (DOCS / "domains.md").read_text().splitlines() if line[:3] == "| `"]
    runs = {name: row[5] for row in rows if len(row) > 8 for name in re.findall(r"`(\w+)", row[1])}
    hosted = {name for name, part in offered(cx.domains).items() if part.facts.on_host}
    assert {name for name, where in runs.items() if where == "host"} == hosted
