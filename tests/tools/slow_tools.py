"""Which cases of a grid wait for the slow run."""

import pytest


def slow_but(fast, cases):
    """The cases for `parametrize`; all but those in `fast` are marked slow."""
    cases, fast = list(cases), list(fast)
    assert fast and all(case in cases for case in fast)
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if case in fast else pytest.mark.slow)
        for case in cases
    ]


def first_of_each(kind, parts):
    """The names of the first parts of each kind, in a dict of parts."""
    first = {}
    for name, part in parts.items():
        first.setdefault(kind(part), name)
    return list(first.values())


def one_of_each_class(parts):
    """The names in a dict of parts; of the parts of one class, all but the first are marked slow."""
    return slow_but(first_of_each(type, parts), parts)
