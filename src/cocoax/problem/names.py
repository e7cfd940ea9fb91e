"""Names that users choose: of constraints, and of the fields of a round that make a request."""

from collections.abc import Sequence

from ..core import check
from ..errors import ProblemError

_COLUMNS = ("game", "round", "loss", "regret", "score", "lmo_calls", "gradient_calls")


def request_fields(request) -> bool | tuple[str, ...]:
    """The names of the round's fields that form the request; True for all of them, False for none."""
    if isinstance(request, bool):
        return request
    names = (request,) if isinstance(request, str) else request
    if not (isinstance(names, tuple | list) and names and all(isinstance(name, str) and name for name in names)):
        raise ProblemError(f"request must be True, False, or names of fields of a round, got {request!r}")
    return tuple(names)


def constraint_names(constraints) -> tuple[str, ...]:
    """The names of constraints: the user's, or `constraint_0`, ... if only their number is given."""
    if not isinstance(constraints, str | tuple | list):
        count = check.whole(constraints, "constraints", ProblemError, low=1)
        return ("constraint",) if count == 1 else tuple(f"constraint_{i}" for i in range(count))
    names = (constraints,) if isinstance(constraints, str) else tuple(constraints)
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise ProblemError(f"constraints must be a number or a tuple of different names, got {constraints!r}")
    columns = table_columns(names)
    if len(set(columns)) < len(columns):
        raise ProblemError(f"constraints {names} give Game.table() two columns of one name; call them something else")
    return names


def table_columns(names: Sequence[str]) -> list[str]:
    """The columns that `Game.table()` may have, for constraints of these names."""
    suffixes = ("", "_violation", "_hard_violation", "_multiplier")
    return [*_COLUMNS, *(name + suffix for name in names for suffix in suffixes)]
