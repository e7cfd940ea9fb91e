"""Names that users type."""

import difflib

from ..errors import LabError


def closest(name: str, names, what: str) -> str:
    """The name, if it is one of `names`; otherwise an error that suggests the nearest one."""
    if name in names:
        return name
    by_lower_case = {other.lower(): other for other in names}
    near = [other for other in by_lower_case if name.lower() in other]
    near = near or difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.4)
    hint = f"did you mean {by_lower_case[near[0]]!r}?" if near else f"known are {', '.join(map(repr, names))}"
    raise LabError(f"there is no {what} {name!r}; {hint}")
