"""Names that users type."""

import difflib

from ..errors import LabError


def closest(name: str, known, what: str) -> str:
    """The name itself if it is known; else an error that says which one was probably meant."""
    if name in known:
        return name
    lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.4)
    near = [each for each in lower if name.lower() in each] or near
    hint = f"did you mean {lower[near[0]]!r}?" if near else f"known are {', '.join(map(repr, known))}"
    raise LabError(f"there is no {what} {name!r}; {hint}")
