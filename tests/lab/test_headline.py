"""The headline of a report says what the rankings say, and no more."""

import pytest

from cocoax.lab.report.headline import Ranking, headline


def ranking(problem, clear=True, **scores):
    ordered = dict(sorted(scores.items(), key=lambda item: item[1]))
    least = min(scores.values())
    return Ranking(problem, [name for name, score in ordered.items() if score == least], clear, ordered)


@pytest.mark.parametrize(
    "rankings, text",
    [
        ([ranking("p", A=1, B=2)], "A has the lowest score on p, clearly ahead of the second."),
        ([ranking("p", False, A=1, B=2)], "A has the lowest score on p, but not clearly ahead of the second."),
        ([ranking("p", A=1, B=1, C=3)], "A and B share the lowest score on p."),
        (
            [ranking("p", A=1, B=2), ranking("q", False, A=1, B=2)],
            "A has the lowest score on both problems, and is clearly ahead on one of them.",
        ),
        (
            [ranking("p", False, A=1, B=2), ranking("q", False, A=1, B=2)],
            "A has the lowest score on both problems, but is clearly ahead on none of them.",
        ),
        (
            [ranking("p", False, A=1, B=2), ranking("q", A=2, B=1)],
            "A has the lowest score on one of two problems, but not clearly; B on one.",
        ),
        (
            [ranking("p", A=1, B=2), ranking("q", A=2, B=1), ranking("r", A=0, B=1)],
            "A has the lowest score on two of three problems, and is clearly ahead on both; B on one.",
        ),
        (
            [ranking(f"p{i}", **{"A": 9, name: 1}) for i, name in enumerate("BCDEFBG")],
            "B has the lowest score on two of seven problems, and is clearly ahead on both; C on one; D on one; "
            "E on one; others on two.",
        ),
        (
            [ranking("p", **{"mirror descent, tuned": 1, "A": 2})],
            "“mirror descent, tuned” has the lowest score on p, clearly ahead of the second.",
        ),
        ([Ranking("p", [], False, {})], "No learner can be called best: on no problem do two have a score."),
        (
            [ranking("p", A=-2, B=-1), Ranking("q", [], False, {"A": 1})],
            "A has the lowest score on p, clearly ahead of the second.",
        ),
    ],
)
def test_who_won(rankings, text):
    assert headline(rankings)[0] == text


def test_who_loses_to_the_start():
    rankings = [ranking("p", A=1, start=2, B=3, C=4, D=5), ranking("q", A=1, start=2, B=3, C=4, D=1.5)]
    assert headline(rankings, ["start"])[1:] == ["B and C lose to playing the start on both problems."]
    named = headline(rankings, ["start"], {"methods of a paper": ["B", "C"], "rivals": ["A", "D"]})
    assert named[1:] == ["All methods of a paper lose to playing the start on both problems."]
    assert headline(rankings, ["start"], {"methods": ["C", "D"]})[1:] == [
        "B and C lose to playing the start on both problems."
    ]
    assert len(headline(rankings)) == len(headline([ranking("p", A=1, start=2)], ["start"])) == 1


def test_long_lists_are_cut():
    scores = {f"L{i}": i + 2 for i in range(9)}
    assert headline([ranking("p", A=0, start=1, **scores)], ["start"])[1:] == [
        "L0, L1, L2 and 6 others lose to playing the start."
    ]
