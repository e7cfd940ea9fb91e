"""Names that users type: whole names, short names, or a list of names in one text."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from ..errors import LabError

_BETWEEN_WORDS = r"[\s(),;+]+"


def closest(name: str, names: Iterable[str], what: str) -> str:
    """`name` if it is one of `names`; otherwise a `LabError` that suggests the nearest one, calling it a `what`."""
    names = list(names)
    if name in names:
        return name
    by_lower_case = {other.lower(): other for other in names}
    near = [other for other in by_lower_case if name.lower() in other]
    near = near or difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.4)
    near = near or _with_close_word(name.lower(), by_lower_case)
    hint = f"did you mean {by_lower_case[near[0]]!r}?" if near else f"known are {', '.join(map(repr, names))}"
    raise LabError(f"there is no {what} {name!r}; {hint}")


def _with_close_word(name, names) -> list[str]:
    """The names that have a word similar to `name`."""
    words = {word: other for other in reversed(names) for word in re.split(_BETWEEN_WORDS, other)}
    return [words[word] for word in difflib.get_close_matches(name, words, n=1)]


def resolve(name: str, names: Iterable[str], what: str, classes: Mapping[str, str] | None = None) -> str:
    """The one of `names` that the user means by its whole text or by one of its words.

    Case and hyphens do not matter. If several names have the word, the one that ends with it is meant. `classes` maps a
    class's name to the name of the only learner of that class.

    >>> methods = ["Algorithm 1 + OCG", "Algorithm 1 + OCG (scaled)", "Algorithm 2 (PDMFW, ball)", "PD-OGD (projected)"]
    >>> [resolve(short, methods, "method") for short in ("ocg", "PDMFW", "PDOGD")]
    ['Algorithm 1 + OCG', 'Algorithm 2 (PDMFW, ball)', 'PD-OGD (projected)']
    """
    names = list(names)
    same = [other for other in names if _plain(other) == _plain(name)]
    having = [other for other in names if _plain(name) in map(_plain, re.split(_BETWEEN_WORDS, other))]
    ending = [other for other in having if _plain(other).endswith(f" {_plain(name)}")]
    of_class = [other for kind, other in (classes or {}).items() if _plain(kind) == _plain(name)]
    for found in ([name] if name in names else [], same, ending, of_class, having):
        if len(found) == 1:
            return found[0]
    if having:
        raise LabError(f"{name!r} could be {' or '.join(map(repr, having))}; write more of the {what}'s name")
    return closest(name, names, what)


def select(
    text: str | Sequence[str] | None, names: Iterable[str], what: str, classes: Mapping[str, str] | None = None
) -> list[str] | None:
    """The names in a text, separated by commas or semicolons; names may contain these too. None for no text.

    A list of names is resolved name by name.

    >>> select("A, tuned, B", ["A, tuned", "B", "C"], "learner")
    ['A, tuned', 'B']
    """
    if text is None:
        return None
    if not isinstance(text, str):
        return [resolve(name, names, what, classes) for name in text]
    names, parts, found = list(names), re.split(r"([,;])", text), []
    while parts:
        ends = range(len(parts) - (len(parts) + 1) % 2, 0, -2)
        whole = next((end for end in ends if _plain("".join(parts[:end])) in map(_plain, names)), None)
        end = whole or next((end for end in reversed(ends) if _is_closed("".join(parts[:end]))), 1)
        typed = "".join(parts[:end]).strip()
        if typed:
            found.append(resolve(typed, names, what, classes))
        parts = parts[end + 1 :]
    if not found:
        raise LabError(f"name at least one {what}, separated by commas; leave the option out for all")
    return list(dict.fromkeys(found))


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("-", "").split())


def _is_closed(text: str) -> bool:
    """Whether every bracket is closed."""
    return text.count("(") <= text.count(")")
