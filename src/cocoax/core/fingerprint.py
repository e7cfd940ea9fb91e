"""Hashes that recognise a game: of numbers and structure, of traced programs, and of the library itself."""

import dataclasses
import enum
import functools
import hashlib
import itertools
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from . import traces

_PACKAGE = Path(__file__).parent.parent
_TOLD = rb'^[ \t]*[rR]?"""(?:\\.|[^\\])*?"""[ \t]*$|[ \t]*#[^\n]*'  # docstrings and comments
# Texts, in which a # begins no comment.
_TEXTS = rb'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_TOLD_OR_TEXT = re.compile(_TOLD + rb"|(?P<text>" + _TEXTS + rb")", re.M | re.S)


@functools.cache
def library() -> str:
    """Of the sources of cocoax without docstrings, comments and blank lines, and of its data; read once a process."""
    files = sorted(file for kind in ("py", "json", "csv", "npz") for file in _PACKAGE.rglob(f"*.{kind}"))
    return _hash(*(code_in(file.read_bytes()) if file.suffix == ".py" else file.read_bytes() for file in files))


def code_in(source: bytes) -> bytes:
    """A source without docstrings, comments and blank lines."""
    code = _TOLD_OR_TEXT.sub(lambda found: found["text"] or b"", source)
    return b"\n".join(line for line in code.split(b"\n") if line.strip())


class Parts(NamedTuple):
    """The hash of some parts, and whether no other code is in them than the library's, which `library` knows."""

    digest: str
    known: bool


def of_parts(*parts: Any) -> Parts:
    """Of structure and numbers: arrays, containers, modules by their fields; of what is traced, shapes and dtypes.

    Classes and functions of the library count by name. Those of a user count only in that they are there, whatever
    they are called: `of_program` says what they do.
    """
    told, known = [], True

    def tell(part):
        nonlocal known
        match part:
            case None | bool() | int() | float() | complex() | str() | bytes() | range() | enum.Enum() | np.dtype():
                told.append(f"{type(part).__name__} {part!r}")
            case np.ndarray() if part.dtype.hasobject:
                tell(part.tolist())
            case jax.Array() | np.ndarray() | np.generic():
                told.append(_array(part))
            case dict():
                tell([(key, part[key]) for key in sorted(part, key=repr)])
            case list() | tuple() | set() | frozenset():
                told.append(f"{len(part)} in order")
                for each in sorted(part, key=repr) if isinstance(part, set | frozenset) else part:
                    tell(each)
            case functools.partial():
                tell([part.func, part.args, part.keywords])
            case types.FunctionType() if _is_own(part):
                told.append(f"{part.__module__} {part.__qualname__}")
            case type() if _is_own(part):
                told.append(part.__qualname__)
            case _:
                inner, is_own = _inner(part), _is_own(type(part))
                known = known and is_own and inner is not None
                told.append(type(part).__qualname__ if is_own else "a user's")
                tell(inner)

    tell(parts)
    return Parts(_hash(*(each.encode() for each in told)), known)


def _inner(part) -> Any:
    """What determines an object, if that is known: what it says of itself where it also has caches, its fields, or the
    leaves of a container that JAX knows."""
    if hasattr(part, "__fingerprint__"):
        return part.__fingerprint__()
    return _fields(part) if _is_record(part) else None if jax.tree_util.all_leaves([part]) else jax.tree.leaves(part)


def _is_record(part) -> bool:
    return dataclasses.is_dataclass(part) and not isinstance(part, type)


def _fields(record) -> list:
    return [getattr(record, field.name, None) for field in dataclasses.fields(record)]


def _is_own(part) -> bool:
    """Whether it is the library's, under a name that says which."""
    return (part.__module__ or "").split(".")[0] == __name__.split(".")[0] and "<" not in part.__qualname__


def of_program(function: Callable, *inputs: Any) -> str:
    """Of the program that JAX traces for inputs of these shapes, with its constants; names, comments and how it is cut
    into functions do not count. What a callback does on the host is not seen. Comparable under one version of JAX."""
    return _program(jax.make_jaxpr(function)(*inputs))


def _program(program) -> str:
    told, numbers = [], itertools.count()

    def new(variables):
        return [f"{next(numbers)} {variable.aval}" for variable in variables]

    def rule(equation, inputs):
        inner = traces.called(equation)
        if inner is not None:
            return traces.interpret(inner, inputs, rule, _array)
        outputs = new(equation.outvars)
        told.append(f"{equation.primitive.name} {inputs} {_parameter(equation.params)} {outputs}")
        return outputs

    told.append(str(traces.interpret(program, new(program.jaxpr.invars), rule, _array)))
    return _hash(*(each.encode() for each in told))


def _parameter(value) -> str:
    """A parameter of an equation as text. Functions and the names of functions say nothing."""
    if traces.is_program(value):
        return _program(traces.closed(value))
    if isinstance(value, dict):
        return str([(key, _parameter(value[key])) for key in sorted(value, key=repr) if key not in _UNTOLD])
    if isinstance(value, list | tuple):
        return str([_parameter(each) for each in value])
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return _array(value)
    if _is_record(value):
        return f"{type(value).__name__} {_parameter(_fields(value))}"
    text = repr(value)
    return type(value).__name__ if callable(value) or " at 0x" in text else text


_UNTOLD = ("name", "debug_info")


def _array(array) -> str:
    """An array or number as text: dtype, shape and a hash of its bytes, which a tracer has not."""
    if isinstance(array, Tracer):
        return f"{array.aval}"
    if isinstance(array, jax.Array) and jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return f"{array.dtype} {_array(jax.random.key_data(array))}"
    array = np.asarray(array)
    return f"{array.dtype} {array.shape} {_hash(array.tobytes())}"


def _hash(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()
