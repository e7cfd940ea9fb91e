"""Requests in a session: their schema, and the rounds that complete them."""

from collections.abc import Mapping
from typing import Any

from ..errors import SessionError
from ..problem.problem import Problem, Round
from . import packing
from .copies import LearnerCopies
from .schema import RoundSchema
from .tickets import OPEN


def cast_request(copies: LearnerCopies, rounds: RoundSchema | None, request: Any) -> Round:
    """The request, in the schema of all of them, which the first one fixes."""
    if copies.request_schema is None:
        copies.request_schema = request_schema(copies.problem, rounds, request)
    return copies.request_schema.cast(request, "request")


def request_schema(problem: Problem, rounds: RoundSchema | None, request: Any) -> RoundSchema:
    """The schema of all requests: taken from that of the rounds if it is known, else from this request."""
    if rounds is None:
        if isinstance(problem.request, tuple):
            _check_fields(problem.request, request)
        return RoundSchema.of(request, "request")
    if not isinstance(problem.request, tuple):
        return rounds
    return RoundSchema({"dict": {name: rounds.json["dict"][name] for name in sorted(problem.request)}})


def _check_fields(names, request):
    if not isinstance(request, Mapping) or set(request) != set(names):
        has = (
            ", ".join(map(packing.short, request)) or "none" if isinstance(request, Mapping) else packing.short(request)
        )
        raise SessionError(f"request must be a dict with the fields {', '.join(map(repr, names))}, got {has}")


def check_same(copies: LearnerCopies, name: str, request: Any):
    """Raise if the decision of this ticket was for another request."""
    decided = packing.pack(copies.tickets[name].request)
    if request is None or packing.pack(cast_request(copies, None, request)) == decided:
        return
    if name != OPEN:
        raise SessionError(f"the ticket {name!r} was decided for another request; give that one, or a new ticket")
    raise SessionError("the request before is not observed yet; observe its round, or skip() it, and decide again")


def whole_round(
    copies: LearnerCopies, schema: RoundSchema | None, ticket: str | None, given: Any, name: str
) -> tuple[RoundSchema, Round]:
    """(the schema of all rounds, this round in it): what `observe` was given, completed by the ticket's request."""
    if ticket is None or not copies.problem.has_requests:
        schema = schema or RoundSchema.of(given, name)
        return schema, schema.cast(given, name)
    request = copies.tickets[ticket].request
    round, like = completed(copies.problem, request, given, name)
    schema = schema or RoundSchema.of(like, name)
    round = schema.cast(round, name)
    if packing.pack(copies.problem.request_of(round)) != packing.pack(request):
        raise SessionError(f"{name} has another request than decide had; leave the request's fields out of it")
    return schema, round


def completed(problem: Problem, request: Any, given: Any, name: str) -> tuple[Round, Round]:
    """(the round, one whose request has the dtypes that it was decided with); of one round, or of several, stacked."""
    if problem.request is True:
        return (request if given is None else given), request
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise SessionError(f"{name} must be a dict of fields, got {packing.short(given)}")
    return {**request, **given}, {**given, **request}
