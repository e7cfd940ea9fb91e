"""Bytes for other processes, of functions and classes from scripts and notebooks too.

cloudpickle sends a class that cannot be imported there as an empty one, and fills it afterwards. An Equinox module must
have its fields from the beginning: they are registered as leaves when the class is made.

In the process that sent it, as in a pool of threads, the class is there already and stays as it is.
"""

import abc
import dataclasses
import io
import os
import uuid
from typing import Any

import cloudpickle
import equinox as eqx

from ...errors import LabError
from ..arguments import error_text

_FIELD = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
_HERE = uuid.uuid4().hex  # with its number, this process: a fork has another number


def pickled(part: Any) -> bytes:
    """Bytes for another process."""
    try:
        _Pickler(content := io.BytesIO()).dump(part)
    except Exception as error:
        raise LabError(f"{part!r:.80} cannot be sent to another process: {error_text(error)}") from None
    return content.getvalue()


class _Pickler(cloudpickle.Pickler):
    def reducer_override(self, obj) -> Any:
        if obj is dataclasses.MISSING:
            return "MISSING"  # by its name: a copy would be taken for a default
        reduced: Any = super().reducer_override(obj)
        if not (isinstance(obj, type) and issubclass(obj, eqx.Module)) or reduced is NotImplemented:
            return reduced
        make, arguments, state, _, _, fill = reduced
        empty = make, arguments, _own_fields(obj), _has_own_init(obj)
        return _empty_module, empty, (fill, state, _process()), None, None, _fill


def _process() -> tuple[str, int]:
    return _HERE, os.getpid()


def _own_fields(module: type) -> dict[str, dict[str, Any]]:
    """The fields that a class adds to those of its bases, as arguments of `dataclasses.field`."""
    own: dict[str, dict[str, Any]] = {}
    for field in dataclasses.fields(module):  # pyright: ignore[reportArgumentType]
        if field.name in vars(module).get("__annotations__", {}):
            options = {name: getattr(field, name) for name in _FIELD} | {"metadata": dict(field.metadata)}
            own[field.name] = {name: value for name, value in options.items() if value is not dataclasses.MISSING}
    return own


def _has_own_init(module: type) -> bool:
    return "__init__" in vars(module) and not vars(module)["__dataclass_params__"].init


def _empty_module(make, arguments, fields, has_own_init):
    """A class with its fields, and nothing else yet."""
    metaclass, name, bases, namespace, *rest = arguments
    namespace = {**namespace, "__annotations__": dict.fromkeys(fields, Any)}
    for field, options in fields.items():
        namespace[field] = dataclasses.field(**options)
    if has_own_init:
        namespace["__init__"] = lambda self: None  # says that there is one; `_fill` brings it
    return make(metaclass, name, bases, namespace, *rest)


def _fill(module, content):
    fill, state, sender = content
    if sender != _process():
        fill(module, state)
        abc.update_abstractmethods(module)
