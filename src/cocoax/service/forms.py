"""What clients send, and what a call is made of it."""

from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .batching import Call
from .columns import columns
from .errors import Refused, wrong_field
from .sessions import Sessions

_Count = Annotated[int, Field(strict=True, ge=0, lt=2**53)]
_Names = Annotated[list[str] | None, Field(description="Campaigns, each once. New ones begin.")]
_Name = Annotated[str | None, Field(description="Instead of names: one campaign; other fields without a leading axis.")]

_Ticket = Annotated[str | None, Field(min_length=1, description="The name of a round of late feedback.")]
_Tickets = Annotated[list[str] | None, Field(description="Of late feedback in fleets: one for each of the names.")]
_Budgets = Annotated[Any, Field(description="The amounts for the whole game: a number, or a list, for each name.")]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")

    names: _Names = None
    name: _Name = None
    ticket: _Ticket = None
    tickets: _Tickets = None


class Decide(_Form):
    """The next decisions of campaigns."""

    requests: Annotated[Any, Field(description="What is seen of the rounds already: fields of stacked lists.")] = None


class Observe(_Form):
    """One round of each campaign."""

    rounds: Annotated[Any, Field(description="Fields of stacked lists, one entry for each name.")] = None
    played: Annotated[Any, Field(description="The decisions that were really played, if they were others.")] = None
    at: Annotated[
        list[_Count] | _Count | None,
        Field(description="The `rounds` that decide answered with. A round that counts already is not counted again."),
    ] = None
    labels: Annotated[list[str | None] | str | None, Field(description="Texts that are kept for the history.")] = None


class Skip(_Form):
    """Campaigns whose open requests, or tickets, will not be observed."""


class Begin(_Form):
    """Campaigns that begin, with budgets of their own."""

    budgets: _Budgets = None


class Change(_Form):
    """Campaigns that get other budgets."""

    budgets: _Budgets


class End(_Form):
    """Campaigns that end."""


FORMS: dict[str, type[_Form]] = {
    "decide": Decide,
    "observe": Observe,
    "skip": Skip,
    "begin": Begin,
    "change": Change,
    "end": End,
}


def parsed(kind: str, body: bytes, fleet: Any) -> Call:
    """The call that a body asks for."""
    try:
        form = FORMS[kind].model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise Refused(400, f"the body is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}") from None
        raise wrong_field(first, FORMS[kind].model_fields) from None
    if (form.names is None) == (form.name is None):
        raise Refused(422, 'give "names", a list, or "name", a string')
    single = form.names is None
    names = [form.name] if form.names is None else form.names
    floats = _has_no_dtypes(fleet, names)
    call = Call(
        kind, names, single=single, size=len(body), tickets=_listed(form.ticket, form.tickets, names, "tickets")
    )
    if isinstance(form, Begin | Change):
        call.data = _stacked(form.budgets, call, "budgets", True)
    if isinstance(form, Decide):
        call.data = _stacked(form.requests, call, "requests", floats)
    if isinstance(form, Observe):
        call.data = _stacked(form.rounds, call, "rounds", floats)
        call.played = _stacked(form.played, call, "played", True)
        one, many = (None, form.labels) if isinstance(form.labels, list) else (form.labels, None)
        call.labels = _listed(one, many, names, "labels")
        if form.at is not None:
            at = form.at if isinstance(form.at, list) else [form.at] * len(names)
            if len(at) != len(names):
                raise Refused(422, f"at must be a number, or a list with one for each of the {len(names)} names")
            call.at = np.array(at, np.int64)
    return call


def _has_no_dtypes(fleet: Any, names: list) -> bool:
    """Whether whole numbers count as floats, because no round has fixed the dtypes."""
    if isinstance(fleet, Sessions):
        return None in [fleet[name].schema for name in names if name in fleet]
    return fleet.schema is None


def _listed(one: str | None, many: list | None, names: list, field: str) -> list | None:
    """One text, or one for each name, as a list."""
    texts = many if one is None else [one]
    if texts is not None and (len(texts) != len(names) or (one is not None and many is not None)):
        raise Refused(422, f"{field} must be a list with one for each of the {len(names)} names")
    return texts


def _stacked(part, call: Call, name: str, floats: bool) -> Any:
    if part is None:
        return None
    return columns(_with_axis(part) if call.single else part, len(call.names), name, floats)


def _with_axis(part) -> Any:
    return {key: _with_axis(value) for key, value in part.items()} if isinstance(part, dict) else [part]
