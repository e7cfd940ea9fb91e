"""The headline of a report, as sentences: who won, and who loses to playing the start."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

_MOST = 4  # names in a list
_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Ranking(NamedTuple):
    """The result of one problem."""

    problem: str
    best: Sequence[str]  # who has the lowest score; several where scores are equal, none where there is no contest
    is_clear: bool  # whether the interval of the second's difference from the best does not hold 0
    scores: Mapping[str, float]  # by learner, lowest first; of those that played all games


def headline(
    rankings: Sequence[Ranking], starts: Collection[str] = (), groups: Mapping[str, Collection[str]] | None = None
) -> list[str]:
    """Sentences on who won and who loses to playing the start.

    `starts` are learners that always play the start; `groups` has the names of learners by the group's name.

    >>> scores = {"Auto": 1.0, "start": 2.0, "OCG": 5.0, "MFW": 9.0}
    >>> rankings = [Ranking(problem, ["Auto"], True, scores) for problem in ("paper", "binding")]
    >>> for sentence in headline(rankings, ["start"], {"methods of the paper": ["OCG", "MFW"]}):
    ...     print(sentence)
    Auto has the lowest score on both problems, and is clearly ahead on both.
    All methods of the paper lose to playing the start on both problems.
    """
    held = [ranking for ranking in rankings if ranking.best]
    if not held:
        return ["No learner can be called best: on no problem do two have a score."]
    return [_winners(held), *_losers(held, starts, groups or {})]


def listed(names: Sequence[str], most: int = _MOST) -> str:
    """The names joined by commas and "and", at most `most`; names that contain these are quoted."""
    names = [f"“{name}”" if re.search(r"[,;]| and ", name) else name for name in names]
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _problems(count: int, of: int) -> str:
    """`count` of `of` problems in words, such as "both problems" or "two of five problems"."""
    if of == 1:
        return "this problem"
    if count == of:
        return "both problems" if of == 2 else f"all {_number(of)} problems"
    return f"{_number(count)} of {_number(of)} problems"


def _number(count: int) -> str:
    return _SMALL[count] if count < len(_SMALL) else str(count)


def _winners(held: Sequence[Ranking]) -> str:
    """The sentence on who has the lowest score on how many problems; `held` are the problems with a winner."""
    wins: dict[tuple[str, ...], list[Ranking]] = {}
    for ranking in held:
        wins.setdefault(tuple(ranking.best), []).append(ranking)
    ordered = sorted(wins.items(), key=lambda item: -len(item[1]))
    (first, won), count = ordered[0], len(held)
    place = held[0].problem if count == 1 else _problems(len(won), count)
    text = f"{listed(first)} {'share' if len(first) > 1 else 'has'} the lowest score on {place}"
    if len(first) == 1:
        text += _clearly(won, count)
    others = [f"{listed(best)} on {_number(len(mine))}" for best, mine in ordered[1:]]
    if len(others) > _MOST:
        others = [*others[: _MOST - 1], f"others on {_number(sum(len(mine) for _, mine in ordered[_MOST:]))}"]
    return "; ".join([text, *others]) + "."


def _clearly(won: Sequence[Ranking], count: int) -> str:
    """The end of the headline's first sentence: on how many of the problems that it won the winner is clearly ahead.

    `won` are the rankings of these problems, and `count` is the number of all problems.
    """
    clear = sum(ranking.is_clear for ranking in won)
    if count == 1:
        return ", clearly ahead of the second" if clear else ", but not clearly ahead of the second"
    if clear == len(won):
        return f", and is clearly ahead on {'both' if clear == 2 else 'each of them' if clear > 1 else 'it'}"
    if clear == 0:
        return ", but not clearly" if len(won) == 1 else ", but is clearly ahead on none of them"
    return f", and is clearly ahead on {_number(clear)} of them"


def _losers(held: Sequence[Ranking], starts, groups) -> list[str]:
    """Sentences on the learners that score worse than the start on every problem where both played."""
    lost: dict[str, bool] = {}
    for ranking in held:
        here = [ranking.scores[name] for name in starts if name in ranking.scores]
        for name, score in ranking.scores.items():
            if here and name not in starts:
                lost[name] = lost.get(name, True) and score > min(here)
    if not any(lost.values()):
        return []
    place = "" if len(held) == 1 else f" on {_problems(len(held), len(held))}"
    sentences = []
    for group, members in groups.items():
        judged = [name for name in members if name in lost]
        if len(judged) > 1 and all(lost[name] for name in judged):
            sentences.append(f"All {group} lose to playing the start{place}.")
            lost = {name: value for name, value in lost.items() if name not in judged}
    losers = [name for name, value in lost.items() if value]
    if losers:
        also = "also " if sentences else ""
        sentences.append(
            f"{listed(losers)} {also}{'lose' if len(losers) > 1 else 'loses'} to playing the start{place}."
        )
    return sentences
