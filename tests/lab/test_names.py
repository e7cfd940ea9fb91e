"""Names that users type: short ones select learners, and names may hold commas."""

import pytest
from cli_tools import refused, run

import cocoax as cx
from cocoax.lab import guarantees, paper
from cocoax.lab.files import chosen
from cocoax.lab.names import resolve, select

METHODS = list(guarantees.methods(diameter=1, lipschitz=1, smoothness=1, constraint_bound=1, dimension=3))
LEARNERS = list(paper.paper_learners() | paper.rivals())


@pytest.mark.parametrize("names", [METHODS, LEARNERS, ["a, b", "a", "b", "c; d (e, f)"]])
def test_every_name_selects_itself_alone_and_among_others(names):
    assert all(select(name, names, "learner") == [name] for name in names)
    assert select(",".join(names), names, "learner") == select("; ".join(names), names, "learner") == names


@pytest.mark.parametrize(
    "short, names, whole",
    [
        ("OCG", LEARNERS, "Algorithm 1 + OCG"),
        ("ocg", METHODS, "Algorithm 1 + OCG"),
        ("PDMFW", LEARNERS, "Algorithm 2 (PDMFW)"),
        ("PDMFW", METHODS, "Algorithm 2 (PDMFW, ball)"),
        ("Auto", LEARNERS, "Auto"),
        ("MFW", LEARNERS, "Algorithm 1 + MFW"),
        ("pdogd", ["PD-OGD (projected)", "adaptive PD-OGD (projected)"][:1], "PD-OGD (projected)"),
    ],
)
def test_short_names_select(short, names, whole):
    assert resolve(short, names, "learner") == whole


def test_classes_select_where_only_one_learner_has_them():
    learners = paper.paper_learners() | paper.rivals()
    assert list(chosen("Stay, DPP", learners)) == ["play the start", "drift-plus-penalty (projected)"]
    with pytest.raises(cx.LabError, match="no learner 'Blocks'"):
        chosen("Blocks", learners)
    assert chosen(None, learners) == learners


def test_errors_say_what_would_be_right_and_never_suggest_what_was_typed():
    with pytest.raises(cx.LabError, match=r"'AdaGrad' could be .* or .*; write more of the method's name"):
        select("AdaGrad", METHODS, "method")
    with pytest.raises(cx.LabError, match=r"no method 'Algorithm 2 \(PDMFW, bal\)'; did you mean .*ball\)'"):
        select("Algorithm 2 (PDMFW, bal)", METHODS, "method")
    with pytest.raises(cx.LabError, match="at least one method"):
        select(" , ", METHODS, "method")


def test_theory_selects_names_with_commas():
    answer = run("theory", "--learners", "Algorithm 2 (PDMFW, ball), OCG", "--horizons", "1000")
    assert answer.status == 0 and answer.out.count("T^") == 4
    refused(run("theory", "--learners", "OCGG"), "no method 'OCGG'; did you mean 'Algorithm 1 + OCG'?")
