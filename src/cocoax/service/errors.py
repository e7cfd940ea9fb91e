"""Refusals, each with the status of HTTP that it is answered with."""

from ..errors import CocoaxError, ConflictError, StorageError

# of answers; what is left of a body that was not read must not be taken for a new request
EXTRA_HEADERS = {
    401: {"www-authenticate": "Bearer"},
    408: {"connection": "close"},
    413: {"connection": "close"},
    429: {"retry-after": "1"},
    503: {"retry-after": "5"},
}


class Refused(Exception):
    """One sentence for the client."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


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
