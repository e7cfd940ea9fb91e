"""Refusals, each with the status of HTTP that it is answered with."""

from collections.abc import Iterable
from typing import Any

from ..errors import CocoaxError, ConflictError, StorageError

# of answers; what is left of a body that was not read must not be taken for a new request
EXTRA_HEADERS = {
    401: {"www-authenticate": "Bearer"},
    413: {"connection": "close"},
    429: {"retry-after": "1"},
    503: {"retry-after": "5"},
}


class Refused(Exception):
    """One sentence for the client."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


_KINDS = {
    "string_type": "a string",
    "list_type": "a list",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "model_type": "an object, as {...}",
    "missing": "given",
    "string_too_short": "a string that is not empty",
}
_EITHER = {"at": "a whole number >= 0, or a list of them", "labels": "a text, or a list of texts and nulls"}


def wrong_field(found: Any, known: Iterable[str] = ()) -> Refused:
    """The sentence for the first thing that pydantic found wrong in a request."""
    place = ".".join(map(str, found["loc"])) or "the body"
    field = place.partition(".")[0]
    if found["type"] == "extra_forbidden":
        return Refused(422, f"there is no field {place[:200]!r} here; there are {', '.join(known)}")
    if field in _EITHER:
        return Refused(422, f"{field} must be {_EITHER[field]}")
    if found["type"] in _KINDS:
        return Refused(422, f"{place} must be {_KINDS[found['type']]}")
    return Refused(422, f"{place}: {found['msg']}")


def refused(error: BaseException) -> Refused:
    """What a client is told of this error."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, StorageError):
        return Refused(503, str(error))
    if isinstance(error, ConflictError):
        return Refused(409, str(error))
    if isinstance(error, CocoaxError):
        return Refused(422, " ".join(str(error).split()))
    return Refused(500, "the service failed on this request; its log says why")
